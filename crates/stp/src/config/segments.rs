//! Reassembly of segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;

/// Reassembly of segments (Q.714 §4.1.1.2.3) that are addressed to subsystems of this STP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Segments {
    /// T(reass): how long the segments of a message may take. The first one returns then.
    pub timeout: Period,
    /// Messages from one application server or link set of which segments are awaited, with 4,096 octets for each on average.
    /// Further ones return.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub messages: usize,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            timeout: Period::from_secs(10),
            messages: 1_024,
        }
    }
}
