//! Admission by waiting time: which requests a worker serves when it receives more than it can serve.
//!
//! The signal is the time that a request has waited when the worker begins with it. It reflects every cause of delay,
//! including another process on the same core, which a CPU share does not show. The parts come from published designs:
//!
//! - From CoDel (RFC 8289 §3) the gate: a queue that empties within `interval` is a burst, which is served. Requests
//!   are refused only after the waiting time has stayed above `target` for a whole interval.
//! - From PIE (RFC 8033 §4.2) the controller: the admitted share follows the waiting time and its trend. A queue that
//!   drains fast enough is left to drain. Requests are refused when the worker begins with them, so a change has its effect
//!   at once, and the gains can be high.
//! - From DAGOR (Zhou et al., SoCC 2018, §4.2) the order: a histogram of the priorities makes a threshold of the share, so
//!   the least important go first, and within the priority at the threshold an even part.
//!
//! The share falls in proportion to itself, so three and ten times the capacity converge alike, and rises by steps that
//! fill at most the room that there is within a second (the additive increase of Breakwater, Cho et al., OSDI 2020).

mod offered;
mod settings;
mod threshold;

use std::time::{Duration, Instant};

pub use self::offered::Offered;
pub use self::settings::WaitingTime;
use self::threshold::Threshold;

/// Samples in an interval.
const SAMPLES: u32 = 10;
/// The share falls by this part of itself for a second by which the waiting time grows (the β of PIE).
const TREND: f64 = 30.0;
/// The share falls by this part of itself in a second while requests wait for twice the target (the α of PIE).
const OFFSET: f64 = 2.5;
/// A queue that drains by more than this many times the time that passes counts as one that drains by as much.
const DRAINS: f64 = 2.0;
/// The share rises by this part of itself in a second while requests do not wait at all.
const RISE: f64 = 4.0;
/// Bound of the excess waiting time in multiples of the target: a queue of any length drains, but not at once.
const MOST_OFF: f64 = 2.5;
/// The share rises as if it were at least this.
const RISE_FROM: f64 = 0.25;
/// Factor of the rise once the queue has emptied in each sample of an interval.
const EMPTY: f64 = 3.0;
/// Number of intervals after refusals in which a queue that grows does not count as a burst.
const RELAPSE: u32 = 5;
/// Least share that is admitted, so that the controller can measure the cost of a served request.
const LEAST: f64 = 0.01;
/// Number of intervals over which the reported waiting time is averaged.
const REPORTED: f64 = 5.0;

/// Decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The worker serves it.
    Admitted,
    /// The worker refuses it, because requests wait too long and others are more important.
    Refused,
    /// The worker refuses it, because it has waited longer than its consumer does.
    Late,
}

/// Decides for one worker.
#[derive(Clone, Debug)]
pub struct AdmissionController {
    settings: WaitingTime,
    target: f64,
    /// When the sample began.
    began: Option<Instant>,
    /// When it ends at the earliest; none until a request has asked.
    ends: Option<Instant>,
    /// The queues that requests come from: one of all classes, or one of each.
    queues: Vec<Queue>,
    /// The least waiting time of samples, averaged, in seconds.
    reported: f64,
    /// Since when the share has been below 1.
    refusing: Option<Instant>,
    /// Until when a queue that grows counts as the last one, which refusals have drained.
    relapses: Option<Instant>,
    /// Share of the requests that is admitted.
    share: f64,
    /// The share does not fall below this.
    floor: f64,
    /// Whether the share falls at all.
    enforced: bool,
    classes: Vec<Class>,
}

#[derive(Clone, Debug)]
struct Class {
    threshold: Threshold,
    /// Share that is refused whatever the waiting time.
    imposed: f64,
}

