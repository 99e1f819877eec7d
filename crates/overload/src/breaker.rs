//! Limit of requests in flight, and a circuit breaker.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Requests in flight at most.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyLimit {
    most: u32,
    now: u32,
}

impl ConcurrencyLimit {
    /// Creates a limit with no request in flight.
    #[must_use]
    pub const fn new(most: u32) -> Self {
        Self { most, now: 0 }
    }

    /// Whether another request may begin; if so, it counts, and [`ConcurrencyLimit::leave`] must follow.
    pub fn enter(&mut self) -> bool {
        let free = self.now < self.most;
        self.now += u32::from(free);
        free
    }

    /// A request that was admitted has ended.
    pub fn leave(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    /// Requests in flight.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.now
    }

    /// Changes the limit; those in flight stay.
    pub fn set_limit(&mut self, most: u32) {
        self.most = most;
    }
}

/// When a circuit breaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct BreakerSettings {
    /// Failures in a row after which nothing is sent.
    #[schemars(range(min = 1))]
    pub failures: u32,
    /// How long nothing is sent before a try; doubled each time the try fails.
    pub open: Period,
    /// The longest time nothing is sent.
    pub max_open: Period,
    /// Tries that must succeed before the circuit closes.
    #[schemars(range(min = 1))]
    pub successes: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 10,
            open: Period::from_secs(1),
            max_open: Period::from_secs(30),
            successes: 2,
        }
    }
}

impl Validate for BreakerSettings {
    fn validate(&self, faults: &mut Faults) {
        if self.max_open < self.open {
            faults.at("maxOpen").say(
                format!("{} is shorter than `open`", self.max_open),
                format!("at least {}", self.open),
            );
        }
    }
}

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Lets everything through.
    Closed,
    /// Lets nothing through.
    Open,
    /// Lets one request at a time through as a probe.
    HalfOpen,
}

/// A circuit breaker towards one peer.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    settings: BreakerSettings,
    phase: Phase,
    /// How often it has opened without closing in between.
    times: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed { failures: u32 },
    Open { until: Instant },
    HalfOpen { trying: bool, successes: u32 },
}

impl CircuitBreaker {
    /// Creates a closed circuit breaker.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            phase: Phase::Closed { failures: 0 },
            times: 0,
        }
    }

    /// Whether a request may be sent now; if so, [`CircuitBreaker::report`] must follow.
    pub fn allow(&mut self, now: Instant) -> bool {
        if let Phase::Open { until } = self.phase
            && now >= until
        {
            self.phase = Phase::HalfOpen {
                trying: false,
                successes: 0,
            };
        }
        match &mut self.phase {
            Phase::Closed { .. } => true,
            Phase::Open { .. } => false,
            Phase::HalfOpen { trying, .. } => !std::mem::replace(trying, true),
        }
    }

    /// Reports how a request that was let through has ended. Returns whether the state has changed.
    pub fn report(&mut self, success: bool, now: Instant) -> bool {
        match (&mut self.phase, success) {
            (Phase::Closed { failures }, true) => {
                *failures = 0;
                false
            }
            (Phase::Closed { failures }, false) => {
                *failures += 1;
                let broken = *failures >= self.settings.failures.max(1);
                if broken {
                    self.open(now);
                }
                broken
            }
            // The outcome of a request sent before the circuit opened changes nothing.
            (Phase::Open { .. }, _) => false,
            (Phase::HalfOpen { trying, successes }, true) => {
                *trying = false;
                *successes += 1;
                let mended = *successes >= self.settings.successes.max(1);
                if mended {
                    self.phase = Phase::Closed { failures: 0 };
                    self.times = 0;
                }
                mended
            }
            (Phase::HalfOpen { .. }, false) => {
                self.open(now);
                true
            }
        }
    }

    /// Reports that a request that was let through has ended without an outcome: if it was a try, another may follow.
    pub fn release(&mut self) {
        if let Phase::HalfOpen { trying, .. } = &mut self.phase {
            *trying = false;
        }
    }

    /// State at `now`.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn open(&mut self, now: Instant) {
        let open: Duration = self.settings.open.duration();
        let long = open
            .saturating_mul(1 << self.times.min(16))
            .min(self.settings.max_open.duration());
        self.times = self.times.saturating_add(1);
        self.phase = Phase::Open {
            until: now.checked_add(long).unwrap_or(now),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_opens_tries_and_closes() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut breaker = CircuitBreaker::new(BreakerSettings {
            failures: 3,
            ..BreakerSettings::default()
        });
        for failure in 0..3 {
            assert!(breaker.allow(start));
            assert_eq!(breaker.report(false, start), failure == 2);
        }
        assert!(!breaker.allow(at(999)));
        assert!(breaker.allow(at(1000)), "a try");
        assert!(!breaker.allow(at(1000)), "one at a time");
        assert!(breaker.report(false, at(1001)), "failed");
        assert!(!breaker.allow(at(2999)), "twice as long");
        assert_eq!(breaker.state(at(3001)), BreakerState::HalfOpen);
        assert!(breaker.allow(at(3001)));
        assert!(!breaker.report(true, at(3002)));
        assert!(breaker.allow(at(3003)));
        assert!(breaker.report(true, at(3004)));
        assert_eq!(breaker.state(at(3004)), BreakerState::Closed);
    }

    #[test]
    fn a_limit_is_kept() {
        let mut limit = ConcurrencyLimit::new(2);
        assert!(limit.enter() && limit.enter() && !limit.enter());
        limit.leave();
        assert!(limit.enter());
        limit.set_limit(1);
        limit.leave();
        assert!(!limit.enter());
        assert_eq!(limit.in_flight(), 1);
    }

    proptest! {
        /// It never stays shut: after the longest time a try is let through.
        #[test]
        fn there_is_always_another_try(steps in proptest::collection::vec((any::<bool>(), 0_u64..3000), 0..200)) {
            let mut now = Instant::now();
            let mut breaker = CircuitBreaker::new(BreakerSettings::default());
            for (success, wait) in steps {
                now += Duration::from_millis(wait);
                if breaker.allow(now) {
                    breaker.report(success, now);
                }
            }
            now += BreakerSettings::default().max_open.duration();
            prop_assert!(breaker.allow(now));
        }
    }
}
