//! Answers of the NRF, kept as long as it said, found again by the question.
//!
//! The cache belongs to one worker. It knows three states of a question: not known, being asked (whoever
//! asks the same meanwhile waits for that one answer), and answered. Time is an argument.

use std::hash::BuildHasher;
use std::rc::Rc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use super::query::DiscoveryQuery;
use crate::network::ServiceRef;

/// What a discovery found. Shared by every request that asked the same.
#[derive(Debug)]
pub struct Found {
    /// When it was asked for.
    pub asked: Instant,
    /// Service instances that can serve, in the order of the NRF's answer.
    pub candidates: Vec<ServiceRef>,
}

/// What the cache knows of a question.
#[derive(Debug)]
pub enum Lookup {
    /// Answered, still valid.
    Hit(Rc<Found>),
    /// Somebody is asking; wait for that answer.
    Asking,
    /// Nobody has asked, or the answer has expired: the caller is to ask now.
    Miss,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Questions answered from the cache.
    pub hits: u64,
    /// Questions that had to be asked.
    pub misses: u64,
    /// Questions that waited for an answer somebody else had asked for.
    pub collapsed: u64,
    /// Valid answers that were dropped to make room.
    pub evicted: u64,
}

#[derive(Debug)]
enum Entry {
    Asking,
    Known {
        found: Rc<Found>,
        until: Instant,
        used: bool,
    },
}

/// A bounded cache of discovery answers.
#[derive(Debug)]
pub struct Cache<S = ahash::RandomState> {
    entries: IndexMap<DiscoveryQuery, Entry, S>,
    capacity: usize,
    /// Where the clock hand of the eviction stands.
    hand: usize,
    stats: CacheStats,
}

impl Cache {
    /// A cache of at most `capacity` questions (at least one).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            entries: IndexMap::default(),
            capacity,
            hand: 0,
            stats: CacheStats::default(),
        }
    }
}

impl<S: BuildHasher> Cache<S> {
    /// What is known at `now`. On [`Lookup::Miss`] the question counts as being asked until [`Cache::learn`]
    /// or [`Cache::forget`].
    pub fn look_up(&mut self, query: &DiscoveryQuery, now: Instant) -> Lookup {
        match self.entries.get_mut(query) {
            Some(Entry::Known { found, until, used }) if now < *until => {
                *used = true;
                self.stats.hits += 1;
                return Lookup::Hit(found.clone());
            }
            Some(Entry::Asking) => {
                self.stats.collapsed += 1;
                return Lookup::Asking;
            }
            Some(expired) => *expired = Entry::Asking,
            None => {
                self.make_room(now);
                self.entries.insert(query.clone(), Entry::Asking);
            }
        }
        self.stats.misses += 1;
        Lookup::Miss
    }

    /// Keeps the answer for `validity` from `now`; an answer of no validity serves only those who wait for it.
    pub fn learn(&mut self, query: &DiscoveryQuery, found: Rc<Found>, validity: Duration, now: Instant) {
        if validity.is_zero() {
            self.forget(query);
        } else if let Some(entry) = self.entries.get_mut(query) {
            *entry = Entry::Known {
                found,
                until: now + validity,
                used: true,
            };
        } else {
            self.make_room(now);
            self.entries.insert(
                query.clone(),
                Entry::Known {
                    found,
                    until: now + validity,
                    used: true,
                },
            );
        }
    }

    /// The question was not answered: the next one asks again.
    pub fn forget(&mut self, query: &DiscoveryQuery) {
        self.entries.swap_remove(query);
    }

    /// The network has changed: no answer is valid any more. Questions being asked stay so.
    pub fn invalidate(&mut self) {
        self.entries.retain(|_, entry| matches!(entry, Entry::Asking));
        self.hand = 0;
    }

    /// Questions known and being asked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Second chance: the hand goes round, takes the mark of use from those that have it, and drops the first
    /// answer without one, or one that has expired. Questions being asked are never dropped; they are bounded
    /// by the requests in flight.
    fn make_room(&mut self, now: Instant) {
        if self.entries.len() < self.capacity {
            return;
        }
        for _ in 0..2 * self.entries.len() {
            self.hand = if self.hand + 1 < self.entries.len() {
                self.hand + 1
            } else {
                0
            };
            match self.entries.get_index_mut(self.hand) {
                Some((_, Entry::Known { until, used, .. })) => {
                    let expired = now >= *until;
                    if expired || !*used {
                        self.stats.evicted += u64::from(!expired);
                        self.entries.swap_remove_index(self.hand);
                        return;
                    }
                    *used = false;
                }
                Some((_, Entry::Asking)) | None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nothing() -> Rc<Found> {
        Rc::new(Found {
            asked: Instant::now(),
            candidates: Vec::new(),
        })
    }

    fn query(n: u32) -> DiscoveryQuery {
        DiscoveryQuery::new([("supi", n.to_string())])
    }

    #[test]
    fn one_asks_the_others_wait_and_then_all_know() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        assert!(matches!(cache.look_up(&query(1), now), Lookup::Miss));
        assert!(matches!(cache.look_up(&query(1), now), Lookup::Asking));
        cache.learn(&query(1), nothing(), Duration::from_secs(4), now);
        assert!(matches!(
            cache.look_up(&query(1), now + Duration::from_secs(3)),
            Lookup::Hit(_)
        ));
        assert!(matches!(
            cache.look_up(&query(1), now + Duration::from_secs(4)),
            Lookup::Miss
        ));
        assert_eq!(
            cache.stats(),
            CacheStats {
                hits: 1,
                misses: 2,
                collapsed: 1,
                evicted: 0
            }
        );
    }

    #[test]
    fn a_failed_question_is_asked_again_and_no_validity_keeps_nothing() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        cache.look_up(&query(1), now);
        cache.forget(&query(1));
        assert!(matches!(cache.look_up(&query(1), now), Lookup::Miss));
        cache.learn(&query(1), nothing(), Duration::ZERO, now);
        assert!(cache.is_empty());
    }

    #[test]
    fn a_changed_network_empties_it_but_for_what_is_asked() {
        let (mut cache, now) = (Cache::new(10), Instant::now());
        cache.learn(&query(1), nothing(), Duration::from_secs(60), now);
        cache.look_up(&query(2), now);
        cache.invalidate();
        assert_eq!(cache.len(), 1);
        assert!(matches!(cache.look_up(&query(2), now), Lookup::Asking));
    }

    #[test]
    fn the_often_used_outlive_the_others() {
        let (mut cache, now) = (Cache::new(100), Instant::now());
        for n in 0..10_000 {
            if matches!(cache.look_up(&query(n), now), Lookup::Miss) {
                cache.learn(&query(n), nothing(), Duration::from_secs(60), now);
            }
            if n > 0 {
                assert!(
                    matches!(cache.look_up(&query(0), now), Lookup::Hit(_)),
                    "lost at {n}"
                );
            }
        }
        assert_eq!(cache.len(), 100);
    }

    proptest! {
        #[test]
        fn it_stays_within_its_bound(steps in proptest::collection::vec((0u32..40, 0u8..3, 0u64..5), 1..400)) {
            let (mut cache, mut now) = (Cache::new(8), Instant::now());
            for (n, step, wait) in steps {
                now += Duration::from_secs(wait);
                match step {
                    0 => { if matches!(cache.look_up(&query(n), now), Lookup::Miss) { cache.forget(&query(n)); } }
                    1 => cache.learn(&query(n), nothing(), Duration::from_secs(7), now),
                    _ => cache.invalidate(),
                }
                prop_assert!(cache.len() <= 8);
            }
        }
    }
}
