//! A signal transfer point at the wire.

mod bad_input;
mod calls;
mod contexts;
mod delivery;
mod equipment;
mod files;
mod interception;
mod ipa;
mod judge;
mod load;
mod neighbour;
mod number_services;
mod osmo;
mod prepaid;
mod roles;
mod screening;
mod sctp;
mod signalling_links;
mod support;
mod transfer;
mod translation;
