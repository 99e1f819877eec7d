//! The BSF over real sockets, as PCFs and application functions meet it.

mod bad_input;
mod notifications;
mod registration;
mod rx;
mod sessions;
mod support;
mod survival;
mod ues;
