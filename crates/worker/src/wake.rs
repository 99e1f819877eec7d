//! When the event loop of a worker last woke: until then it had nothing to do.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A shorter wait means that an event was ready already: the call into the kernel alone takes a few microseconds.
const SLEPT: Duration = Duration::from_micros(20);

thread_local! {
    static PARKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static WOKE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Called when the worker is about to ask for events, and to wait if there are none. Returns the present time.
pub(crate) fn parks() -> Instant {
    let now = Instant::now();
    PARKED.set(Some(now));
    now
}

/// Called when there are events. Returns the present time.
pub(crate) fn woke() -> Instant {
    let now = Instant::now();
    if PARKED
        .take()
        .is_some_and(|parked| now.saturating_duration_since(parked) >= SLEPT)
    {
        WOKE.set(Some(now));
    }
    now
}

/// When the event loop of this thread last woke from waiting for events; none: never, or this thread runs no worker.
#[must_use]
pub fn woke_at() -> Option<Instant> {
    WOKE.get()
}
