//! Rate of messages per second.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// A rate and the allowed burst above it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rate {
    /// Messages per second in the long run; 0 lets nothing through.
    #[schemars(range(min = 0))]
    pub per_second: f64,
    /// Messages that may come at once after a pause; absent: a tenth of a second's, at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst: Option<u32>,
}

impl Rate {
    /// A rate of `per_second` messages with the default burst.
    #[must_use]
    pub const fn per_second(per_second: f64) -> Self {
        Self {
            per_second,
            burst: None,
        }
    }

    fn burst(&self) -> f64 {
        match self.burst {
            Some(burst) => f64::from(burst.max(1)),
            None => (self.per_second / 10.0).ceil().max(1.0),
        }
    }
}

impl Validate for Rate {
    fn validate(&self, faults: &mut Faults) {
        if !self.per_second.is_finite() || self.per_second < 0.0 {
            faults.at("perSecond").say(
                format!("{} is an invalid rate", self.per_second),
                "a number of at least 0",
            );
        }
    }
}

/// A token bucket: `burst` tokens at most, refilled at the rate; a message takes one.
///
/// The state is one instant, at which the bucket would be full again (the generic cell rate algorithm of ITU-T I.371),
/// so that no refill is needed.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    /// Time that a message costs; `None`: nothing passes.
    cost: Option<Duration>,
    /// How far ahead of now the bucket may be.
    depth: Duration,
    full: Option<Instant>,
}

/// Rates slower than one message in this time (one year, in seconds) let nothing pass.
const SLOWEST: f64 = 86_400.0 * 365.0;

impl RateLimiter {
    /// Creates a full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let seconds = 1.0 / rate.per_second;
        let passes = rate.per_second > 0.0 && seconds.is_finite() && seconds <= SLOWEST;
        let cost = passes.then(|| Duration::from_secs_f64(seconds));
        let depth = match cost {
            Some(_) => Duration::try_from_secs_f64(seconds * rate.burst()).unwrap_or(Duration::MAX / 4),
            None => Duration::ZERO,
        };
        Self {
            cost,
            depth,
            full: None,
        }
    }

    /// Changes the rate. What has passed still counts.
    pub fn set_rate(&mut self, rate: Rate) {
        let Self { cost, depth, .. } = Self::new(rate);
        self.cost = cost;
        self.depth = depth;
    }

    /// Whether a message may pass now; if so, it counts.
    #[inline]
    pub fn allow(&mut self, now: Instant) -> bool {
        let Some(cost) = self.cost else { return false };
        let full = match self.full {
            Some(full) if full > now => full,
            _ => now,
        };
        // An instant beyond the range of `Instant` counts as never.
        let Some(after) = full.checked_add(cost) else {
            return false;
        };
        // Half a nanosecond of rounding per message must not cost the last one of a burst.
        let most = now.checked_add(self.depth.saturating_add(Duration::from_nanos(100)));
        if most.is_some_and(|most| after > most) {
            return false;
        }
        self.full = Some(after);
        true
    }

    /// How long until the next message may pass; `None`: no message ever may.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let cost = self.cost?;
        let ahead = self
            .full
            .map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        Some((ahead + cost).saturating_sub(self.depth))
    }

    /// Whether the bucket is full, as a new one would be.
    #[must_use]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.full.is_none_or(|full| full <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(Rate {
            per_second: 10.0,
            burst: Some(5),
        });
        let passed = (0..20).filter(|_| limiter.allow(start)).count();
        assert_eq!(passed, 5);
        assert_eq!(limiter.wait(start), Some(Duration::from_millis(100)));
        assert!(!limiter.allow(start + Duration::from_millis(99)));
        assert!(limiter.allow(start + Duration::from_millis(101)));
        assert!(limiter.is_idle(start + Duration::from_secs(2)));
    }

    #[test]
    fn the_rate_changes_and_what_has_passed_counts() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(Rate::per_second(10.0));
        assert!(limiter.allow(start) && !limiter.allow(start));
        limiter.set_rate(Rate::per_second(1_000.0));
        let later = start + Duration::from_millis(50);
        assert_eq!((0..200).filter(|_| limiter.allow(later)).count(), 50);
        limiter.set_rate(Rate::per_second(0.0));
        assert!(!limiter.allow(start + Duration::from_secs(9)));
    }

    #[test]
    fn nothing_passes_at_rate_nothing() {
        for per_second in [0.0, -1.0, f64::NAN, 1e-300] {
            let mut limiter = RateLimiter::new(Rate::per_second(per_second));
            assert!(!limiter.allow(Instant::now()), "{per_second}");
            assert_eq!(limiter.wait(Instant::now()), None);
        }
        assert!(
            RateLimiter::new(Rate::per_second(f64::MAX))
                .wait(Instant::now())
                .is_some()
        );
    }

    proptest! {
        /// Over any time, no more than the burst and the rate's share pass; and offered enough, no less.
        #[test]
        fn it_keeps_the_rate(per_second in 1.0..50_000.0, burst in 1_u32..1000, offered in 1_u64..200, millis in 1_u64..3000) {
            let start = Instant::now();
            let mut limiter = RateLimiter::new(Rate { per_second, burst: Some(burst) });
            let mut passed = 0_u64;
            for milli in 0..millis {
                let now = start + Duration::from_millis(milli);
                passed += (0..offered).filter(|_| limiter.allow(now)).count() as u64;
            }
            let share = per_second * (millis - 1) as f64 / 1e3;
            let most = f64::from(burst) + share;
            prop_assert!(passed as f64 <= most + 1.0 + most * 1e-4, "{passed} of {most}");
            let least = (share.min((offered * millis) as f64)).min(offered.min(u64::from(burst)) as f64 * millis as f64);
            // A bucket that hardly holds what comes in a millisecond overflows with parts of a message.
            if f64::from(burst) >= per_second / 1e3 + 1.0 {
                prop_assert!(passed as f64 + 2.0 + most * 1e-4 >= least.min(most), "{passed} of {least}");
            }
        }
    }
}
