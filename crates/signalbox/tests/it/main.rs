//! The program as people and the lab use it.

mod activity;
mod answers;
mod commands;
mod console;
mod crash;
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
mod store;
mod supervised;
mod up;
mod usability;
