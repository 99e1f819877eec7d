//! The service-based interface over real sockets.

mod basics;
mod limits;
mod pool;
mod support;