/// Requests that wait for the same worker in the order in which they came: those of a listener.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    sample: Sample,
    /// Since when no sample had a request that waited for the target or less.
    above: Option<Instant>,
    /// Since when each sample had a request that hardly waited.
    empty: Option<Instant>,
    /// Mean waiting time of the last sample with requests, in seconds.
    waited: f64,
    /// When that sample ended.
    seen: Option<Instant>,
}

/// Waiting times of a tenth of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u32,
    /// In seconds.
    sum: f64,
    least: f64,
}

impl AdmissionController {
    /// Creates a controller for `classes` classes of requests. It never refuses messages of priority 0 to `spare`; `None`:
    /// it may refuse any.
    ///
    /// Each class gives the same share, its least important requests first.
    #[must_use]
    pub fn new(settings: WaitingTime, classes: usize, spare: Option<u8>) -> Self {
        let class = Class {
            threshold: Threshold::new(spare),
            imposed: 0.0,
        };
        Self {
            target: settings.target.duration().as_secs_f64(),
            settings,
            began: None,
            ends: None,
            queues: vec![Queue::default()],
            reported: 0.0,
            refusing: None,
            relapses: None,
            share: 1.0,
            floor: LEAST,
            enforced: true,
            classes: vec![class; classes],
        }
    }

    /// Has each class come from a queue of its own. The longest queue decides what share is admitted of all classes: another
    /// one that empties does not say that the worker keeps up, where the worker takes turns with them.
    #[must_use]
    pub fn with_queue_of_each_class(mut self) -> Self {
        self.queues = vec![Queue::default(); self.classes.len().max(1)];
        self
    }

    /// Changes the settings and keeps the measured state.
    pub fn reconfigure(&mut self, settings: WaitingTime, spare: Option<u8>) {
        self.target = settings.target.duration().as_secs_f64();
        self.settings = settings;
        self.ends = None;
        if self.target <= 0.0 {
            self.forget();
            self.queues.fill(Queue::default());
        }
        self.spare(spare);
        self.place(0.0);
    }

    /// Whether requests are refused for their waiting time; it is measured in any case.
    pub fn enforce(&mut self, enforced: bool) {
        self.enforced = enforced;
        if !enforced {
            self.forget();
            self.place(0.0);
        }
    }

    /// Decides about a request of this class that has waited for `waited`.
    pub fn admit(
        &mut self,
        now: Instant,
        waited: Duration,
        class: usize,
        message: &impl Offered,
    ) -> Admission {
        self.observe_in(class, now, waited);
        if self.is_late(waited, message) {
            return Admission::Late;
        }
        let refusing = self.share < 1.0;
        let learning = refusing || self.is_above();
        let Some(class) = self.classes.get_mut(class) else {
            return Admission::Admitted;
        };
        if learning || class.imposed > 0.0 {
            let priority = message.priority();
            class.threshold.learn(priority);
            if class.threshold.refuses(priority) {
                return Admission::Refused;
            }
        }
        Admission::Admitted
    }

    /// Records the waiting time of a request that is always served, from the first queue.
    pub fn observe(&mut self, now: Instant, waited: Duration) {
        self.observe_in(0, now, waited);
    }

    /// Whether a queue is longer than the target.
    fn is_above(&self) -> bool {
        self.queues.iter().any(|queue| queue.above.is_some())
    }

    fn observe_in(&mut self, class: usize, now: Instant, waited: Duration) {
        let waited = waited.as_secs_f64();
        let began = *self.began.get_or_insert(now);
        let interval = self.settings.interval.duration();
        // Each request passes here: a comparison costs a tenth of a subtraction.
        if now >= *self.ends.get_or_insert_with(|| began + interval / SAMPLES) {
            let passed = now.saturating_duration_since(began);
            self.close(began, now, passed.as_secs_f64(), waited);
        }
        let queue = class.min(self.queues.len() - 1);
        let sample = &mut self.queues[queue].sample;
        sample.least = match sample.count {
            0 => waited,
            _ => sample.least.min(waited),
        };
        sample.sum += waited;
        sample.count = sample.count.saturating_add(1);
    }

