//! The SCP over real sockets.

mod direct;
mod discovered;
mod garbage;
mod learning;
mod protection;
mod rules;
mod support;
mod tools;
