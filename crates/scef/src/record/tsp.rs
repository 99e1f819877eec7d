//! What is stored for servers that trigger devices over Tsp.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Id, as_json};

/// An SCS, and by what it knows a trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scs {
    /// Its Origin-Host, in lower case.
    pub(crate) host: String,
    pub(crate) realm: String,
    /// SCS-Identity, in Base64.
    pub(crate) identity: Option<String>,
    /// Reference-Number of the SCS.
    pub(crate) reference: u32,
}

/// A report about a trigger that its SCS has not answered yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TriggerReport {
    pub(crate) id: Id,
    pub(crate) scs: Scs,
    /// The members of a resource of T8 that name the device.
    pub(crate) device: Value,
    /// Delivery-Outcome.
    pub(crate) outcome: i32,
    /// When it is sent next, in microseconds since 1970.
    pub(crate) due: u64,
    /// When it is dropped, in microseconds since 1970.
    pub(crate) expires: u64,
}

impl TriggerReport {
    /// By [`TriggerReport::due`].
    pub(crate) const DUE: Index = Index(0);
}

impl Record for TriggerReport {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_trigger_report",
        indexes: &[
            IndexSchema::many("due").ordered(),
            IndexSchema::many("expiry").ordered(),
        ],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(1));

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DUE, &self.due.to_be_bytes());
    }

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    as_json!();
}
