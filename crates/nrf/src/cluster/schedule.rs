//! From which version on the journal is read, so that no change is missed and few are read twice.
//!
//! A version is the time at which its writer began to commit, by the writer's clock. The change becomes visible later: as a
//! rule within milliseconds, after a deadlock or the loss of a node by as much as the store tries again. So most reads go
//! back a little, and every few seconds one goes back as far as a change can be late. What was read before is recognised
//! by its version.
//!
//! What other sites have written is visible when replication brings it: at the moment `now` that is what they wrote before
//! `now` less the delay of the slowest. A read covers what was brought since the thorough read before. When a delay ends
//! that was longer than the lateness of a commit, everything is read: replication settles conflicts of records that several
//! sites have written by their versions, and the journal does not name each record of which another site's change won.

use std::time::Duration;

use crate::config::Cluster as Settings;

/// What to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// What was modified at this time (microseconds since 1970) or later.
    From(u64),
    /// Everything: the journal no longer has, or never had, all that was missed.
    Everything,
}

/// How often a read goes back as far as a change can be late.
const THOROUGH_EVERY: Duration = Duration::from_secs(3);
/// By how many microseconds of another site's time replication gets on, between two thorough reads, where it does: more
/// than two readings of a clock differ by.
const ARRIVES: u64 = 100_000;

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
    /// Up to which moment that read saw what other sites have written.
    brought: u64,
    /// Start of the last read of everything.
    everything: u64,
    /// Whether other sites were late by more than a commit since everything was read.
    was_cut: bool,
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
            brought: began,
            everything: began,
            was_cut: false,
        }
    }

    /// By how much a change may be visible later than its version says.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// What a read has to cover that begins at `now`. `delay` is that of the slowest other site; `None`: there is none.
    pub(super) fn next(&mut self, now: u64, delay: Option<Duration>) -> Reading {
        let delay_micros = micros(delay.unwrap_or_default());
        self.was_cut |= delay_micros > self.late;
        let is_joined = self.was_cut && delay_micros <= self.late / 2;
        let missed = now.saturating_sub(self.thorough) + self.late >= self.keep;
        // Sites may remove an entry of the journal and change it at the same moment.
        let is_due = delay.is_some() && now.saturating_sub(self.everything) >= self.keep;
        if missed || is_joined || is_due {
            return Reading::Everything;
        }
        if !self.is_thorough(now) {
            return Reading::From(self.last.saturating_sub(self.skew));
        }
        // While nothing arrives, there is nothing older to read.
        let arrives = now.saturating_sub(delay_micros) > self.brought + ARRIVES;
        let from = if arrives { self.brought } else { self.thorough };
        Reading::From(from.min(self.thorough).saturating_sub(self.late))
    }

    /// This read, which began at `now` with that delay, has succeeded.
    pub(super) fn done(&mut self, now: u64, delay: Option<Duration>, reading: Reading) {
        if self.is_thorough(now) || reading == Reading::Everything {
            self.thorough = now;
            let brought = now.saturating_sub(micros(delay.unwrap_or_default()));
            self.brought = self.brought.max(brought);
        }
        if reading == Reading::Everything {
            self.everything = now;
            self.was_cut = false;
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
                let reading = schedule.next(now, None);
                for (change, seen) in changes.iter().zip(&mut seen) {
                    *seen |= change.1 <= now && match reading {
                        Reading::From(from) => change.0 >= from,
                        Reading::Everything => true,
                    };
                }
                schedule.done(now, None, reading);
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
        assert_eq!(schedule.next(keep, None), Reading::Everything);
        schedule.done(keep, None, Reading::Everything);
        assert_eq!(schedule.next(keep + 1, None), Reading::From(keep - schedule.skew));
    }

    const SECOND: u64 = 1_000_000;

    /// Reads once a second; what each read was, with the second.
    fn readings(
        schedule: &mut Schedule,
        seconds: std::ops::Range<u64>,
        delay: impl Fn(u64) -> u64,
    ) -> Vec<(u64, Reading)> {
        let read = |second: u64| {
            let (now, delay) = (second * SECOND, Some(Duration::from_secs(delay(second))));
            let reading = schedule.next(now, delay);
            schedule.done(now, delay, reading);
            (second, reading)
        };
        seconds.map(read).collect()
    }

    #[test]
    fn when_a_cut_ends_everything_is_read_once() {
        let start = 1_000;
        let mut schedule = Schedule::new(&Settings::default(), Duration::from_secs(10), start * SECOND);
        // Cut for 100 s from the 20th on.
        let cut = start + 20..start + 120;
        let delay = |second| {
            if cut.contains(&second) {
                second - cut.start
            } else {
                0
            }
        };
        let read = readings(&mut schedule, start..start + 200, delay);
        let all: Vec<u64> = read
            .iter()
            .filter(|(_, reading)| *reading == Reading::Everything)
            .map(|(second, _)| *second)
            .collect();
        assert_eq!(all, [cut.end]);
        let late = schedule.late();
        for (second, reading) in read {
            if let Reading::From(from) = reading {
                let old = second * SECOND - from;
                assert!(
                    old <= late + micros(THOROUGH_EVERY),
                    "nothing arrives in the cut: {second} {old}"
                );
            }
        }
    }

    /// Replication that is always half a minute late: each thorough read covers what has arrived since the one before.
    #[test]
    fn what_is_always_late_is_read() {
        let (start, delay) = (1_000, 30);
        let mut schedule = Schedule::new(&Settings::default(), Duration::from_secs(10), start * SECOND);
        let mut unread = start;
        for (second, reading) in readings(&mut schedule, start + 40..start + 400, |_| delay) {
            let Reading::From(from) = reading else {
                panic!("{second}: everything")
            };
            if from <= unread * SECOND {
                unread = second - delay;
            }
            assert!(unread + delay + 4 >= second, "{second}: read up to {unread}");
        }
    }
}
