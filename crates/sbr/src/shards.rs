//! A map in parts, each with a lock: workers rarely meet at one.

use ahash::{AHashMap, RandomState};
use parking_lot::{Mutex, MutexGuard};

/// Parts.
const SHARDS: usize = 64;

/// A map of this kind.
#[derive(Debug)]
pub struct Shards<V> {
    shards: Vec<Mutex<AHashMap<Vec<u8>, V>>>,
    hasher: RandomState,
}

impl<V> Default for Shards<V> {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl<V> Shards<V> {
    /// The part in which a key is.
    pub fn lock(&self, key: &[u8]) -> MutexGuard<'_, AHashMap<Vec<u8>, V>> {
        let position = self.hasher.hash_one(key) as usize % SHARDS;
        // A remainder of their number.
        self.shards[position].lock()
    }

    /// Removes what does not fit.
    pub fn retain(&self, fits: impl Fn(&V) -> bool) {
        for shard in &self.shards {
            shard.lock().retain(|_, value| fits(value));
        }
    }

    /// The key of a value that fits, of which there is one at most: a walk over all of them.
    pub fn find(&self, fits: impl Fn(&V) -> bool) -> Option<Vec<u8>> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let found = shard.iter().find(|(_, value)| fits(value));
            found.map(|(key, _)| key.clone())
        })
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
