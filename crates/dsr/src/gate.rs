//! How many requests come in on a connection and go out to a group of peers. Pure: time is an argument.

use std::time::{Duration, Instant};

use diameter::proto::overload::priority;
use overload::{Rate, RateLimiter};

use crate::config::{Colour, Ingress, ThrottleGroup};

/// A connection's bounds on requests per second.
#[derive(Debug)]
pub(crate) struct Gate {
    settings: Ingress,
    reserved: RateLimiter,
    maximum: PriorityBucket,
}

impl Gate {
    /// A gate with full allowances.
    #[must_use]
    pub(crate) fn new(settings: Ingress) -> Self {
        let limiter = |rate: u32| RateLimiter::new(Rate::per_second(f64::from(rate)));
        Self {
            settings,
            reserved: limiter(settings.reserved),
            maximum: PriorityBucket::new(settings.maximum),
        }
    }

    /// The bounds.
    #[must_use]
    pub(crate) fn settings(&self) -> Ingress {
        self.settings
    }

    /// The colour of the next request, of this DRMP priority; none when it is beyond the maximum.
    #[inline]
    pub(crate) fn colour(&mut self, now: Instant, priority: u8) -> Option<Colour> {
        if self.settings.maximum > 0 && !self.maximum.allow(now, priority) {
            return None;
        }
        if self.settings.reserved > 0 && !self.reserved.allow(now) {
            return Some(Colour::Yellow);
        }
        Some(Colour::Green)
    }
}

/// A token bucket of which the more important requests may take more: under a steady surplus the less important
/// leave them what they need (RFC 7944 §10).
#[derive(Debug)]
struct PriorityBucket {
    /// Time that a request costs.
    cost: Duration,
    /// How far ahead of now a request of default priority may bring the bucket.
    depth: Duration,
    full: Option<Instant>,
}

impl PriorityBucket {
    /// Requests per second, a tenth of a second's at once.
    fn new(rate: u32) -> Self {
        let cost = Duration::from_secs_f64(1.0 / f64::from(rate.max(1)));
        Self {
            cost,
            depth: cost * rate.div_ceil(10).max(1),
            full: None,
        }
    }

    fn allow(&mut self, now: Instant, priority: u8) -> bool {
        let default = f64::from(priority::DEFAULT);
        let part = match f64::from(priority) {
            // Within a burst as well: where the others may have a tenth of a second's at once, the most important may have
            // a whole second's, since the others have taken their part by then.
            more if more <= default => 1.0 + 9.0 * (default - more) / default,
            less => 1.0 - (less - default) / 10.0,
        };
        let depth = self.depth.mul_f64(part).max(self.cost);
        let after = self.full.filter(|full| *full > now).unwrap_or(now) + self.cost;
        // Rounding must not cost the last request of a burst.
        if after.saturating_duration_since(now) > depth + Duration::from_nanos(100) {
            return false;
        }
        self.full = Some(after);
        true
    }
}

/// A message processor's part of an egress throttle group.
#[derive(Debug)]
pub(crate) struct Throttle {
    group: ThrottleGroup,
    rate: f64,
    limiter: RateLimiter,
    /// Share of the rate and least important priority from there on, by falling share.
    levels: Vec<(f64, u8)>,
    /// Requests in this window and the last one.
    window: Option<Instant>,
    count: u32,
    usage: f64,
    /// Requests since `measured`, refused ones included.
    offered: u64,
    measured: Option<Instant>,
    /// Requests per second, refused ones included.
    demand: f64,
}

/// Interval at which the use of a group is checked.
const WINDOW: Duration = Duration::from_millis(200);

