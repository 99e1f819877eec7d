//! The program as people and the lab use it.

mod activity;
mod answers;
mod commands;
mod crash;
mod h2spec;
mod kamailio;
mod life;
mod policies;
mod process;
mod references;
mod router;
mod secure;
mod store;
mod up;
mod usability;
