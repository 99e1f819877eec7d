//! The HTTP/2 server of a worker.
//!
//! [`serve`] accepts connections from one listener (bound with `SO_REUSEPORT`, so each worker has its own)
//! and drives each in a task of the worker. The way of a request:
//!
//! ```text
//! accept ─ TLS? ─ preface ─┬─ headers ─ rate? ─ body (bounded in size and time) ─ Service::call ─ answer
//!                          └─ … many at once, answered in any order; all that is ready leaves in one write
//! ```

mod config;
mod connection;
mod exchange;
mod listen;
mod stats;

pub use config::ServerConfig;
pub use listen::{bind, serve};
pub use stats::{ServerStats, StatsSnapshot};
