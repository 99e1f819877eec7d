//! Where a request goes, as pure code: tables of rules ([`Rules`]), lists of
//! groups of peers ([`RouteList`]). No IO; a test needs no socket.

mod lists;
mod realms;
mod rules;

pub(crate) use lists::{Choice, RouteGroup, RouteList};
pub(crate) use realms::RealmRoutes;
pub(crate) use rules::Rules;
pub(crate) use rules::find_lower;
