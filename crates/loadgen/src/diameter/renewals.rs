//! Times at which a client reconnects without a DPR.

use std::ops::Range;
use std::time::Duration;

use crate::engine::Backoff;

/// Least and largest interval, as multiples of the mean.
const NEXT: Range<f64> = 0.75..1.25;
/// Largest delay, as a share of the mean interval. After a stall of the machine many clients are due at one moment;
/// clients later than this draw a new time each.
const TARDY: f64 = 0.1;

/// Times at which a client reconnects.
#[derive(Debug)]
pub(super) struct Renewals {
    every: Option<Duration>,
    at: Duration,
}

impl Renewals {
    /// Mean interval; the first times of the clients are spread.
    pub(super) fn new(every: Option<Duration>, backoff: &mut Backoff) -> Self {
        Self {
            every,
            at: every.map_or(Duration::MAX, |every| backoff.part_of(every, 1.0..2.0)),
        }
    }

    /// Whether a reconnection is due.
    pub(super) fn is_due(&mut self, now: Duration, backoff: &mut Backoff) -> bool {
        let Some(every) = self.every else { return false };
        if self.at + every.mul_f64(TARDY) <= now {
            self.at = now + backoff.part_of(every, 0.0..1.0);
        }
        self.at <= now
    }

    /// Records a reconnection.
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

    /// The number of reconnections in each tick of 10 ms, where the machine does not tick during the stall.
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
    fn a_stall_causes_no_reconnection_storm() {
        let long = Duration::from_secs(60);
        let undisturbed = ticks(long, Duration::ZERO..Duration::ZERO);
        let times = undisturbed.iter().sum::<usize>();
        // One reconnection every two seconds, except for the first, which comes later.
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
