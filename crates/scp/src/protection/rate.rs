//! Rates that all workers share, and all SCPs.
//!
//! Each worker enforces its share of a rate alone, so that no two workers write the same memory. A few times a second
//! the control thread reads the demand of each worker and divides the rate again: a worker with a low demand gets its
//! demand and an equal part of the remainder; if the total demand exceeds the rate, each gets a share in proportion to
//! its demand. A global rate is first divided among the SCPs: by the demand of each if they report to each other
//! (`federation`), else by the number of registered SCPs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use overload::{Rate, RateLimiter};
use parking_lot::Mutex;

use super::Others;
use crate::config::{ProducerRate, Protection};

/// Interval at which shares are recalculated.
pub(crate) const CUT: Duration = Duration::from_millis(200);

/// Limits at most, over all consumers or producers; further ones share one limit per setting.
const MOST: usize = 65_536;

/// A configured rate.
#[derive(Debug)]
struct Limit {
    rate: Rate,
    /// Its name in reports between SCPs, if it is a global rate.
    global: Option<Box<str>>,
    cells: Box<[Cell]>,
    /// Averaged demand of each worker per second; only the control thread uses it.
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    counts: Vec<u64>,
    rates: Vec<f64>,
}

/// State shared by a worker and the control thread; on its own cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Cell {
    /// Messages offered to the worker; written by the worker.
    asked: AtomicU64,
    /// Bits of the worker's share in messages per second; written by the control thread.
    share: AtomicU64,
}

/// A worker's share of a limit.
#[derive(Debug)]
pub(crate) struct Share {
    limit: Arc<Limit>,
    worker: usize,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    share: u64,
    asked: u64,
    limiter: RateLimiter,
}

impl Limit {
    fn new(rate: Rate, global: Option<Box<str>>, workers: usize, scps: usize) -> Self {
        let workers = workers.max(1);
        let scps = if global.is_some() { scps.max(1) } else { 1 };
        let share = rate.per_second / scps as f64 / workers as f64;
        let cell = || Cell {
            asked: AtomicU64::new(0),
            share: AtomicU64::new(share.to_bits()),
        };
        Self {
            rate,
            global,
            cells: (0..workers).map(|_| cell()).collect(),
            asked: Mutex::default(),
        }
    }

    /// The rate of a share; it has its part of the burst.
    fn part(&self, share: f64) -> Rate {
        let part = match self.rate.per_second > 0.0 {
            true => share / self.rate.per_second,
            false => 0.0,
        };
        Rate {
            per_second: share,
            burst: self
                .rate
                .burst
                .map(|burst| (f64::from(burst) * part).round().max(1.0) as u32),
        }
    }

    fn cut(&self, scps: usize, others: Option<&Others>, passed: Duration) {
        let mut asked = self.asked.lock();
        let Asked { counts, rates } = &mut *asked;
        counts.resize(self.cells.len(), 0);
        rates.resize(self.cells.len(), 0.0);
        let seconds = passed.as_secs_f64().max(1e-3);
        for ((cell, count), rate) in self.cells.iter().zip(counts.iter_mut()).zip(rates.iter_mut()) {
            let now = cell.asked.load(Ordering::Relaxed);
            let latest = now.wrapping_sub(*count) as f64 / seconds;
            *count = now;
            // Average with half of the old value: bursts are smoothed, a trend is followed within a second.
            *rate = (*rate + latest) / 2.0;
        }
        let whole = match (&self.global, others) {
            (None, _) => self.rate.per_second,
            (Some(name), Some(others)) => others.part(self.rate.per_second, name, rates.iter().sum()),
            (Some(_), None) => self.rate.per_second / scps.max(1) as f64,
        };
        let shares = apportion(whole, rates);
        for (cell, share) in self.cells.iter().zip(shares) {
            cell.share.store(share.to_bits(), Ordering::Relaxed);
        }
    }
}

