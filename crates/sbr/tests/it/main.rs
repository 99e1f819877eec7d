//! The repository on the embedded engine, and on a database.

mod charging;
#[allow(dead_code, reason = "this program needs one of the kinds of servers")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod repository;
mod sites;
