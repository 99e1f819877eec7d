//! The router over real sockets, as its peers meet it.

mod administration;
mod applications;
mod attempts;
mod base;
mod cluster;
mod eir;
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
mod overload;
mod profile;
mod relay;
mod routing;
mod security;
mod support;
mod traces;
mod trust;
mod watchdog;
mod watching;
