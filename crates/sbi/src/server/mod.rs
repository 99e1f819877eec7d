//! The HTTP/2 server of a worker.
//!
//! An [`Interface`] is what a function offers: its addresses, each with a listener per worker.
//! [`serve`] accepts connections from one listener (bound with `SO_REUSEPORT`, so each worker has its own)
//! and drives each in a task of the worker. The way of a request:
//!
//! ```text
//! accept ─ TLS? ─ preface ─┬─ headers ─ rate? size? ─ body (bounded in size and time) ─ Service::call ─ answer
//!                          └─ … many at once, answered in any order; all that is ready leaves in one write
//! ```
//!
//! A newcomer beyond the limit of connections takes the place of the one that is idle for longest (`places`),
//! and what all connections of the worker hold together is bounded (`crate::memory`).
//!
//! A browser, or `curl` without options, speaks HTTP/1: it is served where the service has HTTP/1.1, and gets one answer that says
//! what this port is elsewhere (`http1`).
//!
//! Every limit is a setting of [`ServerConfig`] and a count in [`ServerStats`]. The engine bounds what it
//! keeps; what a peer may *do* per second is watched on the bytes before they reach the engine.

mod activity;
mod config;
mod connection;
mod forwarded;
mod host;
mod http1;
mod interface;
mod listen;
mod places;
mod preface;
mod rate;
mod refusal;

pub use crate::stats::{ServerStats, StatsSnapshot};
pub use config::ServerConfig;
pub use interface::{Interface, InterfaceError};
pub use listen::serve;
pub use worker::bind;
