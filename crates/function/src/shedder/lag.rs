//! How late the event loop of a worker is: the waiting time of requests whose listener does not measure it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often the lag is measured while requests come.
const BUSY: Duration = Duration::from_millis(10);

/// A timer whose delay is what a socket that became readable at the same time waits.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    due: Cell<Option<Instant>>,
    last: Cell<Duration>,
}

impl Lag {
    /// Expects the loop at a time, and returns it.
    pub(crate) fn expect(&self, now: Instant, busy: bool, idle: Duration) -> Instant {
        let due = now + if busy { BUSY } else { idle };
        self.due.set(Some(due));
        due
    }

    /// The loop has come to the timer; it last woke from idling at `woke`.
    pub(crate) fn arrived(&self, now: Instant, woke: Option<Instant>) {
        self.last.set(overdue(self.due.take(), now, woke));
    }

    /// How long a socket has waited at most that the loop comes to now.
    pub(crate) fn waited(&self, now: Instant, woke: Option<Instant>) -> Duration {
        let since_idle = woke.map_or(Duration::ZERO, |woke| now.saturating_duration_since(woke));
        let overdue = overdue(self.due.get(), now, woke);
        self.last.get().max(overdue).min(since_idle)
    }
}

/// A loop that idled at the time has not been late: the system woke it late, and nothing waited in it.
fn overdue(due: Option<Instant>, now: Instant, woke: Option<Instant>) -> Duration {
    let since = due.zip(woke).map(|(due, woke)| due.max(woke));
    since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
}
