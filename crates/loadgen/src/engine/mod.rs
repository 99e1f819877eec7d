//! What the generator and the simulators run on: one thread, one `epoll` set, one timer.
//!
//! A plain loop instead of an async runtime, because everything that makes a generator cheap is about
//! batching: all sockets that are ready, then everything that is due, then one write per connection.

mod backoff;
mod poller;
mod socket;
mod tls;

pub use self::tls::{ClientTls, ServerTls, client_tls, diameter_tls, server_tls};
pub use ::tls::TlsFiles;
pub(crate) use backoff::Backoff;
pub use poller::{Poller, Readiness};
pub use socket::{Received, Socket};
