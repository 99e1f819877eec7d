//! Versions of the policy data of subscribers: how workers learn that what they have cached has changed.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;

/// Counters that subscribers share. Two of one counter cost each other a query now and then.
const COUNTERS: usize = 16_384;

/// Counts changes, for all workers, in constant memory and without a lock.
#[derive(Debug)]
pub(crate) struct Versions {
    counters: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Versions {
    fn counter(&self, subscriber: &(impl Hash + ?Sized)) -> Option<&AtomicU64> {
        // Below COUNTERS, which is a usize.
        let place = self.hasher.hash_one(subscriber) % (COUNTERS as u64);
        self.counters.get(place as usize)
    }

    /// The version of a subscriber's data now.
    pub(crate) fn of(&self, subscriber: &str) -> u64 {
        self.counter(subscriber)
            .map_or(0, |counter| counter.load(Ordering::Acquire))
    }

    /// The data of a subscriber have changed: the new version.
    pub(crate) fn changed(&self, subscriber: &str) -> u64 {
        self.counter(subscriber)
            .map_or(0, |counter| counter.fetch_add(1, Ordering::AcqRel) + 1)
    }
}
