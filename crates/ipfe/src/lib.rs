//! An IP front end: clients connect to one address (a target set address, TSA), and their connections are spread
//! over the message processors (DA-MPs) behind it. A processor that is congested gets no new connections and keeps
//! those it has. In the other direction (egress) message processors reach servers through it, under one address.
//!
//! It works on TCP connections, below Diameter: bytes go from socket to socket through a pipe of the kernel
//! (`splice`), so that a connection costs descriptors, not buffers, and TLS passes as it is.
//!
//! | file | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `backend` | the processors or servers behind an address: which of them gets the next connection |
//! | `check` | checks whether processors take connections |
//! | `pair` | active or standby: which of two front ends listens |
//! | `accept` | a worker's listeners: from a client to a processor, or from a processor to a server |
//! | `handshakes` | clients that are not served yet, bounded by address |
//! | `proxy` | the client's address for the processor |
//! | `splice` | one connection: bytes from one socket to the other |
//! | `service` | the front end as a network function |
//! | `metrics`, `pages` | how to look inside |

mod accept;
mod backend;
mod check;
pub mod config;
mod handshakes;
mod metrics;
mod pages;
mod pair;
mod proxy;
mod service;
mod splice;

pub use backend::BackendRow;
pub use config::Config;
pub use function::StartError;
pub use service::{Ipfe, Running, start};