/// Divides `whole` into shares by demand. Their sum is `whole`.
pub(super) fn apportion(whole: f64, asked: &[f64]) -> Vec<f64> {
    let count = asked.len().max(1) as f64;
    let sum: f64 = asked.iter().sum();
    if sum <= whole {
        let spare = (whole - sum) / count;
        return asked.iter().map(|one| one + spare).collect();
    }
    // A hundredth is reserved for shares without demand, so that they can begin.
    let least = whole / 100.0 / count;
    let rest = whole - least * count;
    asked.iter().map(|one| least + rest * one / sum).collect()
}

/// A shorter wait counts as none: limiters round by fractions of a nanosecond.
const ROUNDING: Duration = Duration::from_nanos(100);

impl Share {
    fn new(limit: Arc<Limit>, worker: usize) -> Self {
        let worker = worker.min(limit.cells.len() - 1);
        let share = limit.cells[worker].share.load(Ordering::Relaxed);
        let limiter = RateLimiter::new(limit.part(f64::from_bits(share)));
        let state = RefCell::new(State {
            share,
            asked: limit.cells[worker].asked.load(Ordering::Relaxed),
            limiter,
        });
        Self { limit, worker, state }
    }

    /// Whether a message may pass now; if so, it counts.
    pub(crate) fn allow(&self, now: Instant) -> bool {
        self.ask();
        self.state.borrow_mut().limiter.allow(now)
    }

    /// Whether a message may pass all of these now; if so, it counts for all of them, otherwise for none.
    pub(crate) fn allow_all(shares: &[Rc<Self>], now: Instant) -> bool {
        if let [share] = shares {
            return share.allow(now);
        }
        shares.iter().for_each(|share| share.ask());
        let has_room = |share: &Rc<Self>| share.wait(now).is_some_and(|wait| wait <= ROUNDING);
        let take = |share: &Rc<Self>| share.state.borrow_mut().limiter.allow(now);
        shares.iter().all(has_room) && shares.iter().all(take)
    }

    /// Counts an offered message, and applies the present share of this worker.
    fn ask(&self) {
        let cell = &self.limit.cells[self.worker];
        let mut state = self.state.borrow_mut();
        state.asked = state.asked.wrapping_add(1);
        cell.asked.store(state.asked, Ordering::Relaxed);
        let share = cell.share.load(Ordering::Relaxed);
        if share != state.share {
            state.share = share;
            state.limiter.set_rate(self.limit.part(f64::from_bits(share)));
        }
    }

    /// How long until a message may pass; `None`: no message ever may.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.state.borrow().limiter.wait(now)
    }
}

/// The shares of one worker, one per limit.
#[derive(Debug)]
pub(crate) struct Shares {
    worker: usize,
    /// By the address of the limit, which lives as long as its share does.
    known: RefCell<AHashMap<usize, Rc<Share>>>,
}

impl Shares {
    pub(crate) fn new(worker: usize) -> Self {
        Self {
            worker,
            known: RefCell::default(),
        }
    }

    /// Drops the shares of limits that are no longer in force.
    pub(crate) fn clear(&self) {
        self.known.borrow_mut().clear();
    }

    fn of(&self, limit: Arc<Limit>) -> Rc<Share> {
        let mut known = self.known.borrow_mut();
        let share = known.entry(Arc::as_ptr(&limit).addr());
        share
            .or_insert_with(|| Rc::new(Share::new(limit, self.worker)))
            .clone()
    }
}

/// Limits by consumer and producer; any worker creates them at their first use.
#[derive(Debug)]
pub(crate) struct Rates {
    workers: usize,
    scps: AtomicU64,
    ingress: Arc<Limits>,
    egress: Arc<Limits>,
}

type Limits = Mutex<AHashMap<Box<str>, Arc<Limit>>>;

