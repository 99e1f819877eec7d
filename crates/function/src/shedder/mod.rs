//! Which requests a worker refuses under load: the same in every function.
//!
//! The measure is how long requests have waited for the worker ([`AdmissionController`]). Where operators set levels of
//! processor time, each discards a share of each class of requests as well. What the load is for others (the profile at the
//! NRF, `3gpp-Sbi-Lci`) is the larger of the processor time and the load by waiting time: a worker that shares its core is
//! full before its own processor time says so.

mod cost;
mod lag;
mod metrics;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use overload::cpu::{CpuLoad, read};
use overload::{
    Admission, AdmissionController, CongestionLevels, Level, Offered, RunningAverage, WaitingTime,
};
use telemetry::{AlarmKind, Alarms, Severity};

pub use self::metrics::{AdmissionMetrics, Meters};

use self::cost::Cost;
use self::lag::Lag;

/// How often a worker samples its load.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Over what time the load is averaged.
const AVERAGED: Duration = Duration::from_millis(500);
/// How long no request must have been refused before the alarm clears.
const CALM: Duration = Duration::from_secs(1);
/// A smaller share of refused requests is the end of an overload, not one.
const NEGLIGIBLE: f64 = 0.01;

/// A worker discards requests. The number is ours.
pub const OVERLOAD: AlarmKind = AlarmKind {
    number: 10522,
    name: "Worker Overloaded",
    severity: Severity::Major,
    text: "Requests wait longer for a worker than the target, or a configured level is reached, so the worker refuses requests, the least important first.",
    advice: "Add workers or instances, reduce the load, or give the worker a core that no other process uses.",
};

/// What is discarded at a level of processor time.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When the level begins and ends.
    pub level: Level,
    /// The share (0 … 1) of each class of requests that is discarded.
    pub shares: Vec<f64>,
    /// The `spare` of this level; none: that of [`Shedding`].
    pub spare: Option<u8>,
}

/// Settings of a [`Shedder`], as a function derives them from its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Shedding {
    /// Admission by waiting time.
    pub waiting: WaitingTime,
    /// Levels of processor time; none: only the waiting time counts.
    pub steps: Vec<Step>,
    /// Classes of requests; each gives the same share.
    pub classes: usize,
    /// Whether each class has a listener of its own, and so a queue of its own.
    pub apart: bool,
    /// Messages of priority 0 to this are never refused (`sparePriority`).
    pub spare: u8,
    /// The part (0 … 1) of the worker's processor time that requests may take in any case: where something else than
    /// requests fills it, no more of them are refused.
    pub kept: f64,
}

impl Shedding {
    /// A usual [`kept`](Self::kept). Under overload a request costs two to three times what it cost before, by what it was
    /// measured: data waits in buffers beyond the processor's caches. What refusing three times the capacity leaves is more.
    pub const KEPT: f64 = 0.2;
}

/// Decides for one worker which requests it refuses.
pub struct Shedder {
    admission: RefCell<AdmissionController>,
    measured: RefCell<Measured>,
    lag: Lag,
    enforced: Cell<bool>,
    level: Cell<usize>,
    processor: Cell<f64>,
    /// Requests since the last sample.
    offered: Cell<u32>,
    /// Whether requests came since the lag was measured.
    busy: Cell<bool>,
    meters: Meters,
}

struct Measured {
    settings: Shedding,
    cpu: CpuLoad,
    average: RunningAverage,
    levels: CongestionLevels,
    cost: Cost,
    /// When requests were refused last; none: the alarm is not raised.
    refused: Option<Instant>,
}

fn levels(settings: &Shedding) -> CongestionLevels {
    CongestionLevels::new(settings.steps.iter().map(|step| step.level.clone()).collect())
}

fn sorted(mut settings: Shedding) -> Shedding {
    settings
        .steps
        .sort_by(|a, b| a.level.set.percent().total_cmp(&b.level.set.percent()));
    settings
}

