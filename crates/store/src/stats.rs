//! Figures of a store, for metrics.

use std::time::Duration;

/// What the store has done since it was opened, and how full it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Batches committed.
    pub batches: u64,
    /// Batches refused because a condition did not hold.
    pub conflicts: u64,
    /// Batches refused because the queue was full.
    pub overflows: u64,
    /// Batches that failed for any other reason.
    pub failures: u64,
    /// Whether writes cannot be made durable now: 1 while all of them are refused.
    pub troubled: bool,
    /// Operations committed.
    pub operations: u64,
    /// Groups: commits of the engine, each with one or more batches.
    pub groups: u64,
    /// Time spent in commits of the engine, waiting for the disk or the database.
    pub commit_time: Duration,
    /// Batches waiting now.
    pub waiting: usize,
    /// Bytes of batches waiting now.
    pub waiting_bytes: usize,
    /// Bytes of the log on disk (embedded engine).
    pub disk_bytes: u64,
    /// Bytes of current records, a part of `disk_bytes` (embedded engine).
    pub live_bytes: u64,
    /// Files of the log (embedded engine).
    pub segments: usize,
    /// Bytes of indexes in memory (embedded engine).
    pub index_bytes: usize,
    /// Compactions done (embedded engine).
    pub compactions: u64,
    /// Bytes that compactions have copied (embedded engine).
    pub compacted_bytes: u64,
    /// Checkpoints of the indexes written (embedded engine).
    pub checkpoints: u64,
    /// Bytes of the last one (embedded engine).
    pub checkpoint_bytes: u64,
    /// Files of the log that were not read when the store was opened, because a checkpoint knew them (embedded
    /// engine).
    pub unread: u64,
    /// Files of the log in which damage was found since the store is open (embedded engine).
    pub damaged: u64,
    /// Reads of callers that were answered: keys, keys of indexes, pages and counts (database).
    pub reads: u64,
    /// Transactions tried again after a deadlock, certification failure or node loss (database).
    pub retries: u64,
    /// Changes of the node in use (database).
    pub failovers: u64,
    /// Replication delay per other site (database).
    pub replication_delay: Vec<(String, Duration)>,
}
