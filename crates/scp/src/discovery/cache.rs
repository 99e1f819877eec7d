//! Answers of the NRF, kept as long as it said, found again by the question.
//!
//! It knows three states of a question: not known, being asked (a request that asks the same meanwhile waits for that one
//! answer), and answered. Time is an argument.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use routing::network::ServiceRef;
use routing::query::DiscoveryQuery;

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
    /// Answered, and valid until then.
    Hit(Arc<Found>, Instant),
    /// Somebody is asking; wait for that answer.
    Asking,
    /// Nobody has asked, or the answer has expired: the caller is to ask now.
    Miss,
}

/// An answer as a page shows it.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The question, as the NRF is asked it.
    pub(crate) query: String,
    pub(crate) candidates: usize,
    /// How much longer it is valid.
    pub(crate) left: Duration,
}

#[derive(Debug)]
enum Entry {
    Asking,
    Known {
        found: Arc<Found>,
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
        }
    }
}

impl<S: BuildHasher> Cache<S> {
    /// Keeps at most so many questions from now on; those above go first.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
        while self.entries.len() > self.capacity {
            let excess = self.entries.len();
            self.make_room(Instant::now());
            if self.entries.len() == excess {
                // All are being asked.
                break;
            }
        }
    }

    /// What is known at `now`. On [`Lookup::Miss`] the question counts as being asked until [`Cache::learn`]
    /// or [`Cache::forget`].
    pub fn look_up(&mut self, query: &DiscoveryQuery, now: Instant) -> Lookup {
        match self.entries.get_mut(query) {
            Some(Entry::Known { found, until, used }) if now < *until => {
                *used = true;
                return Lookup::Hit(found.clone(), *until);
            }
            Some(Entry::Asking) => {
                return Lookup::Asking;
            }
            Some(expired) => *expired = Entry::Asking,
            None => {
                self.make_room(now);
                self.entries.insert(query.clone(), Entry::Asking);
            }
        }
        Lookup::Miss
    }

    /// Keeps the answer for `validity` from `now`; an answer of no validity serves only those who wait for it.
    pub fn learn(&mut self, query: &DiscoveryQuery, found: Arc<Found>, validity: Duration, now: Instant) {
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

    /// The answers that are valid, at most this number.
    pub(crate) fn shown(&self, now: Instant, most: usize) -> Vec<Shown> {
        let answered = self.entries.iter().filter_map(|(query, entry)| match entry {
            Entry::Known { found, until, .. } if now < *until => Some(Shown {
                query: query.as_str().to_owned(),
                candidates: found.candidates.len(),
                left: until.saturating_duration_since(now),
            }),
            _ => None,
        });
        answered.take(most).collect()
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
                    if now >= *until || !*used {
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

    fn nothing() -> Arc<Found> {
        Arc::new(Found {
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
            Lookup::Hit(..)
        ));
        assert!(matches!(
            cache.look_up(&query(1), now + Duration::from_secs(4)),
            Lookup::Miss
        ));
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
    fn the_often_used_outlive_the_others() {
        let (mut cache, now) = (Cache::new(100), Instant::now());
        for n in 0..10_000 {
            if matches!(cache.look_up(&query(n), now), Lookup::Miss) {
                cache.learn(&query(n), nothing(), Duration::from_secs(60), now);
            }
            if n > 0 {
                assert!(
                    matches!(cache.look_up(&query(0), now), Lookup::Hit(..)),
                    "lost at {n}"
                );
            }
        }
        assert_eq!(cache.len(), 100);
    }

    proptest! {
        #[test]
        fn it_stays_within_its_bound(steps in proptest::collection::vec((0u32..40, 0u8..2, 0u64..5), 1..400)) {
            let (mut cache, mut now) = (Cache::new(8), Instant::now());
            for (n, step, wait) in steps {
                now += Duration::from_secs(wait);
                match step {
                    0 => { if matches!(cache.look_up(&query(n), now), Lookup::Miss) { cache.forget(&query(n)); } }
                    _ => cache.learn(&query(n), nothing(), Duration::from_secs(7), now),
                }
                prop_assert!(cache.len() <= 8);
            }
        }
    }
}
