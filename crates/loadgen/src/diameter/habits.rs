//! Events of simulated clients besides requests: reconnections without a DPR, and watchdogs at a fixed interval.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Events of clients besides requests.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// Mean interval at which each client reconnects, at times of its own, under the same name and without a DPR, while
    /// requests are in flight; it reads the former connection until the peer closes that.
    pub reconnect: Option<Duration>,
    /// Interval at which each client sends a DWR, whatever else it receives.
    pub watchdog: Option<Duration>,
    /// Counters of these events, over all generator threads.
    pub counts: Arc<HabitCounts>,
}

/// Counters of these events.
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
    /// Reconnections.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// Answers without a pending request.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    /// DWRs sent, and DWAs received.
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

    /// Connections that ended against the will of the client.
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
