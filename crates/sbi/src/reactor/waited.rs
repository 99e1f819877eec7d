//! How long bytes waited before a worker began with them.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time that what is handled now has waited at most.
///
/// Bytes of a connection came after its socket was asked last. If the worker slept since, they woke it, and have waited
/// since then only; if it was busy, they may have come any time since the turn began in which the connection was woken, or
/// the last one before that. A connection that is woken may wait for several turns.
#[derive(Debug)]
pub(crate) struct Waited {
    /// When the present turn began.
    turn: Cell<Instant>,
    /// No bytes that are handled now came before this.
    since: Cell<Instant>,
    /// As `since`, of a connection that was woken for the present turn.
    of_turn: Cell<Instant>,
}

impl Waited {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            turn: Cell::new(now),
            since: Cell::new(now),
            of_turn: Cell::new(now),
        }
    }

    /// A turn begins.
    pub(super) fn begin(&self, now: Instant) {
        self.of_turn.set(after_sleep(self.turn.replace(now)).min(now));
        self.since.set(self.of_turn.get());
    }

    /// A connection that was woken after `since` is handled while `handle` runs.
    pub(super) fn woken(&self, since: Instant, handle: impl FnOnce()) {
        self.since.set(after_sleep(since));
        handle();
        self.since.set(self.of_turn.get());
    }

    /// What is handled now has waited for this long at most. `left`: since when bytes of its connection lay unread.
    pub(crate) fn at(&self, now: Instant, left: Option<Instant>) -> Duration {
        let since = left.map_or(self.since.get(), |left| left.min(self.since.get()));
        now.saturating_duration_since(since)
    }
}

/// What was pending at this moment and the worker slept through was not pending.
fn after_sleep(since: Instant) -> Instant {
    worker::woke_at().map_or(since, |resumed| resumed.max(since))
}
