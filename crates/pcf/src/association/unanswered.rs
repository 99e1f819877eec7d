//! What the audit keeps of an association whose consumer did not answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Association;

/// The room of an association that this is in.
const ROOM: &str = "audit";

/// A consumer that did not answer the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unanswered {
    /// Walks in a row in which it did not answer and the NRF did not know it.
    pub lost: u32,
    /// When it was last known to have the association: its last request or answer, in microseconds since 1970.
    pub since: u64,
}

impl Unanswered {
    /// That of an association.
    #[must_use]
    pub fn get(association: &Association) -> Option<Self> {
        serde_json::from_value(association.rooms.get(ROOM)?.clone()).ok()
    }

    /// Keeps it with an association.
    pub fn put(self, association: &mut Association) {
        if let Ok(room @ Value::Object(_)) = serde_json::to_value(self) {
            association.rooms.insert(ROOM.to_owned(), room);
        }
    }

    /// The consumer, or something else than the audit, has written the association: earlier walks do not count.
    pub fn forget(association: &mut Association) {
        association.rooms.remove(ROOM);
    }
}
