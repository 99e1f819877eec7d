//! The security application without a router.

mod attacks;
mod day;
mod durable;
mod hostile;
mod measures;
mod stateful;
mod stateless;
mod subscribers;
mod support;
mod tables;
