//! The PCF over real sockets, as SMFs and AMFs meet it.

#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod judge;
mod pages;
mod process;
mod projects;
mod sm;
mod sm_errors;
mod support;
mod writers;
