//! The Diameter signaling router (RFC 6733 §2.8: relay, proxy and redirect handling in one).
//!
//! A tour, from the wire inwards:
//! * `service`: the router as a network function, and the life of a worker (a message processor) with its nodes. `shared`:
//!   what workers share with the control thread. `derived`: what a configuration becomes.
//! * `router` is the path of a message, one screen per direction: a request is examined, routed and sent on, perhaps by
//!   another worker; its answer goes back, or the request goes elsewhere.
//! * `routing`: tables of rules, route lists, groups, subscriber identities, as pure code.
//! * `gate`, `congestion`, `obedience`: rates and overload control, as pure code. `load_report`: our load, reported to
//!   neighbours.
//! * `demands`: parts of throttle rates by demand, also of siblings. `remote`: what other routers show.
//! * `redirects`: routes of redirect indications.
//! * `hosting`: what applications need of the router. They are crates of their own on the contract `dsr_app`: `dsr_rbar`,
//!   `dsr_eir`, `dsr_fabr`, `dsr_dsa`, `dsr_pdra` and `dsr_ocdra` so far. `router` runs them.
//! * `hiding`: names that foreign networks may not see. `edit`: how messages are changed for it, for applications and for
//!   `mediation`: rules that change messages.
//! * `watch`: indicators, alarms, traces and files of measurements, on the control thread.
//! * `snapshot`: a configuration compiled into what workers read. It is swapped as a whole while they run.
//! * `measures`: what rules, lists, groups and trace points did, and transactions by result.
//! * `registry`: the neighbours and their state.
//! * `incidents`: connections that were refused or failed, in words, by reason, as alarms.
//! * `administration`: peers that an operator drains, disables, enables or reconnects.
//! * `why`: what would become of a message. [`replay`]: what the security application would find in a capture.
//! * `events`: what can happen, each with its counter; [`metrics`], `pages` and `rows`: how to look inside.
//! * `listen` and `peers`: identities and listeners, and the peers that workers connect to.
//! * [`config`]: every setting, documented where it is defined.
//!
//! The sockets, peer machines, watchdogs and pending requests are crate `diameter`'s.

mod administration;
pub mod config;
mod congestion;
mod demands;
mod derived;
mod edit;
mod events;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod hiding;
mod hosting;
mod incidents;
mod listen;
mod load_report;
mod measures;
mod mediation;
pub mod metrics;
mod obedience;
mod pages;
mod peers;
#[doc(hidden)]
pub mod probes;
mod redirects;
mod registry;
mod remote;
pub mod replay;
mod router;
mod routing;
mod rows;
mod service;
mod shared;
mod snapshot;
mod trace;
mod watch;
mod why;

pub use administration::Verb;
pub use config::{Config, check_files};
pub use events::Event;
pub use function::StartError;
pub use registry::{ByHost, Hop, HopState};
pub use rows::{ApplicationRow, IndicatorRow, MeasureRow, PeerRow, RouteRow, ThrottleRow, TraceRow};
pub use service::{Running, start};
pub use shared::Dsr;
pub use snapshot::Snapshot;
pub use watch::alarms::ALARMS;
