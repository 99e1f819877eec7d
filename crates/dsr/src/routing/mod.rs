//! Where a request goes, as pure code: what rules look at ([`View`]), tables of rules ([`Rules`]), lists of
//! groups of peers ([`RouteList`]). No IO; a test needs no socket.

mod identity;
mod lists;
mod rules;

pub use identity::{Digits, impi, impu, imsi, ipv4, ipv6, msisdn};
pub use lists::{Choice, RouteGroup, RouteList};
pub(crate) use rules::find_lower;
pub use rules::{Rules, View};