impl Throttle {
    /// The part `share` (0 to 1) of a group.
    #[must_use]
    pub(crate) fn new(group: &ThrottleGroup, share: f64) -> Self {
        let rate = f64::from(group.rate) * share;
        let mut levels: Vec<(f64, u8)> = group
            .levels
            .iter()
            .map(|level| (level.at.fraction(), level.priority))
            .collect();
        levels.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            group: group.clone(),
            rate,
            limiter: RateLimiter::new(Rate::per_second(rate)),
            levels,
            window: None,
            count: 0,
            usage: 0.0,
            offered: 0,
            measured: None,
            demand: 0.0,
        }
    }

    /// From now on this part of the group is right; what has passed still counts.
    pub(crate) fn set_share(&mut self, share: f64) {
        let rate = f64::from(self.group.rate) * share;
        if rate != self.rate {
            self.rate = rate;
            self.limiter.set_rate(Rate::per_second(rate));
        }
    }

    /// Name of the group.
    pub(crate) fn name(&self) -> &str {
        &self.group.name
    }

    /// What the requests of this part would need, in requests per second: the average of the time since the last call
    /// and of what was before.
    pub(crate) fn demand(&mut self, now: Instant) -> f64 {
        let since = self.measured.replace(now);
        let offered = std::mem::take(&mut self.offered);
        let elapsed = since.map(|since| now.saturating_duration_since(since).as_secs_f64());
        if let Some(elapsed) = elapsed.filter(|elapsed| *elapsed > 0.0) {
            self.demand = (self.demand + offered as f64 / elapsed) / 2.0;
        }
        self.demand
    }

    /// Takes over from `before` what has passed, when both are parts of the same group.
    #[must_use]
    pub(crate) fn after(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if before.group == self.group => before,
            _ => self,
        }
    }

    /// Whether a request of this priority may go to the group.
    pub(crate) fn permits(&mut self, now: Instant, priority: u8) -> bool {
        let since = *self.window.get_or_insert(now);
        let elapsed = now.saturating_duration_since(since);
        if elapsed >= WINDOW {
            self.usage = f64::from(self.count) / (elapsed.as_secs_f64() * self.rate).max(f64::MIN_POSITIVE);
            (self.window, self.count) = (Some(now), 0);
        }
        let level = self.levels.iter().find(|(at, _)| self.usage >= *at);
        // What is refused counts too: else the level would end by itself.
        self.count += 1;
        self.offered += 1;
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
            match gate.colour(start + Duration::from_millis(n), priority::DEFAULT) {
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
        assert!((0..1_000).all(|_| open.colour(start, 15) == Some(Colour::Green)));
    }

    #[test]
    fn the_important_are_not_beyond_the_maximum_of_the_others() {
        for rate in [10, 200] {
            let start = Instant::now();
            let mut gate = Gate::new(Ingress {
                reserved: 0,
                maximum: rate,
            });
            let mut passed = [0u32; 2];
            // Ten times the rate for ten seconds, one in twenty of it important.
            for n in 0..rate * 100 {
                let at = start + Duration::from_secs_f64(f64::from(n) / f64::from(rate * 10));
                let important = n % 20 == 0;
                let priority = if important { 0 } else { 15 };
                passed[usize::from(important)] += u32::from(gate.colour(at, priority).is_some());
            }
            assert_eq!(passed[1], rate * 5, "of the important all");
            let all = passed[0] + passed[1];
            assert!(
                (rate * 10..=rate * 10 + rate / 5 + 2).contains(&all),
                "{passed:?}"
            );
        }
    }

    #[test]
    fn a_burst_of_others_leaves_room_for_the_important() {
        let start = Instant::now();
        let mut gate = Gate::new(Ingress {
            reserved: 0,
            maximum: 50,
        });
        let mut passed = |count: u32, priority: u8| {
            let each = (0..count).filter(|_| gate.colour(start, priority).is_some());
            each.count()
        };
        let others = passed(180, 15);
        assert_eq!(passed(20, 0), 20, "of the important all");
        let others = others + passed(100, 15);
        assert!(others <= 5, "{others}");
        // Not more than the maximum of a second, whatever the priority.
        assert!(passed(200, 0) <= 50 - 20);
    }

    #[test]
    fn a_group_that_stays_the_same_keeps_what_has_passed() {
        let start = Instant::now();
        let group = ThrottleGroup {
            rate: 10,
            ..ThrottleGroup::default()
        };
        let mut throttle = Throttle::new(&group, 1.0);
        assert!(throttle.permits(start, 10) && !throttle.permits(start, 10));
        let mut throttle = Throttle::new(&group, 1.0).after(Some(throttle));
        assert!(!throttle.permits(start, 10), "a reload fills no bucket");
        let mut smaller = Throttle::new(&group, 0.5).after(Some(throttle));
        assert!(!smaller.permits(start, 10), "nor does one that changes the part");
        let other = ThrottleGroup { rate: 20, ..group };
        let mut other = Throttle::new(&other, 1.0).after(Some(smaller));
        assert!(other.permits(start, 10));
    }

    #[test]
    fn demand_counts_what_is_refused() {
        let start = Instant::now();
        let group = ThrottleGroup {
            rate: 10,
            ..ThrottleGroup::default()
        };
        let mut throttle = Throttle::new(&group, 1.0);
        throttle.demand(start);
        for second in 1..=20u64 {
            let now = start + Duration::from_secs(second);
            for _ in 0..300 {
                throttle.permits(now, 10);
            }
            throttle.demand(now);
        }
        let now = start + Duration::from_secs(21);
        assert!((throttle.demand(now) - 150.0).abs() < 1.0, "half of it is of now");
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
