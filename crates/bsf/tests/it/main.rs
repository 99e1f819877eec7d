//! The BSF over real sockets, as PCFs and application functions meet it.

mod audit;
mod bad_input;
mod hostile;
mod judge;
mod limits;
mod live;
mod notifications;
mod registration;
mod rx;
mod sessions;
mod support;
mod survival;
mod tokens;
mod ues;
