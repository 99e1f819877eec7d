//! Session state: what network functions must not forget.
//!
//! A function declares [`Record`] types. Each has a table with a primary key and secondary indexes, unique or
//! not. Writes are collected in a [`Batch`], each operation with a [`Condition`] (insert if absent, update this
//! version …), and committed together or not at all: [`Store::commit`] resolves when the batch is durable.
//! Batches of all callers that wait at the same time share one commit of the engine, which is what makes durable
//! writes cheap.
//!
//! Reads are [`Reply`]s: futures that the embedded engine answers at once, on the caller's thread.
//!
//! | room | what is there |
//! |---|---|
//! | [`schema`](TableSchema), [`record`](Record), [`batch`](Batch), [`version`](Version) | what functions speak |
//! | `store` | the handle, tables, scans |
//! | [`audit`](Audit) | walks records that were not written for long |
//! | `bulk` | records of an input, one a line, into a store |
//! | `engine` | what an engine does |
//! | `cql` | the engine for Apache Cassandra and ScyllaDB: conditional writes, transactions of several records, indexes as tables |
//! | `mariadb` | the engine for databases: batches merged into transactions, retries, failover, migrations |
//! | `embedded` | the engine inside this process: a log on disk, indexes in memory, one writer thread |
//!
//! What damage does: a store of the embedded engine whose files are damaged, incomplete or missing does not open, and
//! says which file at which byte. Only what a crash has torn at the end, and what was provably never acknowledged, is
//! set aside. [`verify`] lists all damage, [`salvage`] keeps what is valid on the operator's word.
//!
//! What a crash leaves: each batch is kept whole or not at all; it is acknowledged when it is on disk. Readers see
//! a batch only after that, so no caller acts on a write that a crash could take back.

mod audit;
mod batch;
mod bulk;
mod compress;
mod config;
mod copies;
#[cfg(feature = "cql")]
mod cql;
#[cfg_attr(
    not(any(feature = "cql", feature = "mariadb")),
    allow(dead_code, reason = "databases join sites")
)]
mod delays;
mod dictionary;
mod embedded;
mod engine;
mod error;
#[cfg(feature = "mariadb")]
mod mariadb;
mod record;
mod reply;
mod schema;
mod stats;
mod store;
mod sweep;
mod trouble;
mod version;

pub use audit::{Audit, AuditConfig, AuditCounters, Decision, is_plausible};

pub use batch::{Batch, Condition};
pub use bulk::{ImportError, import};
pub use config::{
    CassandraConfig, CassandraConsistency, CassandraSerial, Config, Durability, EmbeddedConfig, EngineKind,
    MariadbConfig,
};
pub use copies::{BackedUp, BackupError};
pub use delays::LateSite;
pub use embedded::{
    Dropped, Exported, Restored, Salvaged, Verified, VerifiedFile, backup, export, restore, salvage, verify,
};
pub use error::{Conflict, Error};
pub use record::{DecodeError, IndexKeyIter, IndexKeys, Key, Record, Stored, TableDef};
pub use records::{SqlColumn, SqlIndex, SqlMapping, SqlValue};
pub use reply::{Receipt, Reply};
pub use schema::{Index, IndexSchema, MAX_INDEXES, MAX_KEY, TableSchema};
pub use stats::Stats;
pub use store::{Found, Page, Scan, Store, Table, Unreadable, reach};
pub use sweep::{Sweep, SweepConfig};
pub use trouble::Damage;
pub use version::{Clock, Version};
