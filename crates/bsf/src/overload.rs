//! Which requests a worker does not work on: above the rate, or under load by priority.
//!
//! The load is the CPU time of the worker's own thread: what it spends says when it is full, whatever else
//! the machine does.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::header::USER_AGENT;
use overload::cpu::{self, CpuLoad};
use overload::{CongestionLevels, KeyedRateLimiter, PriorityDiscard, Rate, RateLimiter, RunningAverage};
use sbi::Request;
use sbi::headers::{MessagePriority, SbiHeader};

use crate::config::Overload;

/// How often the load is sampled.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Priority of a message that does not say (TS 29.500 §6.8.4 leaves it to the function).
const USUAL_PRIORITY: u8 = 24;
/// Priority of a Diameter request that does not say (RFC 7944 §9.1).
const USUAL_DRMP: u8 = 10;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Work,
    /// More than all consumers together may send.
    TooMany,
    /// More than this consumer may send.
    TooManyOfOne,
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
    consumers: Option<RefCell<Consumers>>,
    load: Cell<f64>,
}

/// The rates of consumers, each by its `User-Agent`.
struct Consumers {
    /// Those that have a rate of their own, by NF type or whole `User-Agent`.
    own: AHashMap<Box<[u8]>, Option<RateLimiter>>,
    others: Option<KeyedRateLimiter<Vec<u8>>>,
}

impl Consumers {
    fn new(settings: &Overload, workers: f64) -> Option<Self> {
        let rate = |rate: u32| Rate::per_second(f64::from(rate) / workers);
        let own: AHashMap<Box<[u8]>, Option<RateLimiter>> = settings
            .consumers
            .iter()
            .map(|one| {
                let limiter = (one.rate > 0).then(|| RateLimiter::new(rate(one.rate)));
                (one.consumer.as_bytes().into(), limiter)
            })
            .collect();
        let others = (settings.consumer_rate > 0)
            .then(|| KeyedRateLimiter::new(rate(settings.consumer_rate), settings.max_consumers));
        (!own.is_empty() || others.is_some()).then_some(Self { own, others })
    }

    fn allow(&mut self, name: &[u8], now: Instant) -> bool {
        // TS 29.500 §5.2.2.2: the NF type, and after a hyphen or a space what makes it one of several.
        let nf_type = name.split(|byte| matches!(byte, b'-' | b' ' | b'/')).next();
        for key in [Some(name), nf_type].into_iter().flatten() {
            if let Some(limiter) = self.own.get_mut(key) {
                return limiter.as_mut().is_none_or(|limiter| limiter.allow(now));
            }
        }
        self.others.as_mut().is_none_or(|others| others.allow(name, now))
    }
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
            consumers: Consumers::new(settings, workers.max(1) as f64).map(RefCell::new),
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
        if let Some(consumers) = &self.consumers {
            let name = request
                .headers()
                .get(USER_AGENT)
                .map_or(&b""[..], |name| name.as_bytes());
            if !consumers.borrow_mut().allow(name, request.received) {
                return Verdict::TooManyOfOne;
            }
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

    /// Whether a Diameter request that begins something is discarded, by its DRMP (RFC 7944).
    pub(crate) fn discards(&self, drmp: Option<u8>) -> bool {
        let share = self.share.get();
        // 16 priorities there, 32 here.
        let priority = drmp.unwrap_or(USUAL_DRMP).min(15) * 2;
        share != 0.0 && self.by_priority.borrow_mut().next(priority, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConsumerRate;

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

    #[test]
    fn consumers_have_rates_of_their_own() {
        let settings = Overload {
            consumer_rate: 10,
            max_consumers: 2,
            consumers: vec![
                ConsumerRate {
                    consumer: "PCF".to_owned(),
                    rate: 0,
                },
                ConsumerRate {
                    consumer: "NEF-1".to_owned(),
                    rate: 100,
                },
            ],
            ..Overload::default()
        };
        let mut consumers = Consumers::new(&settings, 1.0).unwrap();
        let now = Instant::now();
        let mut passed = |name: &str| (0..50).filter(|_| consumers.allow(name.as_bytes(), now)).count();
        assert_eq!(passed("PCF-6f1c7a52 pcf1.example.org"), 50);
        assert_eq!(passed("NEF-1"), 10);
        assert_eq!(passed("NEF-2"), 1);
        assert_eq!(passed("AF"), 1);
        // Names beyond those that are told apart share one rate.
        assert_eq!((passed("invented-1"), passed("invented-2")), (1, 0));
        assert!(Consumers::new(&Overload::default(), 1.0).is_none());
    }

    #[test]
    fn diameter_requests_go_by_their_priority() {
        let shedder = Shedder::new(&Overload::default(), 1);
        assert!(!shedder.discards(None));
        shedder.share.set(1.0);
        assert!(shedder.discards(None) && shedder.discards(Some(15)));
        assert!(!shedder.discards(Some(0)), "emergencies pass");
    }
}
