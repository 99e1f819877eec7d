//! An IP front end: clients connect to one address (a target set address, TSA), and their connections are spread
//! over the message processors (DA-MPs) behind it. A processor that is congested gets no new connections and keeps
//! those it has.
//!
//! It works on TCP connections, below Diameter: bytes go from socket to socket through a pipe of the kernel
//! (`splice`), so that a connection costs descriptors, not buffers, and TLS passes as it is.
//!
//! | file | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `backend` | the processors behind an address: who gets the next connection |
//! | `check` | asks processors whether they take connections |
//! | `splice` | one connection: bytes from here to there |
//! | `service` | the front end as a network function |
//! | `metrics`, `pages` | how to look inside |

mod backend;
mod check;
pub mod config;
mod metrics;
mod pages;
mod service;
mod splice;

pub use backend::BackendRow;
pub use config::Config;
pub use function::StartError;
pub use service::{Ipfe, Running, start};
