//! Supported-Features of Gx (TS 29.212 §5.4.1): lists 1 and 2 of 3GPP.

use diameter_proto::known::{self, VENDOR_3GPP};
use diameter_proto::{AvpWriter, Avps, Fault};

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

    /// Reads the lists of a message.
    pub(crate) fn read(avps: Avps<'_>) -> Result<Self, Fault> {
        let mut features = Self::default();
        avp::walk(avps, |avp| {
            if !avp.is(known::SUPPORTED_FEATURES) {
                return Ok(());
            }
            let group = avp.group();
            if group.clone().require(known::VENDOR_ID)? != VENDOR_3GPP {
                return Ok(());
            }
            let list = group.clone().require(known::FEATURE_LIST)?;
            match group.require(known::FEATURE_LIST_ID)? {
                1 => features.first |= list,
                2 => features.second |= list,
                _ => {}
            }
            Ok(())
        })?;
        Ok(features)
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
