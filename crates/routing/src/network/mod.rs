//! What the SCP knows of the network: producers, their services, endpoints and sets.
//!
//! A [`Network`] is immutable. Whoever learns something (a notification, an audit, a static entry) makes a
//! new one and swaps it in, so the data path reads without a lock and a request finishes with the network
//! it began with.

mod admission;
mod profile;
mod snapshot;

pub use admission::Applicant;
pub use admission::service_of;
pub use profile::{Endpoint, NfStatus, Notification, Producer, ProducerService, ProfileError, Scheme};
pub use snapshot::{Network, ServiceRef};
