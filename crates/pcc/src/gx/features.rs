//! Supported-Features of Gx (TS 29.212 §5.4.1): lists 1 and 2 of 3GPP.

use diameter_proto::known::{self, VENDOR_3GPP};
use diameter_proto::{Avp, AvpFlags, AvpWriter, Avps, Fault};

use crate::avp;

/// What both sides can do, as bits of feature lists 1 and 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Feature-List with Feature-List-ID 1.
    pub first: u32,
    /// Feature-List with Feature-List-ID 2.
    pub second: u32,
}

impl Features {
    /// PCSCF-Restoration-Enhancement (list 1).
    pub const PCSCF_RESTORATION: u32 = 1 << 24;
    /// What this crate supports: Rel8, Rel9, ProvAFsignalFlow, Rel10, SponsoredConnectivity, ADC, NetLoc, UMCH,
    /// PCSCF-Restoration-Enhancement (list 1).
    pub const OURS: Self = Self {
        first: 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 10 | 1 << 11 | Self::PCSCF_RESTORATION,
        second: 0,
    };

    /// Reads the lists of a message; `None`: it has none. Without the M flag, one that cannot be read counts as absent: nothing depends
    /// on it.
    pub(crate) fn read(avps: Avps<'_>) -> Result<Option<Self>, Fault> {
        let mut features = None;
        avp::walk(avps, |avp| {
            if !avp.is(known::SUPPORTED_FEATURES) {
                return Ok(());
            }
            let (vendor, id, list) = match Self::list(avp) {
                Ok(read) => read,
                Err(fault) if avp.flags.contains(AvpFlags::MANDATORY) => return Err(fault),
                Err(_) => return Ok(()),
            };
            if vendor == VENDOR_3GPP {
                let features = features.get_or_insert_with(Self::default);
                match id {
                    1 => features.first |= list,
                    2 => features.second |= list,
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(features)
    }

    /// Vendor, number and bits of a list.
    fn list(avp: &Avp<'_>) -> Result<(u32, u32, u32), Fault> {
        let group = avp.group();
        let vendor = group.clone().require(known::VENDOR_ID)?;
        let id = group.clone().require(known::FEATURE_LIST_ID)?;
        Ok((vendor, id, group.require(known::FEATURE_LIST)?))
    }

    /// What both have.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self {
            first: self.first & other.first,
            second: self.second & other.second,
        }
    }

    /// Appends the lists; an empty second one is left out.
    pub fn put(self, out: &mut AvpWriter) {
        for (id, list) in [(1, self.first), (2, self.second)] {
            if id == 1 || list != 0 {
                out.group(known::SUPPORTED_FEATURES, |out| {
                    out.put(known::VENDOR_ID, VENDOR_3GPP)
                        .put(known::FEATURE_LIST_ID, id)
                        .put(known::FEATURE_LIST, list);
                });
            }
        }
    }
}
