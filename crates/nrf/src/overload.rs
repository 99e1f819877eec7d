//! Which requests a worker discards when it is overloaded (N033).
//!
//! The load is the CPU time of the worker's own thread: what it spends says when it is full, whatever else
//! the machine does. Levels have an onset and an abatement so that they do not flap; within a level a fixed
//! share is discarded, evenly spread rather than by chance.

use std::cell::Cell;
use std::time::{Duration, Instant};

use overload::cpu::{CpuLoad, read};
use sbi::Request;
use sbi::headers::{MessagePriority, SbiHeader};

use crate::config::{Overload, OverloadLevel};

/// How often the load is sampled.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Decides about discards of one worker.
pub(crate) struct Shedder {
    levels: Vec<OverloadLevel>,
    /// Index into `levels` plus one; 0: no level.
    level: Cell<usize>,
    cpu: Cell<CpuLoad>,
    smoothed: Cell<f64>,
    /// Per kind of request, what has been owed to the discards so far, in percent.
    owed: [Cell<u32>; 3],
}

impl Shedder {
    pub(crate) fn new(settings: &Overload) -> Self {
        let mut levels = settings.levels.clone();
        levels.sort_by_key(|level| level.onset);
        Self {
            levels,
            level: Cell::new(0),
            cpu: Cell::new(CpuLoad::new()),
            smoothed: Cell::new(0.0),
            owed: Default::default(),
        }
    }

    pub(crate) fn is_needed(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Looks at the clock of the thread.
    pub(crate) fn sample(&self) {
        let Some(used) = read::thread() else { return };
        let mut cpu = self.cpu.get();
        let load = cpu.feed(used, Instant::now());
        self.cpu.set(cpu);
        if let Some(load) = load {
            self.feed(load);
        }
    }

    /// Takes a load in percent of a core.
    fn feed(&self, load: f64) {
        let smoothed = 0.7 * self.smoothed.get() + 0.3 * load;
        self.smoothed.set(smoothed);
        let mut level = self.level.get();
        while level < self.levels.len() && smoothed >= f64::from(self.levels[level].onset) {
            level += 1;
        }
        while level > 0 && smoothed < f64::from(self.levels[level - 1].abatement) {
            level -= 1;
        }
        self.level.set(level);
    }

    /// Whether this request is discarded.
    pub(crate) fn discards(&self, service: &str, resource: Option<&str>, request: &Request) -> bool {
        let Some(level) = self.level.get().checked_sub(1).map(|at| &self.levels[at]) else {
            return false;
        };
        let (kind, share) = match (service, resource) {
            ("nnrf-disc", _) => (0, level.discard_discovery),
            ("oauth2", _) => (1, level.discard_tokens),
            ("nnrf-nfm", Some("subscriptions")) => (2, level.discard_subscriptions),
            _ => return false,
        };
        let priority = MessagePriority::of(request.headers())
            .ok()
            .flatten()
            .map_or(24, MessagePriority::get);
        if share == 0 || priority <= level.spare_priority {
            return false;
        }
        let owed = self.owed[kind].get() + u32::from(share);
        self.owed[kind].set(owed % 100);
        owed >= 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_at_onset_and_fall_below_abatement() {
        let level = |onset, abatement| OverloadLevel {
            onset,
            abatement,
            ..OverloadLevel::default()
        };
        let shedder = Shedder::new(&Overload {
            levels: vec![level(90, 80), level(60, 50)],
        });
        let settle = |load: f64| {
            (0..50).for_each(|_| shedder.feed(load));
            shedder.level.get()
        };
        assert_eq!(
            [
                settle(55.0),
                settle(65.0),
                settle(95.0),
                settle(85.0),
                settle(79.0),
                settle(40.0)
            ],
            [0, 1, 2, 2, 1, 0]
        );
    }
}
