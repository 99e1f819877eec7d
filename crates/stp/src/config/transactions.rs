//! Transactions that keep their node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;

/// Transactions of TCAP with groups of `mode: transaction`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Transactions {
    /// Identifiers of transactions that are kept, two for each transaction with a dialogue in both directions, about 100 octets each. Of
    /// a full table those go that were not used lately.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub number: usize,
    /// How long one is kept after its last message.
    pub timeout: Period,
}

impl Default for Transactions {
    fn default() -> Self {
        Self {
            number: 200_000,
            timeout: Period::from_secs(120),
        }
    }
}
