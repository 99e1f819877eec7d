//! The NF instance that has created an association, where it has proved its identity.

use super::Association;

/// The room of an association that has it.
const ROOM: &str = "consumer";

/// Keeps the instance that an association is of.
pub(crate) fn keep(association: &mut Association, instance: &str) {
    association.rooms.insert(ROOM.to_owned(), instance.into());
}

/// The instance that an association is of.
pub(crate) fn of(association: &Association) -> Option<&str> {
    association.rooms.get(ROOM)?.as_str()
}
