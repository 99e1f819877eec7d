//! Cache of the NRF's answers by query, each for its validity.
//!
//! A query has one of three states: unknown, in flight (further requests with the same query wait for that answer), and
//! answered. Time is an argument.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashSet;
use bounded::Limits;
use routing::network::ServiceRef;
use routing::query::DiscoveryQuery;

/// Result of a discovery, shared by all requests with the same query.
#[derive(Debug)]
pub struct Found {
    /// When the query was sent.
    pub asked: Instant,
    /// Service instances that can serve, in the order of the NRF's answer.
    pub candidates: Vec<ServiceRef>,
    /// Memory of this result alone, in bytes.
    pub bytes: usize,
}

impl Found {
    /// Memory of an answer with its query, in bytes.
    #[must_use]
    pub fn cost(&self, query: &DiscoveryQuery) -> usize {
        /// Memory of a cache entry, with the overhead of the allocator.
        const ENTRY: usize = 256;
        ENTRY + query.as_str().len() + self.bytes
    }
}

/// State of a query.
#[derive(Debug)]
pub enum Lookup {
    /// Answered; the answer is valid until the instant.
    Hit(Arc<Found>, Instant),
    /// The query is in flight; wait for its answer.
    Asking,
    /// The query is unknown, or its answer has expired: the caller has to send it.
    Miss,
}

/// An answer as a page shows it.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The query string.
    pub(crate) query: String,
    pub(crate) candidates: usize,
    /// Remaining validity.
    pub(crate) left: Duration,
}

/// A bounded cache of discovery answers.
#[derive(Debug)]
pub struct Cache {
    answers: bounded::Cache<DiscoveryQuery, (Arc<Found>, Instant)>,
    /// Queries in flight; bounded by the requests in flight.
    asking: AHashSet<DiscoveryQuery>,
}

impl Cache {
    /// A cache with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            answers: bounded::Cache::new(limits),
            asking: AHashSet::new(),
        }
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.answers.set_limits(limits);
    }

    /// Returns the state at `now`. After [`Lookup::Miss`] the query counts as in flight until [`Cache::learn`]
    /// or [`Cache::forget`].
    pub fn look_up(&mut self, query: &DiscoveryQuery, now: Instant) -> Lookup {
        if let Some((found, until)) = self.answers.get_if(query, |(_, until)| now < *until) {
            return Lookup::Hit(found.clone(), *until);
        }
        match self.asking.insert(query.clone()) {
            true => {
                self.answers.remove(query);
                Lookup::Miss
            }
            false => Lookup::Asking,
        }
    }

    /// Caches the answer for `validity` from `now`; an answer without validity serves only the pending requests.
    pub fn learn(&mut self, query: &DiscoveryQuery, found: Arc<Found>, validity: Duration, now: Instant) {
        self.asking.remove(query);
        if let Some(until) = now.checked_add(validity).filter(|until| *until > now) {
            let bytes = found.cost(query);
            self.answers.insert_sized(query.clone(), (found, until), bytes);
        }
    }

    /// Drops the answer to a query if it was asked for before `asked`.
    pub fn drop_older(&mut self, query: &DiscoveryQuery, asked: Instant) {
        if self
            .answers
            .get_if(query, |(found, _)| found.asked < asked)
            .is_some()
        {
            self.answers.remove(query);
        }
    }

    /// The query was not answered: the next request sends it again.
    pub fn forget(&mut self, query: &DiscoveryQuery) {
        self.asking.remove(query);
    }

    /// The answers that are valid, at most this number.
    pub(crate) fn shown(&self, now: Instant, most: usize) -> Vec<Shown> {
        let valid = self.answers.iter().filter(|(_, (_, until))| now < *until);
        let shown = valid.map(|(query, (found, until))| Shown {
            query: query.as_str().to_owned(),
            candidates: found.candidates.len(),
            left: until.saturating_duration_since(now),
        });
        shown.take(most).collect()
    }

    /// Answered queries and those in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len() + self.asking.len()
    }

    /// Memory of the answers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.answers.bytes()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
            bytes: 0,
        })
    }

    fn query(n: u32) -> DiscoveryQuery {
        DiscoveryQuery::new([("supi", n.to_string())])
    }

    #[test]
    fn one_asks_the_others_wait_and_then_all_know() {
        let (mut cache, now) = (Cache::new(Limits::entries(10)), Instant::now());
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
        let (mut cache, now) = (Cache::new(Limits::entries(10)), Instant::now());
        cache.look_up(&query(1), now);
        cache.forget(&query(1));
        assert!(matches!(cache.look_up(&query(1), now), Lookup::Miss));
        cache.learn(&query(1), nothing(), Duration::ZERO, now);
        assert!(cache.is_empty());
    }

    #[test]
    fn the_often_used_outlive_the_others() {
        let (mut cache, now) = (Cache::new(Limits::entries(100)), Instant::now());
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

    #[test]
    fn memory_is_bounded_however_long_questions_are() {
        let limits = Limits {
            entries: 1_000,
            bytes: 100_000,
        };
        let (mut cache, now) = (Cache::new(limits), Instant::now());
        for n in 0..100 {
            let long = DiscoveryQuery::new([("supi", format!("{n}-{}", "x".repeat(10_000)))]);
            cache.look_up(&long, now);
            cache.learn(&long, nothing(), Duration::from_secs(60), now);
            assert!(matches!(cache.look_up(&long, now), Lookup::Hit(..)));
        }
        assert!(cache.len() < 10 && cache.bytes() <= 100_000, "{}", cache.bytes());
    }

    proptest! {
        #[test]
        fn it_stays_within_its_bound(steps in proptest::collection::vec((0u32..40, 0u8..2, 0u64..5), 1..400)) {
            let (mut cache, mut now) = (Cache::new(Limits::entries(8)), Instant::now());
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