    /// Whether the consumer of a request has given up; not checked while the waiting time is at most the target.
    fn is_late(&self, waited: Duration, message: &impl Offered) -> bool {
        let limit = self.settings.age_limit;
        self.enforced
            && !limit.is_zero()
            && waited > self.settings.target.duration()
            && message
                .is_late(waited)
                .unwrap_or_else(|| waited >= limit.duration())
    }

    /// Advances the time without a request: an idle worker admits all requests again.
    pub fn tick(&mut self, now: Instant) {
        let Some(began) = self.began else { return };
        let passed = now.saturating_duration_since(began);
        // A busy worker may close a sample late; only a whole interval without requests counts as idle.
        if passed >= self.settings.interval.duration() {
            self.close(began, now, passed.as_secs_f64(), 0.0);
        }
    }

    /// Admits at least this share (0 … 1), whatever the waiting time.
    pub fn set_floor(&mut self, floor: f64) {
        self.floor = floor.clamp(LEAST, 1.0);
        if self.share < self.floor {
            self.share = self.floor;
            self.place(0.0);
        }
    }

    /// Never refuses messages of priority 0 to `spare`.
    pub fn spare(&mut self, spare: Option<u8>) {
        for class in &mut self.classes {
            class.threshold.spare(spare);
        }
    }

    /// Refuses at least this share (0 … 1) of a class, whatever the waiting time.
    pub fn impose(&mut self, class: usize, share: f64) {
        if let Some(class) = self.classes.get_mut(class) {
            class.imposed = share.clamp(0.0, 1.0);
        }
        self.place(0.0);
    }

    /// The share (0 … 1) of the requests that is refused because of the waiting time.
    #[must_use]
    pub fn refused_share(&self) -> f64 {
        1.0 - self.share
    }

    /// The most important priority of a class of which requests are refused; [`crate::PRIORITIES`]: none.
    #[must_use]
    pub fn threshold(&self, class: usize) -> usize {
        let class = self.classes.get(class);
        class.map_or(crate::PRIORITIES, |class| class.threshold.edge())
    }

    /// The load by waiting time in percent: 100 when requests wait for the target all the time.
    #[must_use]
    pub fn load(&self) -> f64 {
        match self.target > 0.0 {
            true => (100.0 * self.reported / self.target).min(100.0),
            false => 0.0,
        }
    }

    /// Ends the sample that began at `began`; the next request has waited for `next` seconds.
    fn close(&mut self, began: Instant, now: Instant, passed: f64, next: f64) {
        self.began = Some(now);
        self.ends = None;
        if self.target <= 0.0 {
            self.queues.fill(Queue::default());
            return;
        }
        let length = self.settings.interval.duration().as_secs_f64() / f64::from(SAMPLES);
        let before = self.share;
        let mut mixed = 0.0;
        if self.queues.iter().any(|queue| queue.sample.count > 0) {
            self.learn(began, now, length);
            mixed += length;
        }
        // Time without requests. While the process paused, a request was pending.
        let idle = passed - length - next;
        if idle >= length {
            for queue in &mut self.queues {
                queue.above = None;
                queue.waited = 0.0;
            }
            self.report(0.0, idle);
            self.rise(EMPTY, idle);
            mixed += idle;
        }
        self.remember(began, now);
        if before < 1.0
            || self.share < 1.0
            || self.is_above()
            || self.classes.iter().any(|class| class.imposed > 0.0)
        {
            self.place(mixed);
        }
    }

    /// Admits all, as if none had been refused.
    fn forget(&mut self) {
        self.share = 1.0;
        self.refusing = None;
        self.relapses = None;
    }

