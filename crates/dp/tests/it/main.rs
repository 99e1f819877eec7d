//! A database processor at the wire.

mod bounds;
mod files;
mod following;
mod process;
mod secured;
mod support;
