//! What all threads share and an operator may change at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use function::sbi::Operational;
use parking_lot::Mutex;

use crate::config::Scoring;
use crate::score::{Measured, Score};

/// The switches, and the counts of each worker.
#[derive(Debug)]
pub(crate) struct Switches {
    operational: Arc<Operational>,
    congestion: AtomicBool,
    workers: Vec<WorkerCounts>,
    score: Mutex<Score>,
}

/// Counts of one worker. That worker writes them with each answer, so they have cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounts {
    requests: AtomicU64,
    failures: AtomicU64,
    /// Microseconds to all answers together.
    time: AtomicU64,
}

impl Switches {
    pub(crate) fn new(workers: usize, operational: Arc<Operational>, congestion: bool) -> Self {
        Self {
            operational,
            congestion: AtomicBool::new(congestion),
            workers: (0..workers).map(|_| WorkerCounts::default()).collect(),
            score: Mutex::new(Score::of(&Scoring::default(), &Measured::default())),
        }
    }

    /// The operational state, and the load.
    pub(crate) fn operational(&self) -> &Arc<Operational> {
        &self.operational
    }

    pub(crate) fn congestion(&self) -> bool {
        self.congestion.load(Relaxed)
    }

    pub(crate) fn set_congestion(&self, on: bool) {
        self.congestion.store(on, Relaxed);
    }

    /// A worker has answered a request after that time. Only that worker calls this.
    pub(crate) fn answered(&self, worker: usize, failed: bool, after: Duration) {
        let Some(counts) = self.workers.get(worker) else {
            return;
        };
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        };
        add(&counts.requests, 1);
        add(&counts.failures, u64::from(failed));
        add(&counts.time, u64::try_from(after.as_micros()).unwrap_or(u64::MAX));
    }

    /// Requests, failures and microseconds to answers, of all workers together.
    pub(crate) fn work(&self) -> (u64, u64, u64) {
        let sum = |of: fn(&WorkerCounts) -> &AtomicU64| {
            self.workers.iter().map(|worker| of(worker).load(Relaxed)).sum()
        };
        (
            sum(|worker| &worker.requests),
            sum(|worker| &worker.failures),
            sum(|worker| &worker.time),
        )
    }

    pub(crate) fn score(&self) -> Score {
        *self.score.lock()
    }

    pub(crate) fn set_score(&self, score: Score) {
        *self.score.lock() = score;
    }
}
