//! Settings of a store.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Percent, Period, Validate};

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
    /// Size of one file of the log. A batch must fit half of it.
    pub segment: ByteSize,
    /// Share of void entries from which on a file is compacted. The log takes at most about
    /// 1 / (1 - share) of what its current records take.
    pub compact_at: Percent,
    /// Bytes a second that compaction reads, so that it does not get in the way. While more than `compactAt` of
    /// the whole log is void it does not hold back.
    pub compaction_rate: ByteSize,
    /// Batches in one group commit.
    pub group_batches: usize,
    /// Shortest time from one group commit to the next. A write in a quiet moment does not wait; under load, those
    /// that come within this time share one flush to disk. Costs at most this much latency, saves most of the
    /// CPU and disk operations of commits.
    pub group_interval: Period,
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
            segment: ByteSize::mib(128),
            compact_at: Percent::new(50.0),
            compaction_rate: ByteSize::mib(64),
            group_batches: 1_024,
            group_interval: Period::from_millis(1),
        }
    }
}

/// Smaller files would be many.
const SMALLEST_SEGMENT: ByteSize = ByteSize::kib(64);
/// Places in a file are kept in 25 bits, in units of eight bytes.
const LARGEST_SEGMENT: ByteSize = ByteSize::mib(256);

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
        if self.engine == EngineKind::Embedded
            && self.max_batch_bytes.bytes() * 2 > self.embedded.segment.bytes()
        {
            faults.at("maxBatchBytes").say(
                "is larger than half of embedded.segment",
                "a batch that fits half a file",
            );
        }
        faults.within("embedded", &self.embedded);
    }
}

impl Validate for EmbeddedConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.segment < SMALLEST_SEGMENT || self.segment > LARGEST_SEGMENT {
            let expected = format!("{SMALLEST_SEGMENT} to {LARGEST_SEGMENT}");
            faults.at("segment").say(format!("is {}", self.segment), expected);
        }
        let share = self.compact_at.percent();
        if !(10.0..=90.0).contains(&share) {
            faults
                .at("compactAt")
                .say(format!("is {}", self.compact_at), "10% to 90%");
        }
        if self.compaction_rate < ByteSize::mib(1) {
            faults
                .at("compactionRate")
                .say(format!("is {}", self.compaction_rate), "at least 1MiB");
        }
        if self.group_batches == 0 {
            faults.at("groupBatches").say("is 0", "at least 1");
        }
    }
}
