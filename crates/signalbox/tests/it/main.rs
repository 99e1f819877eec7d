//! The program as people and the lab use it.

mod activity;
mod administration;
mod answers;
mod commands;
mod console;
mod crash;
mod directory;
mod documents;
mod dsa;
mod following;
mod foreign;
mod h2spec;
mod kamailio;
mod life;
mod number_files;
mod observability;
mod overview;
mod policies;
mod process;
mod references;
mod refused;
mod router;
mod secure;
#[allow(dead_code, reason = "this program does not stop and restart a directory")]
#[path = "../../../pcf/tests/it/slapd.rs"]
mod slapd;
mod store;
mod supervised;
mod traces;
mod up;
mod usability;
