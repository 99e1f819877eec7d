//! The security application without a router.

mod durable;
mod hostile;
mod measures;
mod stateful;
mod stateless;
mod subscribers;
mod support;
mod tables;
