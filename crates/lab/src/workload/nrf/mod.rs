//! The traffic of an NRF (TS 29.510), made from a call model.
//!
//! - [`population`]: which functions there are, and how they fall into sets, groups and places;
//! - [`profiles`]: their profiles, of exactly the sizes the model says;
//! - [`queries`]: the discoveries, and how many profiles each must find;
//! - [`subscriptions`]: who subscribes to what, and how many notifications a change causes;
//! - [`setup`]: registering and subscribing it all before the load;
//! - [`traffic`]: the load itself, and the judge of its answers.

pub mod population;
pub mod profiles;
pub mod queries;
pub mod setup;
pub mod subscriptions;
pub mod traffic;

#[cfg(test)]
mod tests;

pub use population::{Function, Population};
pub use queries::{Kind, Queries};
pub use subscriptions::{Condition, Plan};
pub use traffic::{Expected, NrfWorkload};

/// First subscriber of this network, as the digits of a SUPI.
pub const FIRST_SUBSCRIBER: u64 = 1_010_000_000_000;
/// How many subscribers this network has.
pub const SUBSCRIBERS: u64 = 1_000_000;
/// First subscriber whose group only another NRF knows.
pub const FIRST_REMOTE_SUBSCRIBER: u64 = 1_019_000_000_000;
/// The group that only another NRF knows.
pub const REMOTE_GROUP: &str = "udm-group-remote";
