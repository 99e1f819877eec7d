//! Whether the policy refuses an association that stands: its consumer is asked to end it until a later decision allows it. No IO.

use serde_json::Value;

use super::Association;

/// The room of an association that says so.
const ROOM: &str = "refused";
/// The cause for which an association is to end that a policy refuses (TS 29.512 §5.6.3.7).
pub const CAUSE: &str = "UE_SUBSCRIPTION";

/// The policy refuses an association.
pub fn note(association: &mut Association) {
    association.rooms.insert(ROOM.to_owned(), Value::Bool(true));
}

/// A decision allows an association.
pub fn forget(association: &mut Association) {
    association.rooms.shift_remove(ROOM);
}

/// Whether a request to end an association for this cause is past: a later decision allows the association.
#[must_use]
pub fn is_past(association: &Association, cause: &str) -> bool {
    cause == CAUSE && !association.rooms.contains_key(ROOM)
}