impl Rates {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers,
            scps: AtomicU64::new(1),
            ingress: Arc::default(),
            egress: Arc::default(),
        }
    }

    /// Builds the rates of other settings. Limits of consumers or producers stay if their settings are the same.
    pub(crate) fn reconfigured(self: &Arc<Self>, before: &Protection, now: &Protection) -> Arc<Self> {
        let (ingress, egress) = (before.ingress == now.ingress, before.egress == now.egress);
        if ingress && egress {
            return self.clone();
        }
        let kept = |kept: bool, limits: &Arc<Limits>| if kept { limits.clone() } else { Arc::default() };
        Arc::new(Self {
            workers: self.workers,
            scps: AtomicU64::new(self.scps.load(Ordering::Relaxed)),
            ingress: kept(ingress, &self.ingress),
            egress: kept(egress, &self.egress),
        })
    }

    /// Demand of each global rate, in messages per second.
    pub(crate) fn usage(&self) -> Vec<(Box<str>, f64)> {
        let limits = self.egress.lock();
        let global = limits.values().filter_map(|limit| {
            let name = limit.global.clone()?;
            Some((name, limit.asked.lock().rates.iter().sum::<f64>()))
        });
        global.filter(|(_, rate)| *rate >= 0.01).collect()
    }

    /// Recalculates all shares, `passed` after the last time. Global rates are divided by the reports of `others`, else
    /// by the number of SCPs.
    pub(crate) fn cut(&self, scps: usize, others: Option<&Others>, passed: Duration) {
        self.scps.store(scps as u64, Ordering::Relaxed);
        for limits in [&self.ingress, &self.egress] {
            let limits: Vec<Arc<Limit>> = limits.lock().values().cloned().collect();
            for limit in limits {
                limit.cut(scps, others, passed);
            }
        }
    }

    fn limit(
        &self,
        limits: &Limits,
        key: &str,
        other: &str,
        rate: Rate,
        global: Option<Box<str>>,
    ) -> Arc<Limit> {
        let mut limits = limits.lock();
        if let Some(known) = limits.get(key) {
            return known.clone();
        }
        let key = if limits.len() >= MOST { other } else { key };
        let scps = usize::try_from(self.scps.load(Ordering::Relaxed)).unwrap_or(1);
        let made = || Arc::new(Limit::new(rate, global, self.workers, scps));
        limits.entry(key.into()).or_insert_with(made).clone()
    }

    /// A worker's share of a consumer's rate, if it has one.
    pub(crate) fn of_consumer(
        &self,
        settings: &Protection,
        consumer: &str,
        shares: &Shares,
    ) -> Option<Rc<Share>> {
        let named = |name: &str| settings.ingress.iter().find(|one| one.consumer == name);
        let rate = named(consumer).or_else(|| named("*"))?.rate;
        let limit = self.limit(&self.ingress, consumer, "*", rate, None);
        Some(shares.of(limit))
    }

    /// A worker's shares of the rates that a request for `service` to a producer must keep.
    pub(crate) fn of_producer(
        &self,
        settings: &Protection,
        authority: &str,
        instance: Option<&str>,
        service: &str,
        shares: &Shares,
    ) -> Rc<[Rc<Share>]> {
        let concerned =
            |one: &ProducerRate| one.services.is_empty() || one.services.iter().any(|name| name == service);
        let is_named = |one: &ProducerRate| {
            let producer = one.producer.as_deref();
            producer.is_some_and(|name| name == authority || Some(name) == instance)
        };
        // `*` does not apply to a producer with its own rate.
        let has_own = |services: bool| {
            let mut all = settings.egress.iter();
            all.any(|one| is_named(one) && concerned(one) && one.services.is_empty() != services)
        };
        let mut kept = Vec::new();
        for (number, one) in settings
            .egress
            .iter()
            .enumerate()
            .filter(|(_, one)| concerned(one))
        {
            let whom = match one.producer.as_deref() {
                None => "",
                Some("*") if !has_own(!one.services.is_empty()) => authority,
                Some(name) if is_named(one) => name,
                Some(_) => continue,
            };
            let key = format!("{number} {whom}");
            let other = format!("{number} *");
            // By its contents, not by its position: other SCPs may have further rates.
            let name = || {
                format!(
                    "{} {} {whom}",
                    one.producer.as_deref().unwrap_or(""),
                    one.services.join(",")
                )
            };
            let global = one.global.then(|| name().into_boxed_str());
            let limit = self.limit(&self.egress, &key, &other, one.rate, global);
            kept.push(shares.of(limit));
        }
        kept.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(per_second: f64, burst: u32) -> Rate {
        Rate {
            per_second,
            burst: Some(burst),
        }
    }

    fn share(rates: &Rates, rate: Rate, worker: usize) -> Share {
        Share::new(rates.limit(&rates.egress, "x", "*", rate, None), worker)
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rates = Rates::new(1);
        let one = share(&rates, rate(100.0, 5), 0);
        let start = Instant::now();
        assert_eq!((0..20).filter(|_| one.allow(start)).count(), 5);
        assert!(one.wait(start).unwrap() > Duration::from_millis(9));
        let later = (1..=1_000)
            .filter(|ms| one.allow(start + Duration::from_millis(*ms)))
            .count();
        assert!((99..=101).contains(&later), "{later}");
        let none = Share::new(rates.limit(&rates.egress, "y", "*", rate(0.0, 1), None), 0);
        assert!(!none.allow(start));
    }

    /// All workers together enforce and use the rate, whatever their demands.
    #[test]
    fn workers_together_keep_it() {
        for asked in [[100_u64, 0, 0, 0], [25, 25, 25, 25], [60, 30, 9, 1]] {
            let rates = Rates::new(4);
            let shares: Vec<Share> = (0..4)
                .map(|worker| share(&rates, rate(1_000.0, 100), worker))
                .collect();
            let mut now = Instant::now();
            let mut passed = 0;
            // Thirty times a hundred milliseconds, in each a hundred are asked for per ten.
            for step in 0..300 {
                now += Duration::from_millis(10);
                for (share, count) in shares.iter().zip(asked) {
                    let through = (0..count).filter(|_| share.allow(now)).count();
                    passed += if step >= 100 { through } else { 0 };
                }
                if step % 20 == 19 {
                    rates.cut(1, None, CUT);
                }
            }
            // Two seconds at a thousand each.
            assert!((1_900..=2_130).contains(&passed), "{asked:?}: {passed}");
        }
    }

    #[test]
    fn scps_together_keep_global_ones() {
        let rates = Rates::new(1);
        let one = Share::new(
            rates.limit(&rates.egress, "x", "*", rate(1_000.0, 1), Some("x".into())),
            0,
        );
        rates.cut(4, None, CUT);
        let start = Instant::now();
        let passed = (0..1_000)
            .filter(|ms| one.allow(start + Duration::from_millis(*ms)))
            .count();
        assert!((248..=252).contains(&passed), "{passed}");
    }

    #[test]
    fn which_rates_a_request_must_keep() {
        let of = |producer: Option<&str>, services: &[&str]| ProducerRate {
            producer: producer.map(str::to_owned),
            services: services.iter().map(ToString::to_string).collect(),
            rate: Rate::per_second(1.0),
            global: false,
        };
        let settings = Protection {
            egress: vec![
                of(Some("*"), &[]),
                of(Some("udm:80"), &[]),
                of(Some("*"), &["nudm-sdm"]),
                of(None, &["nudm-sdm", "nudm-ee"]),
                of(Some("id-1"), &["nudm-ee"]),
            ],
            ..Protection::default()
        };
        let rates = Rates::new(2);
        let keys = |authority: &str, instance: Option<&str>, service: &str| {
            let before: Vec<_> = rates.egress.lock().keys().cloned().collect();
            rates.of_producer(&settings, authority, instance, service, &Shares::new(0));
            let mut keys: Vec<String> = rates.egress.lock().keys().map(ToString::to_string).collect();
            keys.retain(|key| !before.iter().any(|one| **one == **key));
            keys.sort();
            keys
        };
        assert_eq!(keys("udm:80", None, "x"), ["1 udm:80"]);
        assert_eq!(keys("udm:80", None, "nudm-sdm"), ["2 udm:80", "3 "]);
        assert_eq!(keys("a:1", Some("id-1"), "nudm-ee"), ["0 a:1", "4 id-1"]);
        assert!(keys("a:1", Some("id-1"), "nudm-ee").is_empty(), "made once");
    }

    proptest! {
        #[test]
        fn shares_are_the_whole(whole in 0.0..1e6, asked in proptest::collection::vec(0.0..1e6, 1..16)) {
            let shares = apportion(whole, &asked);
            let sum: f64 = shares.iter().sum();
            prop_assert!((sum - whole).abs() <= 1e-6 * whole.max(1.0));
            prop_assert!(shares.iter().all(|share| *share >= 0.0));
        }
    }
}
