//! Which NFs there are (TS 29.510 §5.2).
//!
//! Readers look at a [`Snapshot`]: immutable, shared by all workers, swapped when something changes. A
//! change copies only the chunk it touches. Writers run on the control thread, those of one NF one after another; each
//! change is durable before it is acknowledged, then published as a new snapshot, then told as a
//! [`ProfileChange`] to the subscriptions, in that order.

mod change;
mod entry;
mod record;
pub(crate) mod registrar;
mod snapshot;

pub use change::{ChangeKind, ProfileChange};
pub use entry::{Entry, MAX_SERVICES, ProfileFault};
pub(crate) use entry::{Visible, fingerprint};
pub(crate) use record::{ProfileRecord, SubscriptionRecord};
pub use sbi::json::patch::PatchFault;
pub use snapshot::{Reader, Snapshot, TypeTable};
