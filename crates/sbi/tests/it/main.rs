//! The service-based interface over real sockets.

mod basics;
mod floods;
mod foreign;
mod host;
mod limits;
mod names;
mod pool;
mod security;
mod support;
