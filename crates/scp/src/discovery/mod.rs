//! Delegated discovery (Model D): what the consumer asks for in `3gpp-Sbi-Discovery-*` headers, the SCP asks
//! the NRF, and remembers for as long as the NRF said.

mod cache;
mod local;
mod query;
mod vouched;

pub use cache::{Cache, CacheStats, Found, Lookup};
pub(crate) use local::judge;
pub use local::local;
pub use query::{DiscoveryQuery, QueryFault};
pub(crate) use vouched::Vouched;
