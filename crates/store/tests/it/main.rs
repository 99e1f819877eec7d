//! Tests of the store through its public interface.

mod audit;
mod crash;
mod damage;
mod databases;
mod embedded;
mod log;
mod mapped;
mod mariadb;
mod older;
mod session;
mod tables;
mod trials;