impl Shedder {
    /// A shedder that has measured no load yet.
    #[must_use]
    pub fn new(settings: Shedding, meters: Meters) -> Self {
        let settings = sorted(settings);
        let waiting = settings.waiting.clone();
        let admission = AdmissionController::new(waiting, settings.classes, Some(settings.spare));
        Self {
            admission: RefCell::new(match settings.apart {
                true => admission.with_queue_of_each_class(),
                false => admission,
            }),
            measured: RefCell::new(Measured {
                cpu: CpuLoad::new(),
                average: RunningAverage::new(AVERAGED),
                levels: levels(&settings),
                cost: Cost::default(),
                refused: None,
                settings,
            }),
            lag: Lag::default(),
            enforced: Cell::new(true),
            level: Cell::new(0),
            processor: Cell::new(0.0),
            offered: Cell::new(0),
            busy: Cell::new(false),
            meters,
        }
    }

    /// Takes over other settings; what was measured and learned stays.
    pub fn reconfigure(&self, settings: Shedding) {
        let settings = sorted(settings);
        let mut measured = self.measured.borrow_mut();
        if measured.settings == settings {
            return;
        }
        if measured.settings.steps != settings.steps {
            measured.levels = levels(&settings);
            self.level.set(0);
        }
        let mut admission = self.admission.borrow_mut();
        admission.reconfigure(settings.waiting.clone(), Some(settings.spare));
        measured.settings = settings;
        self.impose(&measured, &mut admission);
    }

    /// Whether requests are refused at all; the load is measured in any case.
    pub fn enforce(&self, enforced: bool) {
        if self.enforced.replace(enforced) != enforced {
            let mut admission = self.admission.borrow_mut();
            admission.enforce(enforced);
            self.impose(&self.measured.borrow(), &mut admission);
        }
    }

    /// Upper bound of the time that the request which the worker begins with now was queued, where its listener does
    /// not measure it. `unread`: since when it lay unread in its connection, if turns of that have ended before its bytes did.
    #[must_use]
    pub fn waited(&self, now: Instant, unread: Option<Instant>) -> Duration {
        let in_socket = unread.map_or(Duration::ZERO, |unread| now.saturating_duration_since(unread));
        self.lag.waited(now, worker::woke_at()).max(in_socket)
    }

    /// Admits or refuses a request of this class that was queued for this time.
    pub fn admit(&self, now: Instant, waited: Duration, class: usize, message: &impl Offered) -> Admission {
        self.count(waited);
        let admission = self.admission.borrow_mut().admit(now, waited, class, message);
        if admission == Admission::Refused {
            self.meters.refused(message.priority());
        }
        admission
    }

    /// Records the queueing time of a request that is served under any load.
    pub fn observe(&self, now: Instant, waited: Duration) {
        self.count(waited);
        self.admission.borrow_mut().observe(now, waited);
    }

    fn count(&self, waited: Duration) {
        self.offered.set(self.offered.get().saturating_add(1));
        self.busy.set(true);
        self.meters.waited(waited);
    }

    /// Samples the processor time of this thread, each [`SAMPLE_INTERVAL`]; raises or clears the alarm of the worker.
    pub(crate) fn sample(&self, now: Instant, worker: usize, alarms: &Alarms) {
        self.admission.borrow_mut().tick(now);
        let used = read::thread().and_then(|used| self.measured.borrow_mut().cpu.feed(used, now));
        if let Some(load) = used
            && self.feed(load, now)
        {
            let measured = self.measured.borrow();
            let level = measured.levels.name(self.level.get());
            tracing::info!(worker, level, load = self.processor.get(), "congestion level");
        }
        let refused = self.reduction();
        let edge = (0..self.measured.borrow().settings.classes)
            .map(|class| self.admission.borrow().threshold(class));
        self.meters.threshold(edge.min().unwrap_or(overload::PRIORITIES));
        let refusing = refused > NEGLIGIBLE || self.level.get() > 0;
        let mut measured = self.measured.borrow_mut();
        match (refusing, measured.refused) {
            (true, before) => {
                measured.refused = Some(now);
                if before.is_none() {
                    let share = 100.0 * refused;
                    tracing::warn!(
                        worker,
                        refused_percent = share,
                        load = self.processor.get(),
                        "worker overloaded"
                    );
                    alarms.set(&OVERLOAD, &instance(worker), Some(self.reason(&measured)));
                }
            }
            (false, Some(last)) if now.saturating_duration_since(last) >= CALM => {
                measured.refused = None;
                tracing::info!(worker, "worker no longer overloaded");
                alarms.set(&OVERLOAD, &instance(worker), None);
            }
            _ => {}
        }
    }

