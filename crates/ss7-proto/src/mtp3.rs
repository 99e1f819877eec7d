//! MTP3: service information octet and routing label of an MSU (Q.704 §2.2, T1.111.4, JT-Q704), management messages, link tests,
//! the links of a set as they carry its traffic or are inhibited, restarts, and congestion that other nodes report.

mod congestion;
mod inhibit;
mod link_set;
mod link_test;
mod management;
mod restart;
mod timers;

use crate::m3ua::ServiceIndicator;
use crate::octets::le24;
use crate::point_code::{Plan, PointCode};

pub use congestion::{Congestion, CongestionEvent, CongestionTimers};
pub use inhibit::{InhibitOutcome, Inhibited, Refusal};
pub use link_set::{Carrier, LinkSet, LinkSetEvent};
pub use link_test::{LinkTest, LinkTestOutcome, LinkTestTimers, TestMessage, test_indicator};
pub use management::{Changeover, Inhibiting, Management, link_code};
pub use restart::{Restart, RestartTimers};
pub use timers::LinkSetTimers;

/// An MSU as a view over its octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Msu<'a> {
    /// Service indicator.
    pub si: ServiceIndicator,
    /// Network indicator.
    pub ni: u8,
    /// The two bits between them: priority where the network has it, else spare.
    pub priority: u8,
    /// Destination point code.
    pub dpc: PointCode,
    /// Originating point code.
    pub opc: PointCode,
    /// Signalling link selection.
    pub sls: u8,
    /// What follows the label.
    pub user_data: &'a [u8],
}

impl<'a> Msu<'a> {
    /// Reads an MSU; `None` when the octets end within the label.
    #[must_use]
    pub fn read(octets: &'a [u8], plan: Plan) -> Option<Self> {
        let (sio, rest) = octets.split_first()?;
        let (dpc, opc, sls, length) = match plan {
            Plan::Itu => {
                let label = u32::from_le_bytes(*rest.first_chunk()?);
                (label & 0x3fff, label >> 14 & 0x3fff, (label >> 28) as u8, 4)
            }
            Plan::Ansi | Plan::China => (le24(rest, 0)?, le24(rest, 3)?, *rest.get(6)?, 7),
            Plan::Japan => {
                let [d0, d1, o0, o1, sls] = *rest.first_chunk()?;
                let (dpc, opc) = (u16::from_le_bytes([d0, d1]), u16::from_le_bytes([o0, o1]));
                (u32::from(dpc), u32::from(opc), sls & 0x0f, 5)
            }
        };
        Some(Self {
            si: ServiceIndicator(sio & 0x0f),
            ni: sio >> 6,
            priority: sio >> 4 & 3,
            dpc: PointCode(dpc),
            opc: PointCode(opc),
            sls,
            user_data: rest.get(length..)?,
        })
    }

    /// Appends the MSU. Bits that the plan lacks are lost.
    pub fn write(&self, plan: Plan, out: &mut Vec<u8>) {
        out.push(self.ni << 6 | (self.priority & 3) << 4 | self.si.0 & 0x0f);
        let (dpc, opc) = (self.dpc.0 & plan.max().0, self.opc.0 & plan.max().0);
        match plan {
            Plan::Itu => {
                let label = u32::from(self.sls & 0x0f) << 28 | opc << 14 | dpc;
                out.extend_from_slice(&label.to_le_bytes());
            }
            Plan::Ansi | Plan::China => {
                out.extend_from_slice(&dpc.to_le_bytes()[..3]);
                out.extend_from_slice(&opc.to_le_bytes()[..3]);
                out.push(self.sls);
            }
            Plan::Japan => {
                out.extend_from_slice(&dpc.to_le_bytes()[..2]);
                out.extend_from_slice(&opc.to_le_bytes()[..2]);
                out.push(self.sls & 0x0f);
            }
        }
        out.extend_from_slice(self.user_data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_each_plan() {
        // ITU: DPC 6545, OPC 1234, SLS 11, SCCP, national.
        let octets = [0x83, 0x91, 0x99, 0x34, 0xb1, 9];
        for (plan, dpc, opc, sls) in [
            (Plan::Itu, 6545, 1234, 11),
            (Plan::Ansi, 332_801, 65_793, 255),
            (Plan::China, 332_801, 65_793, 11),
            (Plan::Japan, 5218, 40_000, 11),
        ] {
            let msu = Msu {
                si: ServiceIndicator::SCCP,
                ni: 2,
                priority: 0,
                dpc: PointCode(dpc),
                opc: PointCode(opc),
                sls,
                user_data: &[9],
            };
            let mut out = Vec::new();
            msu.write(plan, &mut out);
            assert_eq!(Msu::read(&out, plan), Some(msu));
            if plan == Plan::Itu {
                assert_eq!(out, octets);
            }
            for length in 0..out.len() - 1 {
                assert_eq!(Msu::read(&out[..length], plan), None);
            }
        }
    }
}
