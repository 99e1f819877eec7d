//! When requests are sent: an open loop, whatever the answers do.
//!
//! Arrivals are placed on a grid of ticks, so that those of one tick can leave in one write per connection.
//! The intended time of an arrival is its grid point, also when the generator wakes up late: the delay is
//! then part of the latency and nothing is left out (no coordinated omission).

use std::time::Duration;

use rand::Rng;

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of one another, as those of many users are.
    #[default]
    Poisson,
    /// At equal distances.
    Constant,
}

/// An open-loop schedule. Times are counted from the generator's start.
#[derive(Clone, Debug)]
pub struct Schedule {
    tick: Duration,
    arrivals: Arrivals,
    rate: f64,
    next_tick: u64,
    /// Seconds from the start at which the next arrival is, before it is moved to the grid.
    next_arrival: f64,
}

/// Arrivals of one grid point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When they were to be sent.
    pub intended: Duration,
    /// How many.
    pub count: u32,
}

impl Schedule {
    /// A schedule that begins at `start` with `rate` arrivals per second.
    #[must_use]
    pub fn new(tick: Duration, arrivals: Arrivals, rate: f64, start: Duration) -> Self {
        let next_tick = (start.as_nanos() / tick.as_nanos().max(1)) as u64 + 1;
        let mut schedule = Self {
            tick,
            arrivals,
            rate,
            next_tick,
            next_arrival: start.as_secs_f64(),
        };
        if rate > 0.0 {
            schedule.next_arrival += 0.5 / rate;
        }
        schedule
    }

    /// Changes the rate from `now` on.
    pub fn set_rate(&mut self, rate: f64, now: Duration) {
        if (rate - self.rate).abs() > f64::EPSILON {
            *self = Self::new(self.tick, self.arrivals, rate, now);
        }
    }

    /// Arrivals per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The next grid point up to `now` that has arrivals; `None` when all that is due was taken.
    pub fn due(&mut self, now: Duration, random: &mut impl Rng) -> Option<Due> {
        loop {
            let intended = Duration::from_nanos(self.next_tick * self.tick.as_nanos() as u64);
            if intended > now {
                return None;
            }
            self.next_tick += 1;
            if self.rate <= 0.0 {
                continue;
            }
            let mut count = 0;
            while self.next_arrival <= intended.as_secs_f64() {
                count += 1;
                self.next_arrival += match self.arrivals {
                    Arrivals::Constant => 1.0 / self.rate,
                    Arrivals::Poisson => -(1.0 - random.random::<f64>()).ln() / self.rate,
                };
            }
            if count > 0 {
                return Some(Due { intended, count });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    const TICK: Duration = Duration::from_millis(1);

    /// Drives a schedule with the given wake-up times; all arrivals.
    fn drive(schedule: &mut Schedule, wakes: impl Iterator<Item = Duration>) -> Vec<Due> {
        let mut random = SmallRng::seed_from_u64(7);
        wakes
            .flat_map(|now| std::iter::from_fn(|| schedule.due(now, &mut random)).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn constant_arrivals_are_exact() {
        let mut schedule = Schedule::new(TICK, Arrivals::Constant, 2500.0, Duration::ZERO);
        let due = drive(&mut schedule, (0..=4000).map(Duration::from_millis));
        assert_eq!(due.iter().map(|d| d.count).sum::<u32>(), 10_000);
        assert!(due.iter().all(|d| d.count == 2 || d.count == 3));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_variance() {
        let mut schedule = Schedule::new(TICK, Arrivals::Poisson, 20_000.0, Duration::ZERO);
        let due = drive(&mut schedule, (0..=10_000).map(Duration::from_millis));
        let total: f64 = due.iter().map(|d| f64::from(d.count)).sum();
        assert!((total / 200_000.0 - 1.0).abs() < 0.01, "{total}");
        let variance = due
            .iter()
            .map(|d| (f64::from(d.count) - 20.0).powi(2))
            .sum::<f64>()
            / 10_000.0;
        assert!((variance / 20.0 - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn a_change_of_rate_neither_loses_nor_repeats_time() {
        let mut schedule = Schedule::new(TICK, Arrivals::Constant, 1000.0, Duration::ZERO);
        let first = drive(&mut schedule, (0..=1000).map(Duration::from_millis));
        schedule.set_rate(5000.0, Duration::from_secs(1));
        let second = drive(&mut schedule, (1000..=2000).map(Duration::from_millis));
        assert_eq!(first.iter().map(|d| d.count).sum::<u32>(), 1000);
        assert_eq!(second.iter().map(|d| d.count).sum::<u32>(), 5000);
        assert!(second[0].intended > Duration::from_secs(1));
        schedule.set_rate(0.0, Duration::from_secs(2));
        assert!(drive(&mut schedule, (2000..=3000).map(Duration::from_millis)).is_empty());
    }

    proptest! {
        /// However late the generator wakes up, the same requests are due at the same intended times.
        #[test]
        fn lateness_changes_nothing(gaps in prop::collection::vec(1_u64..200, 1..50), poisson: bool) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let end = gaps.iter().sum::<u64>();
            let mut punctual = Schedule::new(TICK, arrivals, 3000.0, Duration::ZERO);
            let mut late = punctual.clone();
            let mut at = 0;
            let wakes: Vec<_> = gaps.iter().map(|gap| { at += gap; Duration::from_millis(at) }).collect();
            prop_assert_eq!(
                drive(&mut punctual, (0..=end).map(Duration::from_millis)),
                drive(&mut late, wakes.into_iter())
            );
        }
    }
}
