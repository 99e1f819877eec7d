//! The security application without a router.

mod hostile;
mod stateful;
mod stateless;
mod support;
mod tables;
