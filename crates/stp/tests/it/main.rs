//! A signal transfer point at the wire.

mod ansi;
mod bad_input;
mod calls;
mod contexts;
mod delivery;
mod equipment;
mod files;
mod inhibiting;
mod interception;
mod ipa;
mod judge;
mod load;
mod moves;
mod neighbour;
mod number_services;
mod osmo;
mod prepaid;
mod roles;
mod screening;
mod sctp;
mod segments;
mod signalling_links;
mod status;
mod support;
mod transfer;
mod translation;
