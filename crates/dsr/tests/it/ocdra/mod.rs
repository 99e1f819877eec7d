//! The online charging DRA at the wire (RFC 8506, TS 32.299 §6).

mod failures;
mod kept;
mod programs;
mod seen;
mod sessions;
pub(crate) mod support;
mod wrong;
