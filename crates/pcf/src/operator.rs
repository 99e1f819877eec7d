//! What an operator has set on this instance, in the store: it outlives a restart.

use function::operator::Operated;
use serde::{Deserialize, Serialize};
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// What an operator has set.
pub(crate) type OperatorSettings = function::operator::OperatorSettings<OfPcf>;

/// The owner of the table.
pub(crate) enum OfPcf {}

impl Operated for OfPcf {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_operator",
        indexes: &[],
        by_modified: false,
        sql: None,
    };
}

/// Subscribers that an operator traces at an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TracedSubscribers {
    /// The instance: others may use the same store.
    pub(crate) nf_instance_id: String,
    /// As the operator has named them.
    pub(crate) subscribers: Vec<String>,
}

impl Record for TracedSubscribers {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_traced",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.nf_instance_id.as_bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
    }
}
