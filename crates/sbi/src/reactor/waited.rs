//! How long bytes waited before a worker began with them.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time that what is handled in a turn has waited at most.
///
/// Bytes that a turn finds came after the sockets were asked last. If the worker slept, they woke it, and have waited
/// since then only; if it was busy, they may have come any time since the turn before began.
#[derive(Debug)]
pub(crate) struct Waited {
    /// When the turn before the present one began.
    before: Cell<Instant>,
    began: Cell<Instant>,
    /// No bytes of this turn came before this.
    since: Cell<Instant>,
}

impl Waited {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            before: Cell::new(now),
            began: Cell::new(now),
            since: Cell::new(now),
        }
    }

    pub(super) fn begin(&self, now: Instant) {
        self.before.set(self.began.replace(now));
        let before = self.before.get();
        let since = worker::woke_at().map_or(before, |resumed| resumed.max(before));
        self.since.set(since.min(now));
    }

    /// What is handled now has waited for this long at most. `left`: since when bytes of its connection lay unread.
    pub(crate) fn at(&self, now: Instant, left: Option<Instant>) -> Duration {
        let since = left.map_or(self.since.get(), |left| left.min(self.since.get()));
        now.saturating_duration_since(since)
    }
}
