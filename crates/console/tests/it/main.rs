//! The console over real sockets, and in a real browser: functions that answer, hang, die, come back, or write markup.

mod access;
mod browser;
mod chromium;
mod configuration;
mod following;
mod policy;
mod safety;
mod sessions;
mod sign_in;
mod summary;
mod support;
mod visitor;
mod why;
