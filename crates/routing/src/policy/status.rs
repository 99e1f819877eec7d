//! How the status of a producer affects its selection (TS 29.510 §6.1.6.3.7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::Phase;
use crate::network::NfStatus;

/// Selection of producers that have missed their heart-beats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Suspended {
    /// The SCP selects them only when no other producer is available: the NF may only have lost its NRF.
    #[default]
    Last,
    /// The SCP does not select them, as if they had deregistered.
    Never,
    /// The SCP selects them like the others: only failed requests count.
    Same,
}

/// How `nfStatus` and `nfServiceStatus` affect the selection of producers. The SCP tries a producer that the request
/// names whatever its status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StatusProcessing {
    /// `SUSPENDED`, and statuses of later releases.
    pub suspended: Suspended,
    /// Whether initial requests of a conversation may go to an `UNDISCOVERABLE` producer when no other producer is
    /// available. Subsequent requests always may: such a producer is shutting down and serves its resources.
    pub begin_at_undiscoverable: bool,
}

/// Requests that a producer may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// All requests.
    All,
    /// Requests for which no other producer is available.
    WhatIsLeft,
    /// No requests.
    Nothing,
}

impl StatusProcessing {
    /// Returns which requests of this phase a producer of this status may get.
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
