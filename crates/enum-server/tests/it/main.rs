//! An ENUM server at the wire.

mod answers;
mod bad_input;
mod judges;
mod kamailio;
mod provisioning;
mod signed;
mod support;
mod tcp;
