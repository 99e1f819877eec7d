//! Where a request goes, as pure code: what rules look at ([`View`]), tables of rules ([`Rules`]), lists of
//! groups of peers ([`RouteList`]). No IO; a test needs no socket.

mod identity;
mod lists;
mod realms;
mod rules;

pub(crate) use identity::{Digits, impi, impu, imsi, ipv4, ipv6, msisdn};
pub(crate) use lists::{Choice, RouteGroup, RouteList};
pub(crate) use realms::RealmRoutes;
pub(crate) use rules::find_lower;
pub(crate) use rules::{Rules, View};
