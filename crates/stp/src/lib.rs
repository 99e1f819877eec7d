//! A signal transfer point (STP): it receives MSUs on M3UA links (RFC 4666), screens them, routes them by point code, and
//! translates global titles of SCCP messages to its own point codes ([docs/stp.md](../../../docs/stp.md)).
//!
//! | room | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `tables` | what settings are compiled to: routes, screening lists, translations |
//! | `state` | which links, hops and destinations are available: an immutable snapshot |
//! | `control` | states of ASPs, application servers and destinations, on the control side; makes the next snapshot |
//! | `cause` | why a message is not delivered, what the look-up of its number led to |
//! | `path` | what becomes of one MSU: discrimination, screening, translation, route; also for `why` |
//! | `link` | one association: octets in and out, bounded |
//! | `service` | the STP as a network function |
//! | `metrics`, `gauges`, `pages` | how to look inside |
//!
//! A worker reads the snapshot and puts a frame into the mailbox of the link that carries it on; it waits for nothing.
//! Management messages (ASPUP, ASPAC, DAUD and their kind) take the one lock of the control side.

mod cause;
pub mod config;
mod control;
mod gauges;
mod link;
mod metrics;
mod pages;
mod path;
mod service;
mod state;
mod tables;

pub use config::Config;
pub use function::StartError;
pub use link::is_taken as is_taken_over_sctp;
pub use service::{Running, Stp, start};
pub use tables::check_files;
