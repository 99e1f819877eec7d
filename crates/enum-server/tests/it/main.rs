//! An ENUM server at the wire.

mod answers;
mod bad_input;
mod judges;
mod provisioning;
mod signed;
mod support;
mod tcp;
