//! Settings of the simulated peers of a PCF.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Subscribers that a UDR knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PolicySubscribers {
    /// First subscriber: the digits of a SUPI.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

impl Default for PolicySubscribers {
    fn default() -> Self {
        Self {
            first: 1_010_000_000_000,
            count: 1_000_000,
        }
    }
}

/// Policy counters that a CHF has for every subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PolicyCounters {
    /// The status of each, by its identifier.
    pub statuses: BTreeMap<String, String>,
}

impl Default for PolicyCounters {
    fn default() -> Self {
        let statuses = [("monthly", "normal"), ("daily", "normal")];
        Self {
            statuses: statuses
                .map(|(id, status)| (id.to_owned(), status.to_owned()))
                .into(),
        }
    }
}
