//! The SCEF over real sockets, as SCS/AS, HSS and MME meet it.

mod authorization;
mod bad_input;
mod connections;
mod crash;
mod features;
mod foreign;
mod generated;
mod groups;
mod hostile;
mod judge;
mod monitoring;
mod network;
mod nidd;
mod nidd_groups;
mod notices;
mod overload;
mod process;
mod quotas;
mod readiness;
mod spans;
mod support;
mod tokens;
mod triggering;
mod tsp;
mod wire;
