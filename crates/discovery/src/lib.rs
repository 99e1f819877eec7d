//! Queries of a discovery and the tests on NF profiles that their parameters stand for (TS 29.510 §5.3.2.2,
//! §6.2.3.2.3.1). The crate has no IO, no clock and no storage, so that the NRF and an SCP with a part of the profiles
//! decide alike.
//!
//! * [`Query`]: a query string, parsed once: tests, a filter of services, preferences.
//! * [`Requester`]: the consumer, and whether `allowed…` of profile and service admit it.
//! * [`params`]: the parameters by subject.
//! * [`Localities`]: the operator's mapping of `preferred-locality`.

mod complex;
mod fault;
mod locality;
pub mod params;
mod preferences;
mod query;
mod requester;
mod service_instance;
mod test;
mod version;
mod view;
mod whom;

pub use fault::ParamFault;
pub use locality::{Localities, LocationType, Nearness, PreferredLocation};
pub use preferences::preferred_search;
pub use query::{Preferences, Query, ServiceFilter, VendorFeatures};
pub use requester::Requester;
pub use service_instance::ServiceInstance;
pub use test::{Param, Test};
pub use version::VersionIndication;
pub use whom::Whom;
