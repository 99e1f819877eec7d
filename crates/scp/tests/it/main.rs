//! The SCP over real sockets.

mod alternates;
mod detours;
mod direct;
mod discovered;
mod federation;
mod feed;
mod forged;
mod fuzz;
mod garbage;
mod late;
mod learning;
mod local;
mod protection;
mod reverse;
mod rules;
mod security;
mod stub_nrf;
mod support;
mod tools;
mod unknown;
