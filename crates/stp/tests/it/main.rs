//! A signal transfer point at the wire.

mod bad_input;
mod judge;
mod support;
mod transfer;
mod translation;
