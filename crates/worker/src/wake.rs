//! When the event loop of a worker last woke: until then it had nothing to do.
//!
//! A worker that has more to do than it can finds events whenever it asks for them, and the kernel and the runtime may
//! take long to report hundreds of them. That is not sleep: what they report has waited while the worker was busy. After
//! a turn that was long enough to matter, the worker has slept only if the kernel has taken it off its core at its own
//! request meanwhile (a voluntary context switch).

use std::cell::Cell;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// A shorter wait means that an event was ready already: the call into the kernel alone takes a few microseconds.
const SLEPT: Duration = Duration::from_micros(20);
/// After a shorter turn a wrong answer costs less than this of a waiting time, and the kernel is not asked.
const LONG_TURN: Duration = Duration::from_millis(1);

/// A wait that has begun.
#[derive(Clone, Copy)]
struct Wait {
    /// A wait that lasts until then may have been sleep.
    sleeps_from: Instant,
    /// Voluntary context switches of the thread until then; none: not asked for.
    switches: Option<i64>,
}

thread_local! {
    static WAIT: Cell<Option<Wait>> = const { Cell::new(None) };
    /// When the turn after the last wait counts as long.
    static LONG_FROM: Cell<Option<Instant>> = const { Cell::new(None) };
    static WOKE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Called when the worker is about to ask for events, and to wait if there are none. Returns the present time.
pub(crate) fn parks() -> Instant {
    let now = Instant::now();
    let is_long = LONG_FROM.get().is_some_and(|from| now >= from);
    WAIT.set(Some(Wait {
        sleeps_from: now + SLEPT,
        switches: is_long.then(switches).flatten(),
    }));
    now
}

/// Called when there are events. Returns the present time.
pub(crate) fn woke() -> Instant {
    let now = Instant::now();
    if WAIT.take().is_some_and(|wait| wait.has_slept(now)) {
        WOKE.set(Some(now));
    }
    LONG_FROM.set(Some(now + LONG_TURN));
    now
}

/// When the event loop of this thread last woke from waiting for events; none: never, or this thread runs no worker.
#[must_use]
pub fn woke_at() -> Option<Instant> {
    WOKE.get()
}

impl Wait {
    fn has_slept(self, now: Instant) -> bool {
        now >= self.sleeps_from && self.switches.is_none_or(|before| switches() != Some(before))
    }
}

/// How many times this thread has given up its core to wait; none where the system does not count it.
fn switches() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    Some(usage.voluntary_context_switches())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the core for this time.
    fn work(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_wait_in_which_the_worker_was_busy_is_no_sleep() {
        parks();
        std::thread::sleep(SLEPT);
        let woke = woke();
        assert_eq!(woke_at(), Some(woke));
        for _ in 0..3 {
            work(LONG_TURN);
            parks();
            work(10 * SLEPT);
            super::woke();
            assert_eq!(woke_at(), Some(woke), "it has not slept");
        }
        work(LONG_TURN);
        parks();
        std::thread::sleep(SLEPT);
        let again = super::woke();
        assert_eq!(woke_at(), Some(again));
    }
}
