//! What simulated clients do besides asking: connect anew without a good-bye, ask whether their peer lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What clients do besides asking.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// Each connects anew so often on average, at a time of its own, under the same name and without a DPR, with
    /// requests under way; it reads the connection before until the peer closes that.
    pub reconnect: Option<Duration>,
    /// Each sends a DWR so often, whatever else comes.
    pub watchdog: Option<Duration>,
    /// What came of it, over all generator threads.
    pub counts: Arc<HabitCounts>,
}

/// What came of the habits.
#[derive(Debug, Default)]
pub struct HabitCounts {
    reconnects: AtomicU64,
    strays: AtomicU64,
    watchdogs: AtomicU64,
    watched: AtomicU64,
    slowest: AtomicU64,
    lost: AtomicU64,
}

impl HabitCounts {
    /// Clients that have connected anew.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// Answers that nobody waited for.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    /// DWRs sent, and DWAs that came.
    #[must_use]
    pub fn watchdogs(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.watchdogs), read(&self.watched))
    }

    /// The longest time from a DWR to its DWA.
    #[must_use]
    pub fn slowest_watchdog(&self) -> Duration {
        Duration::from_micros(self.slowest.load(Ordering::Relaxed))
    }

    /// Connections that ended though nobody wanted them to.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn strayed(&self) {
        self.strays.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn asked(&self) {
        self.watchdogs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, after: Duration) {
        self.watched.fetch_add(1, Ordering::Relaxed);
        self.slowest
            .fetch_max(after.as_micros() as u64, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}
