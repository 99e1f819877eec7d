//! Settings of a store.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where session state is kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Which engine keeps the data.
    pub engine: EngineKind,
    /// Name of this site; kept with every record it writes.
    pub site: String,
    /// Values longer than this many bytes are compressed (LZ4); 0 compresses none.
    pub compress_above: usize,
    /// Batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_length: usize,
    /// Bytes of batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_bytes: usize,
    /// Operations a batch may have.
    pub max_batch_operations: usize,
    /// Bytes a batch may have.
    pub max_batch_bytes: usize,
    /// Settings of the embedded engine.
    pub embedded: EmbeddedConfig,
}

/// Which engine keeps the data.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum EngineKind {
    /// A library inside this process, nothing to install. One process owns the data.
    #[default]
    Embedded,
}

/// Settings of the embedded engine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct EmbeddedConfig {
    /// Directory of the data; created when absent. One process at a time.
    pub directory: PathBuf,
    /// What "durable" means.
    pub durability: Durability,
    /// Bytes of blocks kept in memory for reading. The operating system's page cache comes on top.
    pub cache_bytes: u64,
    /// Bytes of new records of one table kept in memory before they are written as a sorted file. A table has
    /// two such buffers (records and indexes), and up to a few of each while files are being written.
    pub memtable_bytes: u64,
    /// Bytes of journal on disk before older buffers are forced out. At least 64 MiB.
    pub journal_bytes: u64,
    /// Threads that write and merge sorted files.
    pub background_threads: usize,
    /// Batches in one group commit.
    pub group_batches: usize,
    /// Microseconds to wait for more batches before a group is committed. 0: whoever came while the last group
    /// was being committed makes the next.
    pub group_wait_micros: u64,
}

/// What "durable" means.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// On the disk (`fdatasync`): survives a power failure.
    #[default]
    Fsync,
    /// With the operating system: survives the death of the process, not of the machine.
    Os,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            engine: EngineKind::default(),
            site: "site-1".to_owned(),
            compress_above: 0,
            queue_length: 16_384,
            queue_bytes: 64 << 20,
            max_batch_operations: 4_096,
            max_batch_bytes: 16 << 20,
            embedded: EmbeddedConfig::default(),
        }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> EmbeddedConfig {
        EmbeddedConfig {
            directory: PathBuf::from("data"),
            durability: Durability::default(),
            cache_bytes: 256 << 20,
            memtable_bytes: 32 << 20,
            journal_bytes: 512 << 20,
            background_threads: 2,
            group_batches: 1_024,
            group_wait_micros: 0,
        }
    }
}

impl EmbeddedConfig {
    pub(crate) fn group_wait(&self) -> Duration {
        Duration::from_micros(self.group_wait_micros)
    }
}
