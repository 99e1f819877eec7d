//! Pauses of a client between a lost connection and its next attempt.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The longest first pause; doubles with each failure in a row.
const FIRST: Duration = Duration::from_millis(400);
/// The longest pause of all.
const LONGEST: Duration = Duration::from_secs(5);
/// The least part of the longest that a pause may be.
const LEAST: f64 = 0.1;

/// Pauses of one client. Many clients that lost their connections at one moment, as after a stall of the machine, do
/// not reconnect at one moment; and two runs of the same clients have the same pauses.
#[derive(Debug)]
pub(crate) struct Backoff {
    random: SmallRng,
    failures: u32,
}

impl Backoff {
    /// Pauses of the client of this name.
    pub(crate) fn of(name: &str) -> Self {
        // FNV-1a: of any name the same number in each run and build.
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self {
            random: SmallRng::seed_from_u64(seed),
            failures: 0,
        }
    }

    /// How long to wait now that a try has failed, or a connection was lost.
    pub(crate) fn pause(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.part_of(longest, LEAST..1.0)
    }

    /// The connection stands: the next pause is a first one again.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A share of a time, drawn from a range of factors.
    pub(crate) fn part_of(&mut self, time: Duration, times: Range<f64>) -> Duration {
        time.mul_f64(self.random.random_range(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(name: &str, count: usize) -> Vec<Duration> {
        let mut backoff = Backoff::of(name);
        (0..count).map(|_| backoff.pause()).collect()
    }

    #[test]
    fn clients_come_back_apart_and_in_each_run_alike() {
        assert_eq!(pauses("mme001", 20), pauses("mme001", 20));
        let mut first: Vec<Duration> = (0..16).map(|n| pauses(&format!("mme{n:03}"), 1)[0]).collect();
        first.sort_unstable();
        // Spread over most of what the first pause may be, instead of all at one moment.
        assert!(first[15] - first[0] > FIRST / 2, "{first:?}");
        first.dedup();
        assert_eq!(first.len(), 16);
    }

    #[test]
    fn pauses_grow_up_to_a_bound_and_begin_anew() {
        let many = pauses("mme001", 100);
        assert!(
            many[0] <= FIRST
                && many
                    .iter()
                    .all(|pause| (FIRST.mul_f64(LEAST)..=LONGEST).contains(pause))
        );
        assert!(many[10..].iter().sum::<Duration>() / 90 > LONGEST / 3);
        let mut backoff = Backoff::of("mme001");
        for _ in 0..10 {
            backoff.pause();
        }
        backoff.succeeded();
        assert!(backoff.pause() <= FIRST);
    }
}
