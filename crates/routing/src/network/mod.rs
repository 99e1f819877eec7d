//! The producers that the SCP knows: their services, endpoints and sets.
//!
//! A [`Network`] is immutable. A notification, an audit or a static entry makes the SCP build a new one and swap
//! it in, so the data path reads without a lock and a request finishes with the network it began with.

mod admission;
mod profile;
mod snapshot;

pub use admission::Applicant;
pub use admission::service_of;
pub use profile::{Endpoint, NfStatus, Notification, Producer, ProducerService, ProfileError, Scheme};
pub use snapshot::{Network, ServiceRef};
