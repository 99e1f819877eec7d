//! Settings of a store.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Where session state is kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Which engine keeps the data.
    pub engine: EngineKind,
    /// Name of this site; kept with every record it writes.
    pub site: String,
    /// Values longer than this are compressed (LZ4); 0 compresses none.
    pub compress_above: ByteSize,
    /// Batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_length: usize,
    /// Bytes of batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_bytes: ByteSize,
    /// Operations a batch may have.
    pub max_batch_operations: usize,
    /// Bytes a batch may have.
    pub max_batch_bytes: ByteSize,
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
    pub cache: ByteSize,
    /// Bytes of new records of one table kept in memory before they are written as a sorted file. A table has
    /// two such buffers (records and indexes), and up to a few of each while files are being written.
    pub memtable: ByteSize,
    /// Bytes of journal on disk before older buffers are forced out. At least 64 MiB.
    pub journal: ByteSize,
    /// Threads that write and merge sorted files.
    pub background_threads: usize,
    /// Batches in one group commit.
    pub group_batches: usize,
    /// How long to wait for more batches before a group is committed. 0: whoever came while the last group was
    /// being committed makes the next.
    pub group_wait: Period,
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
            compress_above: ByteSize(0),
            queue_length: 16_384,
            queue_bytes: ByteSize::mib(64),
            max_batch_operations: 4_096,
            max_batch_bytes: ByteSize::mib(16),
            embedded: EmbeddedConfig::default(),
        }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> EmbeddedConfig {
        EmbeddedConfig {
            directory: PathBuf::from("data"),
            durability: Durability::default(),
            cache: ByteSize::mib(256),
            memtable: ByteSize::mib(32),
            journal: ByteSize::mib(512),
            background_threads: 2,
            group_batches: 1_024,
            group_wait: Period::from_millis(0),
        }
    }
}

/// The engine does not accept a smaller journal.
const SMALLEST_JOURNAL: ByteSize = ByteSize::mib(64);

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.site.is_empty() || self.site.len() > 128 {
            faults
                .at("site")
                .say("has no name or too long a one", "1 to 128 characters");
        }
        for (name, value) in [
            ("queueLength", self.queue_length),
            ("maxBatchOperations", self.max_batch_operations),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.max_batch_bytes > self.queue_bytes {
            faults
                .at("maxBatchBytes")
                .say("is larger than queueBytes", "a batch that fits the queue");
        }
        faults.within("embedded", &self.embedded);
    }
}

impl Validate for EmbeddedConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.journal < SMALLEST_JOURNAL {
            faults.at("journal").say(
                format!("{} is too small", self.journal),
                format!("at least {SMALLEST_JOURNAL}"),
            );
        }
        if self.memtable < ByteSize::mib(1) {
            faults
                .at("memtable")
                .say(format!("{} is too small", self.memtable), "at least 1MiB");
        }
        for (name, value) in [
            ("backgroundThreads", self.background_threads),
            ("groupBatches", self.group_batches),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
