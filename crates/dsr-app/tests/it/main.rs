//! The contract without a router.

mod example;
