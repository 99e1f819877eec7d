//! Tests of the store through its public interface.

mod audit;
mod backup;
mod cassandra;
#[cfg(feature = "cql-tls")]
mod cassandra_tls;
mod checkpoint;
mod clusters;
mod conflicts;
mod crash;
mod damage;
mod database_tls;
mod databases;
mod embedded;
mod expiry;
mod expiry_order;
mod export;
mod format_one;
mod full;
mod log;
mod mapped;
mod mariadb;
mod nodes;
mod older;
mod policies;
mod session;
mod tables;
mod trials;