    /// Notes at the end of a sample that began at `began` whether requests are refused.
    ///
    /// Where they were refused for a whole interval, the next queue does not count as a burst either, as CoDel resumes where it ended
    /// (RFC 8289). Refusals after a pause of the process end sooner, and do not prolong themselves.
    fn remember(&mut self, began: Instant, now: Instant) {
        let interval = self.settings.interval.duration();
        self.refusing = match self.share < 1.0 {
            true => self.refusing.or(Some(began)),
            false => None,
        };
        if let Some(since) = self.refusing
            && now.saturating_duration_since(since) >= interval
        {
            self.relapses = Some(now + RELAPSE * interval);
        }
    }

    /// Ends the samples of the queues, of which one at least has requests.
    fn learn(&mut self, began: Instant, now: Instant, length: f64) {
        let interval = self.settings.interval.duration();
        let for_an_interval = |since: Option<Instant>| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= interval)
        };
        let (mut standing, mut empty) = (false, true);
        // Mean of the longest queue, the one before it, and the least time of any queue's sample.
        let (mut mean, mut previous, mut least) = (-1.0, 0.0, 0.0_f64);
        for queue in &mut self.queues {
            let sample = std::mem::take(&mut queue.sample);
            if sample.count == 0 {
                // The worker was busy with another queue. This one may have grown meanwhile, or have ended.
                if queue.seen.is_none() || for_an_interval(queue.seen) {
                    *queue = Queue::default();
                    continue;
                }
                standing |= for_an_interval(queue.above);
                empty &= for_an_interval(queue.empty);
                if queue.waited > mean {
                    (mean, previous) = (queue.waited, queue.waited);
                }
                continue;
            }
            queue.seen = Some(now);
            let of_queue = sample.sum / f64::from(sample.count);
            queue.above = match sample.least > self.target {
                true => queue.above.or(Some(began)),
                false => None,
            };
            queue.empty = match sample.least < self.target / 4.0 {
                true => queue.empty.or(Some(began)),
                false => None,
            };
            standing |= for_an_interval(queue.above);
            empty &= for_an_interval(queue.empty);
            least = least.max(sample.least);
            if of_queue > mean {
                (mean, previous) = (of_queue, queue.waited);
            }
            queue.waited = of_queue;
        }
        self.report(least, length);
        let relapse = mean > self.target && self.relapses.is_some_and(|until| now < until);
        if self.enforced && (standing || relapse || self.share < 1.0) {
            self.follow((previous, mean), length, if empty { EMPTY } else { 1.0 });
        }
    }

    /// Changes the share by the mean waiting times of the sample before and of this one; it rises `pace` times as fast as usual.
    fn follow(&mut self, (before, mean): (f64, f64), length: f64, pace: f64) {
        // A queue cannot grow faster than time passes: a larger difference is a pause of the process, not a trend.
        let trend = (mean - before).clamp(-DRAINS * length, length);
        let off = ((mean - self.target) / self.target).clamp(-1.0, MOST_OFF);
        let mut change = -TREND * trend;
        if off > 0.0 {
            // The longer a queue is, the less of its draining is a reason to admit more before it has drained.
            let most = TREND * DRAINS * length * (1.0 - off / MOST_OFF);
            change = (change - OFFSET * length * off).min(most);
        }
        self.share *= change.exp();
        if off < 0.0 {
            self.rise(-off * pace, length);
        }
        self.share = self.share.clamp(self.floor, 1.0);
    }

    fn rise(&mut self, room: f64, time: f64) {
        self.share = (self.share + RISE * time * room * self.share.max(RISE_FROM)).min(1.0);
    }

    fn report(&mut self, waited: f64, time: f64) {
        let over = REPORTED * self.settings.interval.duration().as_secs_f64();
        let part = 1.0 - (-time / over).exp();
        self.reported += part * (waited - self.reported);
    }

    fn place(&mut self, passed: f64) {
        let share = self.refused_share();
        for class in &mut self.classes {
            class.threshold.set(share.max(class.imposed), passed);
        }
    }
}
