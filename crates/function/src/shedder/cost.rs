//! What a request costs, measured while there is no overload.

use std::time::{Duration, Instant};

use overload::RunningAverage;

/// Load in percent of a core for one request in a sample interval.
pub(super) struct Cost {
    of_one: f64,
    offered: RunningAverage,
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            of_one: Self::UNKNOWN,
            offered: RunningAverage::new(Duration::from_millis(500)),
        }
    }
}

impl Cost {
    /// The assumed cost until one is measured: a millisecond, more than any request takes. A cost that is too high
    /// means more refusals.
    const UNKNOWN: f64 = 1.0;
    /// Requests in an interval of which a cost can be measured.
    const ENOUGH: f64 = 20.0;

    /// Records an interval in which this many requests were offered; `calm`: all were admitted, none was queued.
    pub(super) fn feed(&mut self, load: f64, offered: f64, calm: bool, now: Instant) {
        self.offered.feed(offered, now);
        if !calm || offered < Self::ENOUGH {
            return;
        }
        // The measured load includes other work of the worker, so the lowest measurement is nearest to the cost of a
        // request. The minimum fades, because requests may become more expensive.
        let measured = load / offered;
        let part = if measured < self.of_one { 0.5 } else { 0.02 };
        self.of_one += part * (measured - self.of_one);
    }

    /// The share (0 … 1) of the requests that causes this load.
    pub(super) fn share(&self, load: f64) -> f64 {
        let all = self.of_one * self.offered.value();
        match load > 0.0 && all.is_finite() {
            true => (load / all.max(load)).min(1.0),
            false => 0.0,
        }
    }
}
