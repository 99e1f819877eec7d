//! DATA: an MSU with its routing label (RFC 4666 §3.3.1).

use super::build::Builder;
use super::kind::MessageType;
use super::parameter::{LABEL_LEN, Parameters, Tag};
use crate::octets::be32;
use crate::point_code::PointCode;

/// The user of MTP3 (Q.704 §14.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ServiceIndicator(pub u8);

impl ServiceIndicator {
    /// Management of the signalling network.
    pub const SNM: Self = Self(0);
    /// Tests of signalling links.
    pub const SNT: Self = Self(1);
    /// Special tests of signalling links: link tests of ANSI (T1.111.4 §14.2.1); spare with ITU.
    pub const SNT_SPECIAL: Self = Self(2);
    /// SCCP.
    pub const SCCP: Self = Self(3);
    /// TUP.
    pub const TUP: Self = Self(4);
    /// ISUP.
    pub const ISUP: Self = Self(5);
    /// BICC.
    pub const BICC: Self = Self(13);
}

/// An MSU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Which SS7 network.
    pub network_appearance: Option<u32>,
    /// Which application server. RFC 4666 §3.3.1 allows one value; a reader takes the first.
    pub routing_context: Option<u32>,
    /// Originating point code.
    pub opc: PointCode,
    /// Destination point code.
    pub dpc: PointCode,
    /// Service indicator.
    pub si: ServiceIndicator,
    /// Network indicator.
    pub ni: u8,
    /// Message priority, where the network has priorities.
    pub mp: u8,
    /// Signalling link selection.
    pub sls: u8,
    /// What the user part sent.
    pub user_data: &'a [u8],
    /// Marks MSUs at the beginning of broadcast.
    pub correlation_id: Option<u32>,
}

impl<'a> Data<'a> {
    /// A message of SCCP with link selection 0, for no routing context.
    #[must_use]
    pub const fn sccp(opc: PointCode, dpc: PointCode, ni: u8, user_data: &'a [u8]) -> Self {
        Self {
            network_appearance: None,
            routing_context: None,
            opc,
            dpc,
            si: ServiceIndicator::SCCP,
            ni,
            mp: 0,
            sls: 0,
            user_data,
            correlation_id: None,
        }
    }

    #[inline]
    pub(super) fn read(parameters: Parameters<'a>) -> Option<Self> {
        let (mut network_appearance, mut routing_context, mut correlation_id) = (None, None, None);
        let mut protocol_data = None;
        for parameter in parameters.flatten() {
            match parameter.tag {
                Tag::PROTOCOL_DATA => protocol_data = Some(parameter.value),
                Tag::NETWORK_APPEARANCE => network_appearance = be32(parameter.value, 0),
                Tag::ROUTING_CONTEXT => routing_context = be32(parameter.value, 0),
                Tag::CORRELATION_ID => correlation_id = be32(parameter.value, 0),
                _ => {}
            }
        }
        let (label, user_data) = protocol_data?.split_first_chunk::<LABEL_LEN>()?;
        let [o0, o1, o2, o3, d0, d1, d2, d3, si, ni, mp, sls] = *label;
        Some(Self {
            network_appearance,
            routing_context,
            opc: PointCode(u32::from_be_bytes([o0, o1, o2, o3])),
            dpc: PointCode(u32::from_be_bytes([d0, d1, d2, d3])),
            si: ServiceIndicator(si),
            ni,
            mp,
            sls,
            user_data,
            correlation_id,
        })
    }

    /// Appends the DATA.
    ///
    /// # Panics
    /// When the user data exceed 65,519 octets, which no reader of this crate returns.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(out, |out| {
            out.extend_from_slice(self.user_data);
            true
        });
    }

    /// Appends the DATA with user data that `user_data` appends, without a copy of them. When that returns `false`, `out` ends as
    /// before. Returns what it returned.
    ///
    /// # Panics
    /// When the user data exceed 65,519 octets.
    pub fn write_with(&self, out: &mut Vec<u8>, user_data: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = out.len();
        let mut builder = Builder::new(MessageType::Data, out);
        if let Some(network) = self.network_appearance {
            builder.word(Tag::NETWORK_APPEARANCE, network);
        }
        if let Some(context) = self.routing_context {
            builder.word(Tag::ROUTING_CONTEXT, context);
        }
        let mut label = [0; LABEL_LEN];
        label[..4].copy_from_slice(&self.opc.0.to_be_bytes());
        label[4..8].copy_from_slice(&self.dpc.0.to_be_bytes());
        label[8..].copy_from_slice(&[self.si.0, self.ni, self.mp, self.sls]);
        let mut written = true;
        builder.open(Tag::PROTOCOL_DATA, |out| {
            out.extend_from_slice(&label);
            written = user_data(out);
        });
        if let Some(correlation) = self.correlation_id {
            builder.word(Tag::CORRELATION_ID, correlation);
        }
        builder.finish();
        if !written {
            out.truncate(start);
        }
        written
    }

    /// The stream of an association with this many outgoing streams that carries the MSU: never 0 while there is
    /// another, the same for each link selection, so that the order holds (RFC 4666 §1.4.7).
    #[must_use]
    pub fn stream(&self, streams: u16) -> u16 {
        match streams {
            0 | 1 => 0,
            _ => 1 + u16::from(self.sls) % (streams - 1),
        }
    }
}
