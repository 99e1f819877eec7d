//! How old records are, by the clocks that wrote them.

use std::time::Duration;

use store::{Clock, Stored, is_plausible};

/// Ages of records by a clock.
#[derive(Clone, Debug, Default)]
pub struct Ages {
    /// The clock.
    pub clock: Clock,
}

impl Ages {
    /// Whether something was written longer ago than this; `written` is in microseconds since 1970.
    #[must_use]
    pub fn is_older(&self, written: u64, age: Duration) -> bool {
        written.saturating_add(micros(age)) < self.clock.micros()
    }

    /// Whether nothing has written something for this time. One of zero never ends, and of a time in the future, which a wrong
    /// clock has written, nothing is known.
    #[must_use]
    pub fn is_over(&self, written: u64, lifetime: Duration) -> bool {
        !lifetime.is_zero() && self.is_plausible(written) && self.is_older(written, lifetime)
    }

    /// Whether a time can be right.
    #[must_use]
    pub fn is_plausible(&self, written: u64) -> bool {
        is_plausible(written, &self.clock)
    }

    /// Whether the site that has written a record audits it, as far as can be seen: it has not missed the walk that is due
    /// after `due`.
    #[must_use]
    pub fn is_of_another_site<T>(&self, stored: &Stored<T>, own: &str, due: Duration) -> bool {
        *stored.site != *own && !self.is_older(stored.modified(), due.saturating_mul(2))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_lifetime_counts_from_the_last_write() {
        const DAY: Duration = Duration::from_secs(86_400);
        let hours = |count: u64| count * 3_600_000_000;
        let now = Arc::new(AtomicU64::new(0));
        let read = now.clone();
        let clock = Clock::new(move || read.load(Relaxed));
        let ages = Ages { clock };
        for (hour, written, over) in [
            (1_000, 1_000, false),
            (1_024, 1_000, false),
            (1_025, 1_000, true),
            (1_025, 1_025, false),
            // A clock was wrong: nothing is known of its age.
            (1_074, 9_000, false),
        ] {
            now.store(hours(hour), Relaxed);
            assert_eq!(ages.is_over(hours(written), DAY), over, "{hour} {written}");
        }
        assert!(!ages.is_over(hours(1), Duration::ZERO), "no lifetime never ends");
        assert!(ages.is_older(hours(1), Duration::ZERO));
    }
}
