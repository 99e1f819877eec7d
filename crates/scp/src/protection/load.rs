//! The load of a worker and what it discards because of it.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use overload::cpu::{CpuLoad, read};
use overload::{CongestionLevels, PriorityDiscard, RunningAverage};

use crate::config::Protection;

/// How often the load is looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// Load and discards of one worker.
pub(crate) struct Load {
    state: RefCell<State>,
    /// Share that is discarded now.
    share: Cell<f64>,
    percent: Cell<u8>,
}

struct State {
    cpu: CpuLoad,
    average: RunningAverage,
    levels: CongestionLevels,
    shares: Vec<f64>,
    discard: PriorityDiscard,
}

impl Load {
    pub(crate) fn new(settings: &Protection) -> Self {
        let levels = settings.overload.iter().map(|step| step.level.clone()).collect();
        Self {
            state: RefCell::new(State {
                cpu: CpuLoad::new(),
                average: RunningAverage::new(Duration::from_millis(500)),
                levels: CongestionLevels::new(levels),
                shares: settings
                    .overload
                    .iter()
                    .map(|step| step.discard.fraction())
                    .collect(),
                discard: PriorityDiscard::new(settings.spare_priority.checked_sub(1)),
            }),
            share: Cell::new(0.0),
            percent: Cell::new(0),
        }
    }

    /// Looks at the clock of this thread; tells the level when it has changed.
    pub(crate) fn sample(&self, now: Instant) -> Option<usize> {
        let used = read::thread()?;
        let load = self.state.borrow_mut().cpu.feed(used, now)?;
        self.feed(load, now)
    }

    /// Takes a load in percent.
    fn feed(&self, load: f64, now: Instant) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        let smooth = state.average.feed(load, now);
        self.percent.set(smooth.clamp(0.0, 100.0) as u8);
        let change = state.levels.update(smooth, now)?;
        let share = change
            .to
            .checked_sub(1)
            .and_then(|at| state.shares.get(at).copied());
        self.share.set(share.unwrap_or(0.0));
        Some(change.to)
    }

    /// Whether a request of this priority is discarded.
    pub(crate) fn discards(&self, priority: u8) -> bool {
        let share = self.share.get();
        // Without overload a request costs this comparison; the mix of priorities is learned under load.
        share > 0.0 && self.state.borrow_mut().discard.next(priority, share)
    }

    /// Load in percent of a core.
    pub(crate) fn percent(&self) -> u8 {
        self.percent.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_go_first() {
        let load = Load::new(&Protection::default());
        let mut now = Instant::now();
        for _ in 0..100 {
            now += INTERVAL;
            load.feed(97.0, now);
        }
        assert_eq!(load.share.get(), 0.3);
        let mut gone = [0; 2];
        for _ in 0..10_000 {
            gone[0] += u32::from(load.discards(5));
            gone[1] += u32::from(load.discards(20));
        }
        assert_eq!(gone[0], 0, "{gone:?}");
        assert!(
            (5_900..=6_100).contains(&gone[1]),
            "30 % of all are 60 % of these: {gone:?}"
        );
        for _ in 0..100 {
            now += INTERVAL;
            load.feed(10.0, now);
        }
        assert!(!load.discards(31));
    }
}
