//! What all threads share and an operator may change at once.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

use crate::config::Scoring;
use crate::score::{Measured, Score};

/// How far the function is open: it can be shut down in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Every request is worked on.
    Serving,
    /// No new bindings and sessions; those that exist are served on.
    Partial,
    /// No request is worked on.
    Complete,
}

impl State {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Serving,
            1 => Self::Partial,
            _ => Self::Complete,
        }
    }
}

/// The switches, and the counts of each worker.
#[derive(Debug)]
pub(crate) struct Switches {
    state: AtomicU8,
    congestion: AtomicBool,
    workers: Vec<WorkerCounts>,
    score: Mutex<Score>,
}

/// Counts of one worker. That worker writes them with each answer, so they have cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounts {
    /// CPU time, in percent of a core.
    load: AtomicU32,
    requests: AtomicU64,
    failures: AtomicU64,
    /// Microseconds to all answers together.
    time: AtomicU64,
}

impl Switches {
    pub(crate) fn new(workers: usize, congestion: bool) -> Self {
        Self {
            state: AtomicU8::new(0),
            congestion: AtomicBool::new(congestion),
            workers: (0..workers).map(|_| WorkerCounts::default()).collect(),
            score: Mutex::new(Score::of(&Scoring::default(), &Measured::default())),
        }
    }

    pub(crate) fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn congestion(&self) -> bool {
        self.congestion.load(Relaxed)
    }

    pub(crate) fn set_congestion(&self, on: bool) {
        self.congestion.store(on, Relaxed);
    }

    /// Load of the busiest worker, in percent of a core.
    pub(crate) fn load(&self) -> u32 {
        let busiest = self.workers.iter().map(|worker| worker.load.load(Relaxed)).max();
        busiest.unwrap_or(0).min(100)
    }

    pub(crate) fn set_load(&self, worker: usize, load: f64) {
        if let Some(counts) = self.workers.get(worker) {
            counts.load.store(load as u32, Relaxed);
        }
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
