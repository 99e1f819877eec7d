//! The NRF over real sockets, as an NF meets it.

mod answers;
mod bad_input;
mod cluster;
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod discovery;
mod features;
mod fuzz;
mod growth;
mod heart_beats;
mod hollow;
mod identity;
mod judge;
mod live;
mod locality;
mod located;
mod management;
mod names;
mod notifications;
mod pages;
mod parameters;
mod process;
mod roaming;
mod support;
mod survival;
mod tokens;
mod tolerance;
