//! The program as people and the lab use it.

mod commands;
mod crash;
mod life;
mod process;
mod router;
mod secure;
mod store;
mod up;
