//! The events of a function, counted by thread.

use std::sync::Arc;

use telemetry::Registry;
use telemetry::events::{self, Counters, Happening};

/// A set of counters for each worker, and one for the control thread.
#[derive(Debug)]
pub struct Counts<E>(Arc<[Arc<Counters<E>>]>);

impl<E> Clone for Counts<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Happening> Counts<E> {
    /// Counters for a number of workers, shown in `registry`.
    #[must_use]
    pub fn new(workers: usize, registry: &Registry) -> Self {
        let counts = Self((0..=workers).map(|_| Arc::default()).collect());
        let shown = counts.clone();
        events::observe(registry, move |event| shown.sum(event));
        counts
    }

    /// The counters of a worker; for a position above the last worker those of the control thread.
    #[must_use]
    pub fn of(&self, worker: usize) -> Arc<Counters<E>> {
        self.0.get(worker).map_or_else(|| self.control(), Arc::clone)
    }

    /// The counters of the control thread.
    #[must_use]
    pub fn control(&self) -> Arc<Counters<E>> {
        self.0.last().cloned().unwrap_or_default()
    }

    /// The count of an event, summed over all threads.
    #[must_use]
    pub fn sum(&self, event: E) -> u64 {
        self.0.iter().map(|counters| counters.get(event)).sum()
    }
}
