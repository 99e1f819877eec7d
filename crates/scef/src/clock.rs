//! The time that is stored: microseconds since 1970.

use std::time::Duration;

use store::Clock;

/// Now.
pub(crate) fn now() -> u64 {
    Clock::default().micros()
}

/// A time after now.
pub(crate) fn after(time: Duration) -> u64 {
    now().saturating_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
