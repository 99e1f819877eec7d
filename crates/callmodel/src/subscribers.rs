//! The subscribers of the simulated network, and the nodes that they belong to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The first simulated subscriber, as the digits of an IMSI.
pub const FIRST_SUBSCRIBER: u64 = 1_010_000_000_000;

/// Subscribers in equal ranges of IMSIs, dealt to the nodes in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SubscriberRanges {
    /// The first IMSI.
    pub first: u64,
    /// IMSIs in each range.
    #[schemars(range(min = 1))]
    pub size: u64,
    /// How many ranges.
    #[schemars(range(min = 1))]
    pub count: u64,
    /// How many nodes share them.
    #[schemars(range(min = 1))]
    pub nodes: u64,
}

impl SubscriberRanges {
    /// The node that a subscriber belongs to.
    #[must_use]
    pub fn node_of(&self, imsi: u64) -> Option<u64> {
        let range = imsi.checked_sub(self.first)? / self.size.max(1);
        (range < self.count).then_some(range % self.nodes.max(1))
    }
}
