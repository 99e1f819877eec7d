//! What became of calls by second: the points of the plots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::functions::Core;
use loadgen::Record;
use report::Point;
use report::measure::Process;

/// Time between two points at least.
const INTERVAL: Duration = Duration::from_millis(900);

/// The points up to now.
pub(super) struct Timeline<'a> {
    core: &'a Core,
    pub(super) points: Vec<Point>,
    is_measuring: bool,
    begun: Instant,
    last: Instant,
    /// Calls of this part that have ended.
    ended: u64,
    /// Processor time of all functions, and of the callers.
    used: (Duration, Duration),
}

impl<'a> Timeline<'a> {
    pub(super) fn new(core: &'a Core) -> Self {
        let now = Instant::now();
        Self {
            core,
            points: Vec::new(),
            is_measuring: false,
            begun: now,
            last: now,
            ended: 0,
            used: used(core),
        }
    }

    /// Points from now on belong to the measured part.
    pub(super) fn measure(&mut self) {
        (self.is_measuring, self.ended) = (true, 0);
        (self.last, self.used) = (Instant::now(), used(self.core));
    }

    /// Takes a point when it is time for one: `recent` has the calls that ended since the last one.
    pub(super) fn sample(&mut self, count: u64, next: &AtomicU64, recent: &Mutex<Record>) {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        if seconds < INTERVAL.as_secs_f64() {
            return;
        }
        let ended = std::mem::replace(
            &mut *recent.lock().unwrap_or_else(PoisonError::into_inner),
            Record::new(1),
        );
        let (total, used) = (ended.total(), used(self.core));
        self.ended += total.offered;
        let quantile = |q| total.latency.value_at_quantile(q) as f64 / 1000.0;
        let cores = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() / seconds;
        self.points.push(Point {
            t: now.duration_since(self.begun).as_secs_f64(),
            measured: self.is_measuring,
            offered: total.offered as f64 / seconds,
            achieved: total.succeeded as f64 / seconds,
            failed: total.failures() as f64 / seconds,
            p50: quantile(0.5),
            p99: quantile(0.99),
            cpu: cores(used.0, self.used.0),
            generator_cpu: cores(used.1, self.used.1),
            // A caller takes a call before its time has come, so that these are the callers at most.
            in_flight: next.load(Ordering::Relaxed).min(count).saturating_sub(self.ended),
        });
        (self.last, self.used) = (now, used);
    }
}

fn used(core: &Core) -> (Duration, Duration) {
    let functions = core.functions.iter();
    let functions = functions.map(|function| function.usage().cpu).sum();
    let callers = Process::new(std::process::id()).usage();
    (functions, callers.map_or(Duration::ZERO, |usage| usage.cpu))
}
