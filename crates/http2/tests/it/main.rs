//! What the crate does for those that use it.

mod exchange;
mod fuzz;
mod limits;
mod malformed;
mod support;
mod windows;
mod world;
