//! From which version on the journal is read, so that no change is missed and few are read twice.
//!
//! A version is the time at which its writer began to commit, by the writer's clock. The change becomes visible later: as a
//! rule within milliseconds, after a deadlock or the loss of a node by as much as the store tries again. So most reads go
//! back a little, and every few seconds one goes back as far as a change can be late. What was read before is recognised
//! by its version.

use std::time::Duration;

use crate::config::Cluster as Settings;

/// What to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// What was modified at this time (microseconds since 1970) or later.
    From(u64),
    /// Everything: the journal no longer has all that was missed.
    Everything,
}

/// How often a read goes back as far as a change can be late.
const THOROUGH_EVERY: Duration = Duration::from_secs(3);

/// When the journal was read.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    skew: u64,
    late: u64,
    keep: u64,
    /// Start of the last read.
    last: u64,
    /// Start of the last thorough read.
    thorough: u64,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Schedule {
    /// After everything was read from `began` on. `late` is how long a commit can take.
    pub(super) fn new(settings: &Settings, late: Duration, began: u64) -> Self {
        let skew = micros(settings.clock_skew.duration());
        Self {
            skew,
            late: skew + micros(late),
            keep: micros(settings.keep_changes.duration()),
            last: began,
            thorough: began,
        }
    }

    /// By how much a change may be visible later than its version says.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// What a read has to cover that begins at `now`.
    pub(super) fn next(&self, now: u64) -> Reading {
        if now.saturating_sub(self.thorough) + self.late >= self.keep {
            return Reading::Everything;
        }
        if self.is_thorough(now) {
            Reading::From(self.thorough.saturating_sub(self.late))
        } else {
            Reading::From(self.last.saturating_sub(self.skew))
        }
    }

    /// The read that began at `now` has succeeded.
    pub(super) fn done(&mut self, now: u64) {
        if self.is_thorough(now) {
            self.thorough = now;
        }
        self.last = now;
    }

    fn is_thorough(&self, now: u64) -> bool {
        now.saturating_sub(self.thorough) >= micros(THOROUGH_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is visible before a read begins has been covered by a read that began after it became visible, unless a
        /// thorough one is still due.
        #[test]
        fn no_change_is_missed(
            pauses in prop::collection::vec((1u64..2_000_000, any::<bool>()), 1..60),
            changes in prop::collection::vec((0u64..60_000_000, 0u64..12_000_000), 1..40),
        ) {
            let late = Duration::from_secs(10);
            let start = 1_000_000_000;
            let mut schedule = Schedule::new(&Settings::default(), late, start);
            let changes: Vec<(u64, u64)> = changes.into_iter().map(|(at, delay)| (start + at, start + at + delay)).collect();
            let (mut now, mut seen) = (start, vec![false; changes.len()]);
            let mut rounds: Vec<(u64, bool)> = pauses;
            // In the end two reads that succeed, far enough apart.
            rounds.extend([(4_000_000, true), (4_000_000, true)]);
            let before_last = rounds.iter().map(|(pause, _)| pause).sum::<u64>() + start - 4_000_000;
            for (pause, succeeds) in rounds {
                now += pause;
                if !succeeds {
                    continue;
                }
                let reading = schedule.next(now);
                for (change, seen) in changes.iter().zip(&mut seen) {
                    *seen |= change.1 <= now && match reading {
                        Reading::From(from) => change.0 >= from,
                        Reading::Everything => true,
                    };
                }
                schedule.done(now);
            }
            for (change, seen) in changes.iter().zip(seen) {
                prop_assert!(seen || change.1 > before_last, "{change:?}");
            }
        }
    }

    #[test]
    fn after_a_long_pause_everything_is_read() {
        let settings = Settings::default();
        let mut schedule = Schedule::new(&settings, Duration::from_secs(10), 0);
        let keep = micros(settings.keep_changes.duration());
        assert_eq!(schedule.next(keep), Reading::Everything);
        schedule.done(keep);
        assert_eq!(schedule.next(keep + 1), Reading::From(keep - schedule.skew));
    }
}
