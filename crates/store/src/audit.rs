//! The audit: walks records that were not written for a long time, at a bounded rate, and does with each what
//! its owner decides.
//!
//! A record may be left behind: its peer died, a message was lost, a site took over. The walk goes through the
//! records by time of last modification, oldest first, up to an age; the function decides (it may ask the peer).
//! What it decides is carried out only if the record has not changed meanwhile.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

use crate::batch::{Batch, Condition};
use crate::error::Error;
use crate::record::{Record, Stored};
use crate::store::{Scan, Table, Unreadable};
use crate::version::{Clock, Version};

/// Settings of an audit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AuditConfig {
    /// Whether there is an audit.
    pub enabled: bool,
    /// Records that were not written for this long are looked at.
    pub older_than: Period,
    /// Records looked at in a second.
    pub rate: u32,
    /// Pause between two walks.
    pub pause: Period,
}

impl Default for AuditConfig {
    fn default() -> AuditConfig {
        AuditConfig {
            enabled: true,
            older_than: Period::from_secs(86_400),
            rate: 200,
            pause: Period::from_secs(600),
        }
    }
}

impl Validate for AuditConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.rate == 0 {
            faults
                .at("rate")
                .say("is 0", "at least 1; enabled: false for no audit");
        }
        if self.older_than.is_zero() {
            faults.at("olderThan").say("is 0", "some time");
        }
    }
}

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// It stays as it is; the next walk looks at it again.
    Keep,
    /// It is in order: written again, so that it is looked at only when it has become old again.
    Refresh(T),
    /// It is left behind.
    Delete,
}

/// What audits have done; for metrics.
#[derive(Debug, Default)]
pub struct AuditCounters {
    /// Walks finished.
    pub rounds: AtomicU64,
    /// Records looked at.
    pub seen: AtomicU64,
    /// Records kept as they were.
    pub kept: AtomicU64,
    /// Records written again.
    pub refreshed: AtomicU64,
    /// Records deleted.
    pub deleted: AtomicU64,
    /// Decisions not carried out because the record had changed.
    pub changed: AtomicU64,
    /// Records that could not be read; the walk goes on beside them.
    pub unreadable: AtomicU64,
    /// Pages that could not be read and decisions that could not be written.
    pub failures: AtomicU64,
}

/// An audit of a table. The table declares `by_modified`.
#[derive(Debug)]
pub struct Audit<T: Record> {
    table: Table<T>,
    config: AuditConfig,
    clock: Clock,
    counters: AuditCounters,
    /// Some of the records that could not be read.
    unreadable: Mutex<Vec<Unreadable>>,
}

/// Unreadable records that an audit remembers for its owner.
const MOST_UNREADABLE: usize = 256;

/// How far ahead the time of a write may be. Beyond, a clock was wrong when it was written, or when another was written
/// before it: versions only grow. Nothing is known of the age of such a record.
const AHEAD: Duration = Duration::from_secs(300);

/// Whether a time of modification, in microseconds since 1970, can be right.
#[must_use]
pub fn is_plausible(modified: u64, clock: &Clock) -> bool {
    modified <= ahead(clock.micros())
}

fn ahead(now: u64) -> u64 {
    now.saturating_add(u64::try_from(AHEAD.as_micros()).unwrap_or(u64::MAX))
}

/// Records read at a time: at most this many, and no more than a fifth of a second's.
const LARGEST_PAGE: u32 = 100;

impl<T: Record> Audit<T> {
    /// An audit that has not begun.
    #[must_use]
    pub fn new(table: Table<T>, config: AuditConfig, clock: Clock) -> Audit<T> {
        Audit {
            table,
            config,
            clock,
            counters: AuditCounters::default(),
            unreadable: Mutex::default(),
        }
    }

    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> &AuditCounters {
        &self.counters
    }

    /// Records that could not be read since the last call, some of them.
    pub fn take_unreadable(&self) -> Vec<Unreadable> {
        let mut unreadable = self.unreadable.lock();
        std::mem::take(&mut *unreadable)
    }

