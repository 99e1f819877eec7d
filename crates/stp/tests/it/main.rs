//! A signal transfer point at the wire.

mod bad_input;
mod contexts;
mod delivery;
mod equipment;
mod files;
mod judge;
mod load;
mod number_services;
mod roles;
mod screening;
mod sctp;
mod signalling_links;
mod support;
mod transfer;
mod translation;
