//! A rate for each sender, within a bounded memory.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Instant;

use ahash::AHashMap;

use crate::rate::{Rate, RateLimiter};

/// Entries checked for an idle one when a new key needs room.
const SEARCH: usize = 16;

/// A token bucket per key. It tracks a bounded number of keys: a key whose bucket is full again may be
/// evicted. When all tracked keys are busy, further keys share one bucket; a flood of invented names then limits
/// itself, not the keys tracked before.
#[derive(Clone, Debug)]
pub struct KeyedRateLimiter<K> {
    rate: Rate,
    most: usize,
    places: AHashMap<K, usize>,
    entries: Vec<(K, RateLimiter)>,
    /// Position at which the search for an idle entry continues.
    hand: usize,
    others: RateLimiter,
}

impl<K: Hash + Eq + Clone> KeyedRateLimiter<K> {
    /// Creates a limiter with `rate` for each key and at most `most` keys.
    #[must_use]
    pub fn new(rate: Rate, most: usize) -> Self {
        Self {
            rate,
            most: most.max(1),
            places: AHashMap::new(),
            entries: Vec::new(),
            hand: 0,
            others: RateLimiter::new(rate),
        }
    }

    /// Whether a message of `key` may pass now; if so, it counts.
    pub fn allow<Q>(&mut self, key: &Q, now: Instant) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(place) = self.places.get(key)
            && let Some((_, limiter)) = self.entries.get_mut(*place)
        {
            return limiter.allow(now);
        }
        let mut limiter = RateLimiter::new(self.rate);
        let allowed = limiter.allow(now);
        if self.entries.len() < self.most {
            self.places.insert(key.to_owned(), self.entries.len());
            self.entries.push((key.to_owned(), limiter));
            return allowed;
        }
        for _ in 0..SEARCH.min(self.entries.len()) {
            self.hand = (self.hand + 1) % self.entries.len();
            let Some(entry) = self.entries.get_mut(self.hand) else {
                break;
            };
            if entry.1.is_idle(now) {
                let gone = std::mem::replace(entry, (key.to_owned(), limiter));
                self.places.remove(gone.0.borrow());
                self.places.insert(key.to_owned(), self.hand);
                return allowed;
            }
        }
        self.others.allow(now)
    }

    /// Number of tracked keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn limiter(most: usize) -> KeyedRateLimiter<String> {
        let rate = Rate {
            per_second: 10.0,
            burst: Some(2),
        };
        KeyedRateLimiter::new(rate, most)
    }

    #[test]
    fn each_key_has_its_own_rate() {
        let (mut limiter, now) = (limiter(10), Instant::now());
        for key in ["a", "b"] {
            assert_eq!((0..5).filter(|_| limiter.allow(key, now)).count(), 2);
        }
        assert!(limiter.allow("a", now + Duration::from_millis(150)));
    }

    #[test]
    fn a_crowd_of_invented_names_limits_itself() {
        let (mut limiter, now) = (limiter(50), Instant::now());
        assert!(limiter.allow("known", now));
        let passed = (0..10_000)
            .filter(|name| limiter.allow(format!("invented-{name}").as_str(), now))
            .count();
        // 49 keys get an entry, the burst of the shared bucket passes, the rest does not.
        assert_eq!((passed, limiter.len()), (51, 50));
        assert!(limiter.allow("known", now));
    }

    #[test]
    fn idle_keys_give_their_place_away() {
        let (mut limiter, now) = (limiter(20), Instant::now());
        for round in 0..100 {
            let now = now + Duration::from_secs(round);
            for key in 0..20 {
                assert!(limiter.allow(format!("{round}/{key}").as_str(), now));
            }
        }
        assert_eq!((limiter.len(), limiter.places.len()), (20, 20));
    }
}