    /// Goes on beside records that cannot be read.
    fn pass_by(&self, unreadable: Vec<Unreadable>) {
        for one in unreadable {
            self.counters.unreadable.fetch_add(1, Relaxed);
            tracing::debug!(error = %one.error, "the audit goes on beside a record that cannot be read");
            let mut all = self.unreadable.lock();
            if all.len() < MOST_UNREADABLE {
                all.push(one);
            }
        }
    }

    /// Walks again and again; drop the future to end it. Returns at once when the audit is not enabled.
    pub async fn run(&self, mut decide: impl AsyncFnMut(&Stored<T>) -> Decision<T>) {
        if !self.config.enabled {
            return;
        }
        loop {
            if let Err(error) = self.round(&mut decide).await {
                self.counters.failures.fetch_add(1, Relaxed);
                tracing::warn!(table = T::TABLE.name, %error, "the audit has stopped in the middle; it begins again later");
            }
            tokio::time::sleep(self.config.pause.duration()).await;
        }
    }

    /// One walk over all records that are old enough now, and over those of a time that cannot be right.
    ///
    /// # Errors
    /// When a page cannot be read. What cannot be written is counted and left for the next walk.
    pub async fn round(&self, decide: &mut impl AsyncFnMut(&Stored<T>) -> Decision<T>) -> Result<(), Error> {
        let age = u64::try_from(self.config.older_than.duration().as_micros()).unwrap_or(u64::MAX);
        let now = self.clock.micros();
        let page = (self.config.rate / 5).clamp(1, LARGEST_PAGE) as usize;
        let old = Scan::by_modified(page).modified_before(now.saturating_sub(age));
        self.walk(old, decide).await?;
        let from = Version::at(ahead(now)).0.to_be_bytes();
        self.walk(Scan::by_modified(page).from_key(&from), decide).await?;
        self.counters.rounds.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn walk(
        &self,
        scan: Scan,
        decide: &mut impl AsyncFnMut(&Stored<T>) -> Decision<T>,
    ) -> Result<(), Error> {
        // Refreshed records come later in the order: the walk ends where they begin.
        let mut end: Option<Version> = None;
        let mut next = Some(scan);
        while let Some(scan) = next {
            let begun = tokio::time::Instant::now();
            let mut page = self.table.scan(&scan.beside_unreadable()).await?;
            next = page.next;
            // A page without records of this table was read all the same.
            let (read, count) = (page.records.len(), page.records.len().max(1));
            self.pass_by(page.unreadable);
            if let Some(end) = end {
                page.records.retain(|stored| stored.version < end);
                if page.records.len() < read {
                    next = None;
                }
            }
            let refreshed = self.settle(page.records, decide).await;
            end = end.or(refreshed);
            tokio::time::sleep_until(begun + Duration::from_secs(1) * count as u32 / self.config.rate).await;
        }
        Ok(())
    }

    /// The version of the first record that was written again.
    async fn settle(
        &self,
        records: Vec<Stored<T>>,
        decide: &mut impl AsyncFnMut(&Stored<T>) -> Decision<T>,
    ) -> Option<Version> {
        let counters = &self.counters;
        let mut refreshed = None;
        let mut receipts = Vec::new();
        for stored in records {
            counters.seen.fetch_add(1, Relaxed);
            let mut batch = Batch::default();
            let counter = match decide(&stored).await {
                Decision::Keep => {
                    counters.kept.fetch_add(1, Relaxed);
                    continue;
                }
                Decision::Refresh(record) => {
                    batch.update(&self.table, &record, stored.version);
                    &counters.refreshed
                }
                Decision::Delete => {
                    batch.delete(
                        &self.table,
                        &stored.record.key(),
                        Condition::Version(stored.version),
                    );
                    &counters.deleted
                }
            };
            receipts.push((self.table.store().commit(batch), counter));
        }
        for (receipt, counter) in receipts {
            match receipt.await {
                Ok(version) => {
                    if std::ptr::eq(counter, &counters.refreshed) {
                        refreshed = refreshed.or(Some(version));
                    }
                    counter.fetch_add(1, Relaxed)
                }
                Err(Error::Conflict { .. }) => counters.changed.fetch_add(1, Relaxed),
                Err(error) => {
                    tracing::warn!(table = T::TABLE.name, %error, "a decision of the audit was not written");
                    counters.failures.fetch_add(1, Relaxed)
                }
            };
        }
        refreshed
    }
}
