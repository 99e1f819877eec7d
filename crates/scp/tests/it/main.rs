//! The SCP over real sockets.

mod direct;
mod discovered;
mod feed;
mod garbage;
mod learning;
mod protection;
mod rules;
mod security;
mod support;
mod tools;
