//! The console over real sockets, and in a real browser: functions that answer, hang, die, come back, or write markup.

mod access;
mod browser;
mod chromium;
mod following;
mod safety;
mod summary;
mod support;
mod visitor;
