//! What an association keeps of its sources: the subscriptions, which must be ended, and the counters, which only come
//! with notifications.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::upkeep::Upkeep;
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
    /// The upkeep of the subscription to policy data.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) udr_upkeep: Upkeep,
    /// The upkeep of the subscription to policy counters, or of the session with the OCS.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) counters_upkeep: Upkeep,
    /// When one of them is due, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<u64>,
    /// When the UDR has notified of changed policy data last, in milliseconds since 1970: what a PCF has read before is old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<u64>,
}

fn is_default(upkeep: &Upkeep) -> bool {
    *upkeep == Upkeep::default()
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
        let upkeeps = [
            (self.udr_upkeep, self.udr.is_some()),
            (self.counters_upkeep, self.chf.is_some()),
        ];
        let upkeeps = upkeeps
            .into_iter()
            .filter(|(upkeep, stands)| *stands || upkeep.lacks);
        let held = Self {
            due: upkeeps.filter_map(|(upkeep, _)| upkeep.due()).min(),
            ..self.clone()
        };
        match serde_json::to_value(held) {
            Ok(Value::Object(members)) if !members.is_empty() => {
                association.rooms.insert(ROOM.to_owned(), Value::Object(members));
            }
            _ => drop(association.rooms.shift_remove(ROOM)),
        }
    }
}
