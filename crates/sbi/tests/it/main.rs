//! The service-based interface over real sockets.

mod basics;
mod floods;
mod foreign;
mod fuzz;
mod host;
mod limits;
mod memory;
mod names;
mod places;
mod pool;
mod security;
mod support;
