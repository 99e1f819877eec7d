//! The BSF over real sockets, as PCFs and application functions meet it.

mod audit;
mod bad_input;
mod cassandra;
mod churn;
#[path = "../../../store/tests/it/clusters.rs"]
mod clusters;
mod columns;
mod contention;
mod crash;
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod destinations;
mod events;
#[path = "../../../store/tests/it/format_one.rs"]
mod format_one;
mod fuzz;
mod galera;
mod hostile;
mod import;
mod judge;
mod limits;
mod live;
mod notifications;
mod pages;
mod process;
mod registration;
mod rx;
mod rx_rainy;
mod rx_reports;
mod rx_targets;
mod sessions;
mod sites;
mod spellings;
mod support;
mod survival;
mod tokens;
mod tolerance;
mod two;
mod ues;
mod upgrade;
