//! What an operator has set on this instance, in the store: it outlives a restart.

use serde::{Deserialize, Serialize};
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

use crate::state::State;

/// What an operator has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorSettings {
    /// The instance that it holds for: others may use the same store.
    nf_instance_id: String,
    pub(crate) state: State,
}

impl OperatorSettings {
    pub(crate) fn new(nf_instance_id: &str) -> Self {
        Self {
            nf_instance_id: nf_instance_id.to_owned(),
            state: State::Serving,
        }
    }
}

impl Record for OperatorSettings {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_operator",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.nf_instance_id.as_bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Texts and flags: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
    }
}
