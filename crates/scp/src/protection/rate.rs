//! Rates that all workers keep together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use overload::Rate;
use parking_lot::Mutex;

use crate::config::Protection;

/// A rate shared by workers: the generic cell rate algorithm, whose whole state is one point in time.
///
/// Only messages of those who have a rate touch it; it is one cache line per rate.
#[derive(Debug)]
pub(crate) struct SharedRate {
    /// Nanoseconds that a message costs; 0: none passes.
    cost: u64,
    /// How far ahead of now the state may be, in nanoseconds.
    depth: u64,
    began: Instant,
    /// When the bucket will be full again, in nanoseconds since `began`.
    full: AtomicU64,
}

impl SharedRate {
    pub(crate) fn new(rate: Rate, share: f64) -> Self {
        let per_second = rate.per_second * share;
        let cost = match per_second > 0.0 {
            true => (1e9 / per_second).clamp(1.0, 1e15) as u64,
            false => 0,
        };
        let burst = rate.burst.map_or((per_second / 10.0).ceil(), f64::from).max(1.0);
        Self {
            cost,
            depth: (cost as f64 * burst).min(9e18) as u64,
            began: Instant::now(),
            full: AtomicU64::new(0),
        }
    }

    /// Whether a message may pass now; if so, it has.
    pub(crate) fn allow(&self, now: Instant) -> bool {
        if self.cost == 0 {
            return false;
        }
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX / 2);
        let next = |full: u64| {
            let after = full.max(now) + self.cost;
            (after - now <= self.depth).then_some(after)
        };
        self.full
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
    }

    /// How long until a message may pass; `None`: none ever may.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos()).ok()?;
        let ahead = self.full.load(Ordering::Relaxed).max(now) + self.cost - now;
        (self.cost > 0).then(|| Duration::from_nanos(ahead.saturating_sub(self.depth)))
    }
}

/// Rates by whom they are for; made when somebody is first seen, by whichever worker sees it.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    ingress: Mutex<ahash::AHashMap<Box<str>, Arc<SharedRate>>>,
    egress: Mutex<ahash::AHashMap<Box<str>, Arc<SharedRate>>>,
}

impl Rates {
    /// The rate of a consumer, if it has one.
    pub(crate) fn of_consumer(&self, settings: &Protection, consumer: &str) -> Option<Arc<SharedRate>> {
        let named = settings.ingress.iter().find(|one| one.consumer == consumer);
        let rate = named
            .or_else(|| settings.ingress.iter().find(|one| one.consumer == "*"))?
            .rate;
        let mut known = self.ingress.lock();
        // As many as there are consumers told apart, over all workers.
        if known.len() >= settings.max_consumers && !known.contains_key(consumer) {
            return known.get("*").cloned().or_else(|| {
                let shared = Arc::new(SharedRate::new(rate, 1.0));
                known.insert("*".into(), shared.clone());
                Some(shared)
            });
        }
        let shared = known
            .entry(consumer.into())
            .or_insert_with(|| Arc::new(SharedRate::new(rate, 1.0)));
        Some(shared.clone())
    }

    /// The rate of a producer, if it has one; `scps` share the global ones.
    pub(crate) fn of_producer(
        &self,
        settings: &Protection,
        authority: &str,
        instance: Option<&str>,
        scps: usize,
    ) -> Option<Arc<SharedRate>> {
        let named = |name: &str| settings.egress.iter().find(|one| one.producer == name);
        let (key, one) = match (named(authority), instance.and_then(|id| Some((id, named(id)?)))) {
            (Some(one), _) => (authority, one),
            (None, Some((id, one))) => (id, one),
            (None, None) => (authority, named("*")?),
        };
        let share = match one.global {
            true => 1.0 / scps.max(1) as f64,
            false => 1.0,
        };
        let shared = self
            .egress
            .lock()
            .entry(key.into())
            .or_insert_with(|| Arc::new(SharedRate::new(one.rate, share)))
            .clone();
        Some(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = SharedRate::new(
            Rate {
                per_second: 100.0,
                burst: Some(5),
            },
            1.0,
        );
        let start = rate.began + Duration::from_secs(1);
        let passed = (0..20).filter(|_| rate.allow(start)).count();
        assert_eq!(passed, 5);
        assert!(rate.wait(start).unwrap() > Duration::from_millis(9));
        let later = (1..=1_000)
            .filter(|ms| rate.allow(start + Duration::from_millis(*ms)))
            .count();
        assert!((99..=101).contains(&later), "{later}");
        assert!(!SharedRate::new(Rate::per_second(0.0), 1.0).allow(start));
    }

    #[test]
    fn workers_together_keep_it() {
        let rate = Arc::new(SharedRate::new(
            Rate {
                per_second: 1.0,
                burst: Some(1_000),
            },
            1.0,
        ));
        let now = Instant::now();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let rate = rate.clone();
                std::thread::spawn(move || (0..1_000).filter(|_| rate.allow(now)).count())
            })
            .collect();
        let passed: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(passed, 1_000);
    }
}
