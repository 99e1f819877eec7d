//! Which requests a worker does not work on: above the rate, or under load by priority.
//!
//! The load is the CPU time of the worker's own thread: what it spends says when it is full, whatever else
//! the machine does.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use overload::cpu::{self, CpuLoad};
use overload::{CongestionLevels, PriorityDiscard, Rate, RateLimiter, RunningAverage};
use sbi::Request;
use sbi::headers::{MessagePriority, SbiHeader};

use crate::config::Overload;

/// How often the load is sampled.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Priority of a message that does not say (TS 29.500 §6.8.4 leaves it to the function).
const USUAL_PRIORITY: u8 = 24;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Work,
    TooMany,
    Discard,
}

/// Decides for one worker.
pub(crate) struct Shedder {
    cpu: RefCell<CpuLoad>,
    average: RefCell<RunningAverage>,
    levels: RefCell<CongestionLevels>,
    shares: Vec<f64>,
    share: Cell<f64>,
    by_priority: RefCell<PriorityDiscard>,
    rate: Option<RefCell<RateLimiter>>,
    load: Cell<f64>,
}

impl Shedder {
    /// `workers` share the rate.
    pub(crate) fn new(settings: &Overload, workers: usize) -> Self {
        let mut levels = settings.levels.clone();
        levels.sort_by(|a, b| a.level.set.percent().total_cmp(&b.level.set.percent()));
        let rate = (settings.ingress_rate > 0)
            .then(|| Rate::per_second(f64::from(settings.ingress_rate) / workers.max(1) as f64));
        Self {
            cpu: RefCell::new(CpuLoad::new()),
            average: RefCell::new(RunningAverage::new(Duration::from_millis(500))),
            shares: levels.iter().map(|one| one.discard.percent() / 100.0).collect(),
            levels: RefCell::new(CongestionLevels::new(
                levels.into_iter().map(|one| one.level).collect(),
            )),
            share: Cell::new(0.0),
            by_priority: RefCell::new(PriorityDiscard::new(Some(settings.spare_priority))),
            rate: rate.map(|rate| RefCell::new(RateLimiter::new(rate))),
            load: Cell::new(0.0),
        }
    }

    /// Looks at the clock of the thread; gives the averaged load in percent of a core.
    pub(crate) fn sample(&self, enabled: bool) -> f64 {
        let now = Instant::now();
        if let Some(load) = cpu::read::thread().and_then(|used| self.cpu.borrow_mut().feed(used, now)) {
            self.feed(load, now, enabled);
        }
        self.load.get()
    }

    fn feed(&self, load: f64, now: Instant, enabled: bool) {
        let load = self.average.borrow_mut().feed(load, now);
        self.load.set(load);
        let mut levels = self.levels.borrow_mut();
        if let Some(change) = levels.update(load, now) {
            tracing::info!(
                from = levels.name(change.from),
                to = levels.name(change.to),
                load,
                "congestion level"
            );
        }
        let share = levels
            .current()
            .checked_sub(1)
            .and_then(|level| self.shares.get(level));
        self.share.set(if enabled {
            share.copied().unwrap_or(0.0)
        } else {
            0.0
        });
    }

    /// What becomes of this request.
    pub(crate) fn judge(&self, request: &Request) -> Verdict {
        if let Some(rate) = &self.rate
            && !rate.borrow_mut().allow(request.received)
        {
            return Verdict::TooMany;
        }
        let share = self.share.get();
        if share == 0.0 {
            return Verdict::Work;
        }
        let priority = MessagePriority::of(request.headers())
            .ok()
            .flatten()
            .map_or(USUAL_PRIORITY, MessagePriority::get);
        match self.by_priority.borrow_mut().next(priority, share) {
            true => Verdict::Discard,
            false => Verdict::Work,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_load_when_enabled() {
        let shedder = Shedder::new(&Overload::default(), 1);
        let start = Instant::now();
        let settle = |from: u64, load: f64, enabled: bool| {
            for step in 0..100 {
                shedder.feed(load, start + Duration::from_millis(from + 100 * step), enabled);
            }
            shedder.share.get()
        };
        assert_eq!(settle(0, 50.0, true), 0.0);
        assert_eq!(settle(20_000, 90.0, true), 0.1);
        assert_eq!(settle(40_000, 99.0, true), 0.6);
        assert_eq!(settle(60_000, 99.0, false), 0.0);
        assert_eq!(settle(80_000, 10.0, true), 0.0);
    }
}
