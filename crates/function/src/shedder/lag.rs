//! How late the event loop of a worker is: the waiting time of requests whose listener does not measure it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often the lag is measured while requests come.
const BUSY: Duration = Duration::from_millis(10);

/// A timer whose delay equals the time that a socket waits which became readable at the same moment.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    due: Cell<Option<Instant>>,
    last: Cell<Duration>,
}

impl Lag {
    /// Arms the timer: returns the time at which the loop should reach it.
    pub(crate) fn expect(&self, now: Instant, busy: bool, idle: Duration) -> Instant {
        let due = now + if busy { BUSY } else { idle };
        self.due.set(Some(due));
        due
    }

    /// Records that the loop has reached the timer; it last woke from idling at `woke`.
    pub(crate) fn arrived(&self, now: Instant, woke: Option<Instant>) {
        self.last.set(overdue(self.due.take(), now, woke));
    }

    /// An upper bound of the time that a socket was readable before the loop polls it now.
    pub(crate) fn waited(&self, now: Instant, woke: Option<Instant>) -> Duration {
        let since_idle = woke.map_or(Duration::ZERO, |woke| now.saturating_duration_since(woke));
        let overdue = overdue(self.due.get(), now, woke);
        self.last.get().max(overdue).min(since_idle)
    }
}

/// A loop that idled at the due time was not late: the system woke it late, and no socket was pending.
fn overdue(due: Option<Instant>, now: Instant, woke: Option<Instant>) -> Duration {
    let since = due.zip(woke).map(|(due, woke)| due.max(woke));
    since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
}
