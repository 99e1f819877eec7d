//! Versions of the policy data of subscribers: how workers learn that what they have cached has changed.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::{AHashMap, RandomState};
use parking_lot::Mutex;

/// Counters that subscribers share. Two of one counter cost each other a query now and then.
const COUNTERS: usize = 16_384;

/// Counts changes, for all workers, in constant memory and without a lock.
#[derive(Debug)]
pub(crate) struct Versions {
    counters: Box<[AtomicU64]>,
    hasher: RandomState,
    /// Subscribers whose association is still to be written, by the random segment of the path at which the UDR notifies of it.
    expected: Mutex<AHashMap<String, String>>,
}

/// A notification of an association that is still to be written would be heard, as long as this lives.
#[derive(Debug)]
pub(crate) struct Expected<'v>(&'v Versions, String);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.0.expected.lock().remove(&self.1);
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            expected: Mutex::default(),
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

    /// Hears notifications at a path before the association is written.
    pub(crate) fn expect(&self, token: &str, subscriber: &str) -> Expected<'_> {
        let (token, subscriber) = (token.to_owned(), subscriber.to_owned());
        self.expected.lock().insert(token.clone(), subscriber);
        Expected(self, token)
    }

    /// Notes that the data of a subscriber have changed whose association is not written yet; false: no association has this path.
    pub(crate) fn changed_before(&self, token: &str) -> bool {
        let subscriber = self.expected.lock().get(token).cloned();
        match subscriber {
            Some(subscriber) => {
                self.changed(&subscriber);
                true
            }
            None => false,
        }
    }
}
