//! The NRF over real sockets, as an NF meets it.

mod bad_input;
mod discovery;
mod located;
mod management;
mod notifications;
mod support;
mod survival;
mod tokens;
