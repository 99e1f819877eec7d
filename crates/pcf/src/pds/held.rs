//! What an association keeps of its sources: the subscriptions, which must be ended, and the counters, which only come
//! with notifications.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::association::Association;
use crate::association::sy::SySession;

/// The room of an association that has it.
const ROOM: &str = "pds";

/// Subscriptions and counters of an association.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Held {
    /// URI of the subscription to policy data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) udr: Option<String>,
    /// URI of the subscription to policy counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chf: Option<String>,
    /// The session with an OCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sy: Option<SySession>,
    /// The version of the counters in the record of the Sy session; 0: it has none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) serial: u64,
    /// `PolicyCounterInfo` by identifier.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) counters: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Held {
    /// That of an association.
    pub(crate) fn of(association: &Association) -> Self {
        let room = association.rooms.get(ROOM);
        room.and_then(|room| Self::deserialize(room).ok())
            .unwrap_or_default()
    }

    /// Keeps it with an association.
    pub(crate) fn keep(&self, association: &mut Association) {
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) if !members.is_empty() => {
                association.rooms.insert(ROOM.to_owned(), Value::Object(members));
            }
            _ => drop(association.rooms.shift_remove(ROOM)),
        }
    }
}
