//! A database processor at the wire.

mod bounds;
#[allow(dead_code, reason = "this program needs one of the kinds of servers")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod files;
mod following;
mod pair;
mod parts;
mod process;
mod secured;
mod support;
