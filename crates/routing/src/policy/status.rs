//! What the status of a producer means for the choice (TS 29.510 §6.1.6.3.7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::Phase;
use crate::network::NfStatus;

/// What becomes of producers that have missed their heart-beats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Suspended {
    /// They are tried when nobody else is left: a silent NF may only have lost its NRF.
    #[default]
    Last,
    /// They are not chosen, as if they had deregistered.
    Never,
    /// They are chosen as the others: only failures count.
    Same,
}

/// What `nfStatus` and `nfServiceStatus` mean for the choice among producers. Whom a request names is tried
/// whatever its status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StatusProcessing {
    /// `SUSPENDED`, and statuses of later releases.
    pub suspended: Suspended,
    /// Whether requests that begin a conversation may go to an `UNDISCOVERABLE` producer when nobody else is left.
    /// Those that go on with one always may: it is shutting down and serves what it has.
    pub begin_at_undiscoverable: bool,
}

/// What a producer may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Anything.
    All,
    /// What nobody else can take.
    WhatIsLeft,
    /// Nothing.
    Nothing,
}

impl StatusProcessing {
    /// What a producer of this status may get of the requests of this phase.
    #[must_use]
    pub fn takes(&self, status: NfStatus, phase: Phase) -> Takes {
        match (status, phase, self.suspended) {
            (NfStatus::Registered, ..)
            | (NfStatus::Undiscoverable, Phase::Subsequent, _)
            | (NfStatus::Suspended, _, Suspended::Same) => Takes::All,
            (NfStatus::Undiscoverable, Phase::Initial, _) if !self.begin_at_undiscoverable => Takes::Nothing,
            (NfStatus::Suspended, _, Suspended::Never) => Takes::Nothing,
            (NfStatus::Undiscoverable | NfStatus::CanaryRelease | NfStatus::Suspended, ..) => {
                Takes::WhatIsLeft
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_phases() {
        let usual = StatusProcessing::default();
        let takes = |status| [Phase::Initial, Phase::Subsequent].map(|phase| usual.takes(status, phase));
        assert_eq!(takes(NfStatus::Registered), [Takes::All; 2]);
        assert_eq!(takes(NfStatus::Undiscoverable), [Takes::Nothing, Takes::All]);
        assert_eq!(takes(NfStatus::Suspended), [Takes::WhatIsLeft; 2]);
        let of = |suspended| {
            let settings = StatusProcessing {
                suspended,
                begin_at_undiscoverable: true,
            };
            [NfStatus::Suspended, NfStatus::Undiscoverable]
                .map(|status| settings.takes(status, Phase::Initial))
        };
        assert_eq!(of(Suspended::Never), [Takes::Nothing, Takes::WhatIsLeft]);
        assert_eq!(of(Suspended::Same), [Takes::All, Takes::WhatIsLeft]);
    }
}
