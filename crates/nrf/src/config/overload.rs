//! Overload control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Discards by percentage at load levels; the load is the CPU time of the busiest worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Overload {
    /// Levels by rising load; none: nothing is discarded.
    pub levels: Vec<OverloadLevel>,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct OverloadLevel {
    /// The level begins at this load, in percent of a core.
    pub onset: u8,
    /// It ends below this load.
    pub abatement: u8,
    /// Share of discoveries that is discarded, in percent.
    pub discard_discovery: u8,
    /// Share of token requests that is discarded, in percent.
    pub discard_tokens: u8,
    /// Share of new subscriptions that is discarded, in percent. Registrations and heart-beats never are.
    pub discard_subscriptions: u8,
    /// Messages of this priority or more important (0 to 31) are never discarded.
    pub spare_priority: u8,
}

impl Default for OverloadLevel {
    fn default() -> Self {
        Self {
            onset: 90,
            abatement: 85,
            discard_discovery: 0,
            discard_tokens: 0,
            discard_subscriptions: 0,
            spare_priority: 4,
        }
    }
}

impl Validate for Overload {
    fn validate(&self, faults: &mut Faults) {
        for (i, level) in self.levels.iter().enumerate() {
            if level.abatement >= level.onset {
                faults
                    .at(format!("levels[{i}].abatement"))
                    .say("is not below onset", "less than onset");
            }
            if [
                level.discard_discovery,
                level.discard_tokens,
                level.discard_subscriptions,
            ]
            .iter()
            .any(|p| *p > 100)
            {
                faults
                    .at(format!("levels[{i}]"))
                    .say("discards more than everything", "0 to 100 percent");
            }
        }
    }
}
