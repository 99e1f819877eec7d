//! The BSF over real sockets, as PCFs and application functions meet it.

mod audit;
mod bad_input;
mod churn;
mod crash;
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod fuzz;
mod galera;
mod hostile;
mod import;
mod judge;
mod limits;
mod live;
mod notifications;
mod process;
mod registration;
mod rx;
mod sessions;
mod sites;
mod support;
mod survival;
mod tokens;
mod ues;
