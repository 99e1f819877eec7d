//! Priorities of requests, for functions that refuse the least important first when they have too much to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Faults;

/// Requests of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PriorityShare {
    /// `3gpp-Sbi-Message-Priority`, 0 (most important) to 31.
    #[schemars(range(max = 31))]
    pub priority: u8,
    /// How many of the requests, relative to the other priorities.
    #[schemars(range(min = 0))]
    pub weight: f64,
}

/// Checks the priorities of a model, for which at least two are needed where the drill is about what is refused first.
pub(crate) fn validate(priorities: &[PriorityShare], overloads: bool, faults: &mut Faults) {
    let weights: f64 = priorities.iter().map(|one| one.weight).sum();
    let weighed = weights.is_finite() && weights > 0.0;
    if !priorities.is_empty() && !weighed {
        faults
            .at("priorities")
            .say("have no weight", "at least one with a weight above 0");
    }
    if let Some(one) = priorities.iter().find(|one| one.priority > 31) {
        faults
            .at("priorities")
            .say(format!("{} is not a priority", one.priority), "0 to 31");
    }
    if overloads && priorities.len() < 2 {
        faults
            .at("priorities")
            .say("are missing", "at least two, for what is discarded first");
    }
}
