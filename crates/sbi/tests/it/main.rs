//! The service-based interface over real sockets.

mod basics;
mod endings;
mod floods;
mod following;
mod foreign;
mod foreign_servers;
mod fuzz;
mod host;
mod http1;
mod http1_served;
mod limits;
mod memory;
mod names;
mod places;
mod pool;
mod security;
mod spans;
mod support;
mod waiting;