    fn reason(&self, measured: &Measured) -> String {
        let processor = self.processor.get();
        match self.level.get() {
            0 => format!(
                "requests wait longer than {}; {processor:.0} % of a core",
                measured.settings.waiting.target
            ),
            level => format!(
                "congestion level {} at {processor:.0} % of a core",
                measured.levels.name(level)
            ),
        }
    }

    /// Records a processor time in percent of a core; returns whether the level has changed.
    fn feed(&self, load: f64, now: Instant) -> bool {
        let mut measured = self.measured.borrow_mut();
        let mut admission = self.admission.borrow_mut();
        let offered = f64::from(self.offered.take());
        let calm = admission.refused_share() <= 0.0 && admission.load() < 100.0;
        measured.cost.feed(load, offered, calm, now);
        admission.set_floor(measured.cost.share(measured.settings.kept * load));
        let smooth = measured.average.feed(load, now);
        self.processor.set(smooth);
        let changed = measured.levels.update(smooth, now).is_some();
        if changed {
            self.level.set(measured.levels.current());
            self.impose(&measured, &mut admission);
        }
        changed
    }

    /// The level in effect.
    fn step<'a>(&self, measured: &'a Measured) -> Option<&'a Step> {
        let at = self.level.get().checked_sub(1)?;
        measured.settings.steps.get(at).filter(|_| self.enforced.get())
    }

    /// Refuses the share that the level sets.
    fn impose(&self, measured: &Measured, admission: &mut AdmissionController) {
        let step = self.step(measured);
        let spare = step.and_then(|step| step.spare);
        admission.spare(Some(spare.unwrap_or(measured.settings.spare)));
        for class in 0..measured.settings.classes {
            let share = step.and_then(|step| step.shares.get(class).copied());
            admission.impose(class, share.unwrap_or(0.0));
        }
    }

    /// The load in percent, as it is reported to others.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.processor.get().max(self.admission.borrow().load())
    }

    /// The congestion level of processor time, or 1 while requests are refused for their waiting time; 0: none.
    #[must_use]
    pub fn level(&self) -> usize {
        let refusing = self.admission.borrow().refused_share() > NEGLIGIBLE;
        self.level.get().max(usize::from(refusing))
    }

    /// The share (0 … 1) of the requests that is refused.
    #[must_use]
    pub fn reduction(&self) -> f64 {
        let measured = self.measured.borrow();
        let imposed = self
            .step(&measured)
            .map_or(0.0, |step| step.shares.iter().copied().fold(0.0, f64::max));
        self.admission.borrow().refused_share().max(imposed)
    }

    /// The time at which the event loop should reach the next measurement of its lag.
    pub(crate) fn expect(&self, now: Instant) -> Instant {
        self.lag.expect(now, self.busy.take(), SAMPLE_INTERVAL)
    }

    /// Records that the event loop has reached the measurement.
    pub(crate) fn arrived(&self, now: Instant) {
        self.lag.arrived(now, worker::woke_at());
    }
}

fn instance(worker: usize) -> String {
    format!("worker-{worker}")
}

#[cfg(test)]
mod tests;
