//! The Diameter signaling router (RFC 6733 §2.8: relay, proxy and redirect handling in one).
//!
//! A tour, from the wire inwards:
//! * [`service`] wires everything into a runnable: workers (message processors), their nodes, the way a
//!   configuration reaches them.
//! * [`router`] is the way of a message, one screen per direction: a request comes in, is looked at, routed and
//!   sent on, perhaps by another worker; its answer goes back, or the request goes elsewhere.
//! * [`routing`]: tables of rules, route lists, groups, subscriber identities, as pure code.
//! * [`gate`], [`congestion`]: what is let in and out, and what goes under too much load, as pure code. [`telling`]:
//!   what neighbours are told of it.
//! * [`rbar`]: address resolution by ranges. [`hiding`]: names that foreign networks may not see. [`edit`]: how
//!   messages are changed for both.
//! * [`watch`]: indicators and alarms, on a thread of their own.
//! * [`snapshot`]: a configuration compiled into what workers read. It is swapped as a whole while they run.
//! * [`registry`]: which neighbours there are and how they stand.
//! * [`events`]: what can happen, each with its counter; [`metrics`] and [`pages`]: how to look inside.
//! * `listen` and `peers`: who the router is, where it listens, whom its workers connect to. `keys`: the TLS files of
//!   both, which may change.
//! * [`config`]: every setting, documented where it is defined.
//!
//! The sockets, peer machines, watchdogs and pending requests are crate `diameter`'s.

pub mod config;
pub mod congestion;
pub mod edit;
pub mod error;
pub mod events;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
pub mod hiding;
mod keys;
mod listen;
pub mod metrics;
pub mod pages;
mod peers;
pub mod rbar;
pub mod registry;
pub mod router;
pub mod routing;
pub mod service;
pub mod snapshot;
pub mod telling;
mod trace;
pub mod watch;

pub use config::Config;
pub use error::StartError;
pub use events::Event;
pub use pages::{PeerRow, RouteRow};
pub use service::{LIVE, Running, start};
pub use watch::IndicatorRow;
