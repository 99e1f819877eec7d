//! The NRF over real sockets, as an NF meets it.

mod bad_input;
mod discovery;
mod fuzz;
mod growth;
mod hollow;
mod identity;
mod judge;
mod live;
mod located;
mod management;
mod notifications;
mod parameters;
mod support;
mod survival;
mod tokens;
