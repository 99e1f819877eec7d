//! Database processors that poll the journal: when each did last, and what it lacks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Names that are kept, at most; a new one replaces the one that has not polled for longest.
const MOST_NAMES: usize = 256;
/// Polls that wait, at most; more are refused.
const MOST_WAITING: usize = 1_000;
/// Checkpoints that are sent at a time, at most: each keeps changed blocks in memory.
const MOST_CHECKPOINTS: usize = 4;

/// Database processors by name.
#[derive(Debug, Default)]
pub(crate) struct Pollers {
    names: Mutex<HashMap<String, Poller>>,
    waiting: AtomicUsize,
    checkpoints: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Poller {
    at: Instant,
    offset: u64,
}

/// Something that is counted until it is dropped.
pub(crate) struct Place(std::sync::Arc<Pollers>, fn(&Pollers) -> &AtomicUsize);

impl Drop for Place {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pollers {
    /// A processor has polled: it has all transactions up to this offset.
    pub(crate) fn polled(&self, name: &str, offset: u64, now: Instant) {
        let mut names = self.names.lock();
        if let Some(poller) = names.get_mut(name) {
            *poller = Poller { at: now, offset };
            return;
        }
        if names.len() >= MOST_NAMES
            && let Some(oldest) = names.iter().min_by_key(|(_, poller)| poller.at)
        {
            let oldest = oldest.0.clone();
            names.remove(&oldest);
        }
        names.insert(name.to_owned(), Poller { at: now, offset });
    }

    /// Each processor, how long ago it polled, and up to which offset it has transactions.
    pub(crate) fn all(&self, now: Instant) -> Vec<(String, Duration, u64)> {
        let names = self.names.lock();
        let each = names.iter().map(|(name, poller)| {
            let age = now.saturating_duration_since(poller.at);
            (name.clone(), age, poller.offset)
        });
        let mut all: Vec<_> = each.collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// A place for a poll that waits; none where there are too many.
    pub(crate) fn wait(self: &std::sync::Arc<Self>) -> Option<Place> {
        self.place(|it| &it.waiting, MOST_WAITING)
    }

    /// A place for a checkpoint that is sent; none where there are too many.
    pub(crate) fn checkpoint(self: &std::sync::Arc<Self>) -> Option<Place> {
        self.place(|it| &it.checkpoints, MOST_CHECKPOINTS)
    }

    fn place(self: &std::sync::Arc<Self>, counter: fn(&Self) -> &AtomicUsize, most: usize) -> Option<Place> {
        let before = counter(self).fetch_add(1, Ordering::Relaxed);
        let place = Place(self.clone(), counter);
        (before < most).then_some(place)
    }

    /// Polls that wait, checkpoints that are sent.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (load(&self.waiting), load(&self.checkpoints))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_and_places_are_bounded() {
        let (pollers, begun) = (Arc::new(Pollers::default()), Instant::now());
        for number in 0..MOST_NAMES + 10 {
            let at = begun + Duration::from_millis(number as u64);
            pollers.polled(&format!("dp{number}"), 7, at);
        }
        let names = pollers.all(begun);
        assert_eq!(names.len(), MOST_NAMES);
        assert!(!names.iter().any(|(name, ..)| name == "dp9"), "the oldest ones");
        let places: Vec<_> = std::iter::from_fn(|| pollers.checkpoint()).collect();
        assert_eq!((places.len(), pollers.in_flight()), (MOST_CHECKPOINTS, (0, 4)));
        drop(places);
        assert!(pollers.in_flight() == (0, 0) && pollers.wait().is_some());
    }
}
