//! Tests of the store through its public interface.

mod embedded;
mod session;
mod tables;
