//! Which NF profiles a discovery is about (TS 29.510 §5.3.2.2, §6.2.3.2.3.1): queries, and the tests on profiles
//! that their parameters stand for. No IO, no clock, and nothing of how profiles are kept, so that a registry and a
//! proxy that has learned a part of the network judge alike.
//!
//! * [`Query`]: a query string, parsed once: tests, a filter of services, preferences.
//! * [`Requester`]: who asks, and whether `allowed…` of profile and service let it in.
//! * [`params`]: the parameters by subject.
//! * [`Localities`]: what an operator makes of `preferred-locality`.

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

pub use fault::ParamFault;
pub use locality::{Localities, LocationType, Nearness, PreferredLocation};
pub use preferences::preferred_search;
pub use query::{Preferences, Query, ServiceFilter, VendorFeatures};
pub use requester::Requester;
pub use service_instance::ServiceInstance;
pub use test::{Param, Test};
pub use version::VersionIndication;
