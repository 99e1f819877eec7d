//! How many requests come in on a connection and go out to a group of peers. Pure: time is an argument.

use std::time::Instant;

use overload::{Rate, RateLimiter};

use crate::config::{Colour, Ingress, ThrottleGroup};

/// A connection's bounds on requests per second.
#[derive(Debug)]
pub struct Gate {
    settings: Ingress,
    reserved: RateLimiter,
    maximum: RateLimiter,
}

impl Gate {
    /// A gate with full allowances.
    #[must_use]
    pub fn new(settings: Ingress) -> Self {
        let limiter = |rate: u32| RateLimiter::new(Rate::per_second(f64::from(rate)));
        Self {
            settings,
            reserved: limiter(settings.reserved),
            maximum: limiter(settings.maximum),
        }
    }

    /// The bounds.
    #[must_use]
    pub fn settings(&self) -> Ingress {
        self.settings
    }

    /// The colour of the next request; none when it is beyond the maximum.
    #[inline]
    pub fn colour(&mut self, now: Instant) -> Option<Colour> {
        if self.settings.maximum > 0 && !self.maximum.allow(now) {
            return None;
        }
        if self.settings.reserved > 0 && !self.reserved.allow(now) {
            return Some(Colour::Yellow);
        }
        Some(Colour::Green)
    }
}

/// A message processor's part of an egress throttle group.
#[derive(Debug)]
pub struct Throttle {
    rate: f64,
    limiter: RateLimiter,
    /// Share of the rate and least important priority from there on, by falling share.
    levels: Vec<(f64, u8)>,
    /// Requests in this window and the last one.
    window: Option<Instant>,
    count: u32,
    usage: f64,
}

/// How often the use of a group is looked at.
const WINDOW: std::time::Duration = std::time::Duration::from_millis(200);

impl Throttle {
    /// The part `share` (0 to 1) of a group.
    #[must_use]
    pub fn new(group: &ThrottleGroup, share: f64) -> Self {
        let rate = f64::from(group.rate) * share;
        let mut levels: Vec<(f64, u8)> = group
            .levels
            .iter()
            .map(|level| (level.at.fraction(), level.priority))
            .collect();
        levels.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            rate,
            limiter: RateLimiter::new(Rate::per_second(rate)),
            levels,
            window: None,
            count: 0,
            usage: 0.0,
        }
    }

    /// Whether a request of this priority may go to the group.
    pub fn permits(&mut self, now: Instant, priority: u8) -> bool {
        let since = *self.window.get_or_insert(now);
        let elapsed = now.saturating_duration_since(since);
        if elapsed >= WINDOW {
            self.usage = f64::from(self.count) / (elapsed.as_secs_f64() * self.rate).max(f64::MIN_POSITIVE);
            (self.window, self.count) = (Some(now), 0);
        }
        let level = self.levels.iter().find(|(at, _)| self.usage >= *at);
        // What is refused counts too: else the level would end by itself.
        self.count += 1;
        if level.is_some_and(|(_, least)| priority > *least) {
            return false;
        }
        self.limiter.allow(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::Percent;
    use std::time::Duration;

    #[test]
    fn requests_beyond_the_reserved_rate_are_yellow_and_beyond_the_maximum_none() {
        let start = Instant::now();
        let mut gate = Gate::new(Ingress {
            reserved: 100,
            maximum: 300,
        });
        let (mut green, mut yellow, mut none) = (0, 0, 0);
        for n in 0..5_000u64 {
            match gate.colour(start + Duration::from_millis(n)) {
                Some(Colour::Green) => green += 1,
                Some(Colour::Yellow) => yellow += 1,
                None => none += 1,
            }
        }
        // A thousand per second for five seconds; bursts of a tenth of a second are borne.
        assert!((500..=512).contains(&green), "{green}");
        assert!((1_000..=1_025).contains(&yellow), "{yellow}");
        assert_eq!(green + yellow + none, 5_000);
        let mut open = Gate::new(Ingress::default());
        assert!((0..1_000).all(|_| open.colour(start) == Some(Colour::Green)));
    }

    #[test]
    fn a_group_keeps_its_rate_and_the_less_important_go_first() {
        let start = Instant::now();
        let group = ThrottleGroup {
            rate: 1_000,
            levels: vec![crate::config::ThrottleLevel {
                at: Percent::new(50.0),
                priority: 5,
            }],
            ..ThrottleGroup::default()
        };
        let mut throttle = Throttle::new(&group, 0.5);
        let (mut high, mut low) = (0, 0);
        for n in 0..20_000u64 {
            let now = start + Duration::from_micros(n * 500);
            high += u32::from(throttle.permits(now, 2));
            low += u32::from(throttle.permits(now, 10));
        }
        // 500 per second for ten seconds.
        assert!((4_800..=5_200).contains(&(high + low)), "{high} {low}");
        assert!(low < 300, "{low}");
    }
}
