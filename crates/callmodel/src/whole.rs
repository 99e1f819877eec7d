//! Calls through every function: registration, PDU session, IMS voice call, release.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

use crate::policy::Source;

/// Calls through a whole core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CoreModel {
    /// Calls per second.
    pub calls: f64,
    /// Subscribers that the UDR has; calls are of one after the other.
    #[schemars(range(min = 1))]
    pub subscribers: u64,
    /// The UDR with the policy data (TS 29.519).
    pub udr: Source,
    /// The CHF with the policy counters (TS 29.594).
    pub chf: Source,
}

impl Validate for CoreModel {
    fn validate(&self, faults: &mut Faults) {
        if !self.calls.is_finite() || self.calls <= 0.0 {
            faults
                .at("calls")
                .say("is not a rate", "calls per second, above 0");
        }
        if self.subscribers == 0 {
            faults.at("subscribers").say("is 0", "at least 1");
        }
    }
}
