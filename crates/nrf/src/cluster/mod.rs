//! Several NRFs of a set on one database (TS 29.510 §5.1, NRF set): what each of them writes for the others, and what it
//! makes of what the others have written.
//!
//! * [`record`]: the tables. The *journal* has one record for each NF instance and subscription that has changed, written
//!   in the batch of the change, so it has the version of the change; one *member* for each running NRF; *beats*, the
//!   heart-beats that a member received, which are not worth a durable write each.
//! * [`membership`]: who is a member at which moment, and which of them serves a subscription or audits an instance. Pure.
//! * [`schedule`]: from which version on the journal is read. Pure.
//! * [`member`]: writes and reads all of that. `follow`: the task that does it every `poll`, and hands it to the registrar
//!   ([`handoff`]). [`sweep`]: removes what is old.
//!
//! **Who notifies.** The version of a change is its time. Each subscription has one owner among the members of that time
//! (rendezvous hashing of its id), and only the owner sends the notification, whichever NRF made the change. A new member
//! begins a moment after its record is visible, so that all agree. A member whose record stands still is marked dead, by one
//! conditional write; the next owners read the journal from the version up to which it had delivered, and send the present
//! state of what has changed: nothing is lost, something may arrive twice.

mod follow;
mod handoff;
mod member;
mod membership;
mod record;
mod schedule;
mod sweep;

pub(crate) use follow::{MEMBER_DEAD, follow};
pub(crate) use handoff::{Drift, Handoff};
pub(crate) use member::Cluster;
pub(crate) use membership::View;
pub(crate) use record::{Beat, ChangeRecord, Key};

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 by this machine's clock, the unit of `store::Version`.
pub(crate) fn micros() -> u64 {
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
}
