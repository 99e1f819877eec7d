//! The traffic of an NRF (TS 29.510), made from a call model.
//!
//! - [`population`]: the registered functions, and how they fall into sets, groups and places;
//! - [`profiles`]: their profiles, of exactly the sizes that the model gives;
//! - [`queries`]: the discoveries, and how many profiles each must find;
//! - [`subscriptions`]: who subscribes to what, and how many notifications a change causes;
//! - [`setup`]: registering and subscribing it all before the load;
//! - [`traffic`]: the load itself, and the judge of its answers.

pub mod queries;
pub mod setup;
pub mod subscriptions;
pub mod traffic;

#[cfg(test)]
mod tests;

pub use callmodel::subscribers::FIRST_SUBSCRIBER;
pub use queries::{Kind, Queries};
pub use simulators::network::population::{self, Function, Population};
pub use simulators::network::profiles;
pub use subscriptions::{Condition, Plan};
pub use traffic::{Expected, NrfWorkload};

/// How many subscribers this network has.
pub const SUBSCRIBERS: u64 = 1_000_000;
/// First subscriber whose group only another NRF knows.
pub const FIRST_REMOTE_SUBSCRIBER: u64 = 1_019_000_000_000;
/// The group that only another NRF knows.
pub const REMOTE_GROUP: &str = "udm-group-remote";
