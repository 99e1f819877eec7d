//! Counters, gauges and histograms that cost the data path an addition.
//!
//! A metric's name, help, unit and labels are declared once, as a constant ([`declare!`](crate::declare)); a
//! [`Registry`] turns the declaration into handles when the function starts. A handle is cheap to clone and
//! is resolved before the data path begins: there is no lookup and no format per message.
//!
//! Values live in [shards](shard): each thread adds in memory of its own, and the sum is made when somebody
//! looks. A counter shared by all workers would be a cache line fought over with every message.

mod alert;
mod declaration;
mod exemplar;
mod family;
mod meaning;
mod registry;
mod render;
mod shard;

pub use alert::{Alert, When};
pub use declaration::{Buckets, Declaration, Kind, lint, reference};
pub use family::{Family, OTHER};
pub use meaning::{Signal, Unit};
pub use registry::Registry;
pub use render::{Format, render, render_as};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use exemplar::{Exemplar, Exemplars};
use shard::Arena;

/// A count that only grows.
#[derive(Clone, Debug)]
pub struct Counter {
    arena: Arc<Arena>,
    slot: u32,
}

impl Counter {
    /// Counts one.
    #[inline]
    pub fn inc(&self) {
        self.arena.add(self.slot, 1);
    }

    /// Counts several.
    #[inline]
    pub fn add(&self, count: u64) {
        self.arena.add(self.slot, count);
    }

    /// The sum over all threads.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.arena.sum(self.slot)
    }
}

/// A quantity that workers raise and lower with each message: requests in flight, open connections. Each
/// thread keeps its own share, which may be negative; the sum is the level.
#[derive(Clone, Debug)]
pub struct Level {
    arena: Arc<Arena>,
    slot: u32,
}

impl Level {
    /// One more.
    #[inline]
    pub fn inc(&self) {
        self.arena.add(self.slot, 1);
    }

    /// One less.
    #[inline]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// Several more, or less.
    #[inline]
    pub fn add(&self, change: i64) {
        // Two's complement: adding the bits of a negative number subtracts.
        self.arena.add(self.slot, change as u64);
    }

    /// The sum over all threads.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.arena.sum(self.slot) as i64
    }
}

/// A value that is set now and then, off the data path.
#[derive(Clone, Debug)]
pub struct Gauge {
    bits: Arc<AtomicU64>,
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
    }

    /// The value that was set last, 0 before.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }
}

/// How often a quantity was how large, in buckets fixed by its declaration.
#[derive(Clone, Debug)]
pub struct Histogram {
    arena: Arc<Arena>,
    /// The first of `bounds.len() + 2` slots: a count per bucket, one for what exceeds all bounds, the sum.
    slot: u32,
    bounds: &'static [u64],
    exemplars: Arc<Exemplars>,
}

impl Histogram {
    /// Records one value in the unit of the declaration's bounds.
    #[inline]
    pub fn record(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value) as u32;
        self.arena.add(self.slot + bucket, 1);
        self.arena.add(self.slot + self.bounds.len() as u32 + 1, value);
    }

    /// Records a length of time, for a declaration in seconds (its bounds count nanoseconds).
    #[inline]
    pub fn observe(&self, time: Duration) {
        let seconds = time.as_secs().saturating_mul(1_000_000_000);
        self.record(seconds.saturating_add(u64::from(time.subsec_nanos())));
    }

    /// The trace of a length of time that was observed: the latest one of each bucket stands beside its count in OpenMetrics. It takes a lock,
    /// and is for traced requests alone.
    pub fn exemplify(&self, time: Duration, trace: u128) {
        let value = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.exemplars.set(
            bucket,
            self.bounds.len() + 1,
            Exemplar {
                trace,
                value,
                at: SystemTime::now(),
            },
        );
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// Sum of the values recorded.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.arena.sum(self.slot + self.bounds.len() as u32 + 1)
    }

    /// The count of each bucket, the last one of what exceeds all bounds.
    #[must_use]
    pub fn buckets(&self) -> Vec<u64> {
        (0..=self.bounds.len() as u32)
            .map(|bucket| self.arena.sum(self.slot + bucket))
            .collect()
    }

    /// The value below which this share (0 … 1) of all values lies, as the upper bound of its bucket; `None`
    /// when nothing was recorded.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let buckets = self.buckets();
        let count: u64 = buckets.iter().sum();
        if count == 0 {
            return None;
        }
        let rank = (share.clamp(0.0, 1.0) * count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, counted) in buckets.iter().enumerate() {
            seen += counted;
            if seen >= rank {
                return Some(self.bounds.get(bucket).copied().unwrap_or(u64::MAX));
            }
        }
        None
    }
}
