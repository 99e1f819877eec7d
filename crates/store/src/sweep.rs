//! The sweep: removes records whose time is over ([`Record::expires`]), at a bounded rate.
//!
//! Reads leave an expired record out from the moment of its expiry, so the sweep decides about room and not about what
//! callers see. A record that was written again meanwhile stays. Several processes on one database may sweep one table: each
//! record goes once.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

use crate::batch::Batch;
use crate::error::Error;
use crate::record::Record;
use crate::store::Table;

/// Settings of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SweepConfig {
    /// Expired records that are removed in a second, at most.
    pub rate: u32,
    /// Pause between two sweeps.
    pub pause: Period,
}

impl Default for SweepConfig {
    fn default() -> SweepConfig {
        SweepConfig {
            rate: 5_000,
            pause: Period::from_secs(5),
        }
    }
}

impl Validate for SweepConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.rate == 0 {
            faults.at("rate").say("is 0", "at least 1");
        }
        if self.pause.is_zero() {
            faults.at("pause").say("is 0", "some time, such as 5s");
        }
    }
}

/// A sweep of a table whose records expire.
#[derive(Debug)]
pub struct Sweep<T: Record> {
    table: Table<T>,
    config: SweepConfig,
    removed: AtomicU64,
}

/// Records removed at a time: at most this many, and no more than a fifth of a second's.
const LARGEST_PAGE: u32 = 256;

impl<T: Record> Sweep<T> {
    /// A sweep that has not begun.
    ///
    /// # Errors
    /// [`Error::Invalid`] when records of the table do not expire, or the index of their expiry is not ordered.
    pub fn new(table: Table<T>, config: SweepConfig) -> Result<Sweep<T>, Error> {
        let index = T::EXPIRY.and_then(|index| T::TABLE.indexes.get(usize::from(index.0)));
        if !index.is_some_and(|index| index.ordered) {
            let name = T::TABLE.name;
            return Err(Error::Invalid(format!(
                "table {name}: a sweep needs an ordered index of expiry (Record::EXPIRY)"
            )));
        }
        Ok(Sweep {
            table,
            config,
            removed: AtomicU64::new(0),
        })
    }

    /// Records that it has removed; for metrics.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed.load(Relaxed)
    }

    /// Sweeps again and again; drop the future to end it.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(table = T::TABLE.name, %error, "expired records were not removed; the sweep begins again later");
            }
            tokio::time::sleep(self.config.pause.duration()).await;
        }
    }

    /// Removes what has expired now.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn round(&self) -> Result<(), Error> {
        let rate = self.config.rate.max(1);
        let most = (rate / 5).clamp(1, LARGEST_PAGE);
        loop {
            let begun = tokio::time::Instant::now();
            let expired = self.table.expired(most as usize).await?;
            let count = expired.len() as u32;
            let receipts: Vec<_> = expired
                .into_iter()
                .map(|(key, version)| {
                    let mut batch = Batch::default();
                    batch.remove(&self.table, &key, version);
                    self.table.store().commit(batch)
                })
                .collect();
            let mut removed = 0;
            for receipt in receipts {
                match receipt.await {
                    Ok(_) => removed += 1,
                    // Written again, or removed by another process.
                    Err(Error::Conflict { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            self.removed.fetch_add(removed, Relaxed);
            if count < most || removed == 0 {
                return Ok(());
            }
            tokio::time::sleep_until(begun + Duration::from_secs(1) * count / rate).await;
        }
    }
}
