//! A running average over time.

use std::time::{Duration, Instant};

/// An average in which a sample's weight fades with its age: after `time_constant` to 37 %. Samples may come
/// at any intervals; one that follows a long silence counts almost alone.
#[derive(Clone, Debug)]
pub struct RunningAverage {
    time_constant: Duration,
    state: Option<(Instant, f64)>,
}

impl RunningAverage {
    /// Creates an average without samples. With a time constant of 0 the average is the last sample.
    #[must_use]
    pub const fn new(time_constant: Duration) -> Self {
        Self {
            time_constant,
            state: None,
        }
    }

    /// Adds a sample and returns the average. Ignores infinite numbers and NaN.
    pub fn feed(&mut self, sample: f64, now: Instant) -> f64 {
        if !sample.is_finite() {
            return self.value();
        }
        let value = match self.state {
            None => sample,
            Some((then, average)) => {
                let age = now.saturating_duration_since(then).as_secs_f64();
                let constant = self.time_constant.as_secs_f64();
                let kept = if constant > 0.0 {
                    (-age / constant).exp()
                } else {
                    0.0
                };
                sample + (average - sample) * kept
            }
        };
        self.state = Some((now, value));
        value
    }

    /// The average so far, 0 without samples.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.state.map_or(0.0, |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_follows_and_forgets() {
        let start = Instant::now();
        let mut average = RunningAverage::new(Duration::from_secs(1));
        assert_eq!(average.feed(10.0, start), 10.0);
        let after = average.feed(20.0, start + Duration::from_secs(1));
        assert!((after - (20.0 - 10.0 * (-1.0_f64).exp())).abs() < 1e-9);
        assert_eq!(average.feed(f64::NAN, start), after);
        assert!((average.feed(5.0, start + Duration::from_secs(100)) - 5.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn it_stays_among_its_samples(samples in proptest::collection::vec((0.0..100.0, 0_u64..5000), 1..50)) {
            let mut now = Instant::now();
            let mut average = RunningAverage::new(Duration::from_millis(700));
            let (mut least, mut most) = (f64::MAX, f64::MIN);
            for (sample, wait) in samples {
                now += Duration::from_millis(wait);
                least = least.min(sample);
                most = most.max(sample);
                let value = average.feed(sample, now);
                prop_assert!(value >= least - 1e-9 && value <= most + 1e-9);
            }
        }
    }
}
