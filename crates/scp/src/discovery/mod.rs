//! Delegated discovery (Model D): what the consumer asks for in `3gpp-Sbi-Discovery-*` headers, the SCP asks
//! the NRF, and remembers for as long as the NRF said.

mod cache;
pub(crate) mod local;
mod vouched;

pub(crate) use cache::Shown;
pub use cache::{Cache, Found, Lookup};
pub use local::local;
pub use routing::query::DiscoveryQuery;
pub(crate) use vouched::Vouched;
