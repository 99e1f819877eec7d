//! Delegated discovery (Model D): the SCP sends the query of the `3gpp-Sbi-Discovery-*` headers to the NRF and caches
//! the answer for its `validityPeriod`.

mod cache;
pub(crate) mod local;
mod vouched;

pub(crate) use cache::Shown;
pub use cache::{Cache, Found, Lookup};
pub use local::local;
pub use routing::query::DiscoveryQuery;
pub(crate) use vouched::Vouched;
