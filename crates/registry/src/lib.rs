//! Registered NF profiles as an NRF keeps them (TS 29.510 §5.2). No store, no runtime: an NRF brings both.
//!
//! Readers read a [`Snapshot`]: immutable, shared by all workers, replaced when something changes. A change copies
//! only the chunk that it touches. The NRF makes a change durable ([`ProfileRecord`]) before it acknowledges it, then
//! publishes it as a new snapshot, then matches it as a [`ProfileChange`] against the subscriptions, in that order.

mod change;
mod entry;
mod fault;
mod fingerprint;
mod reading;
mod record;
mod snapshot;
mod still;
mod visible;

pub use change::{ChangeKind, ProfileChange};
pub use entry::{Entry, MAX_SERVICES};
pub use fault::ProfileFault;
pub use fingerprint::fingerprint;
pub use reading::Reading;
pub use record::{ProfileRecord, SubscriptionRecord};
pub use snapshot::{Reader, Snapshot, TypeTable};
pub use visible::Visible;
