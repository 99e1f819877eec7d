//! When a client connects anew without a good-bye.

use std::ops::Range;
use std::time::Duration;

use crate::engine::Backoff;

/// How soon and how late one may follow another, as multiples of the usual time.
const NEXT: Range<f64> = 0.75..1.25;
/// By how much of the usual time one may be late. Of clients that a stall has made later than that all are due at one
/// moment; they are put off, each by a time of its own.
const TARDY: f64 = 0.1;

/// When a client connects anew.
#[derive(Debug)]
pub(super) struct Renewals {
    every: Option<Duration>,
    at: Duration,
}

impl Renewals {
    /// So often on average; clients do not all begin at once.
    pub(super) fn new(every: Option<Duration>, backoff: &mut Backoff) -> Self {
        Self {
            every,
            at: every.map_or(Duration::MAX, |every| backoff.part_of(every, 1.0..2.0)),
        }
    }

    /// Whether it is time to.
    pub(super) fn is_due(&mut self, now: Duration, backoff: &mut Backoff) -> bool {
        let Some(every) = self.every else { return false };
        if self.at + every.mul_f64(TARDY) <= now {
            self.at = now + backoff.part_of(every, 0.0..1.0);
        }
        self.at <= now
    }

    /// It has.
    pub(super) fn done(&mut self, now: Duration, backoff: &mut Backoff) {
        if let Some(every) = self.every {
            self.at = now + backoff.part_of(every, NEXT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(2);
    const CLIENTS: usize = 100;

    /// How many connected anew in each tick of 10 ms, with none while the machine stood still.
    fn ticks(length: Duration, stall: Range<Duration>) -> Vec<usize> {
        let mut clients: Vec<(Renewals, Backoff)> = (0..CLIENTS)
            .map(|number| {
                let mut backoff = Backoff::of(&format!("mme{number:03}"));
                (Renewals::new(Some(EVERY), &mut backoff), backoff)
            })
            .collect();
        let all = (0..).map(|tick| Duration::from_millis(10) * tick);
        let all = all
            .take_while(|now| *now < length)
            .filter(|now| !stall.contains(now));
        let one = |now| {
            let mut count = 0;
            for (renewals, backoff) in &mut clients {
                if renewals.is_due(now, backoff) {
                    renewals.done(now, backoff);
                    count += 1;
                }
            }
            count
        };
        all.map(one).collect()
    }

    #[test]
    fn a_stall_makes_no_storm() {
        let long = Duration::from_secs(60);
        let undisturbed = ticks(long, Duration::ZERO..Duration::ZERO);
        let times = undisturbed.iter().sum::<usize>();
        // One every two seconds, but for the first, which comes later.
        assert!((28 * CLIENTS..=30 * CLIENTS).contains(&times), "{times}");
        let stalled = ticks(long, Duration::from_secs(20)..Duration::from_secs(25));
        for (name, one) in [("undisturbed", undisturbed), ("stalled", stalled)] {
            let most = one.iter().max().copied().unwrap_or(0);
            assert!(most <= CLIENTS / 8, "{name}: {most} of {CLIENTS} at one moment");
        }
    }

    #[test]
    fn two_runs_are_alike_and_some_clients_stay() {
        let run = || ticks(Duration::from_secs(10), Duration::ZERO..Duration::ZERO);
        assert_eq!(run(), run());
        let mut backoff = Backoff::of("mme000");
        let mut never = Renewals::new(None, &mut backoff);
        assert!(!never.is_due(Duration::from_secs(1 << 30), &mut backoff));
    }
}
