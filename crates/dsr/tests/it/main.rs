//! The router over real sockets, as its peers meet it.

mod administration;
mod admission;
mod applications;
mod attempts;
mod base;
mod chain;
mod cluster;
#[allow(dead_code, reason = "this program needs one of the kinds of servers")]
#[path = "../../../store/tests/it/databases.rs"]
mod databases;
mod dsa;
mod eir;
mod fabr;
mod foreign;
mod freediameter;
mod fuzz;
mod hiding;
mod hostile;
mod live;
mod load;
mod load_report;
mod mediation;
mod names;
mod obedience;
mod ocdra;
mod overload;
mod pdra;
mod processors;
mod profile;
mod relay;
mod replay;
mod routing;
mod sctp;
mod security;
mod sessions;
mod stopping;
mod support;
mod traces;
mod trust;
mod watchdog;
mod watching;
mod why;
