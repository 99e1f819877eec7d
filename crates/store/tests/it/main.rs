//! Tests of the store through its public interface.

mod crash;
mod embedded;
mod log;
mod session;
mod tables;
