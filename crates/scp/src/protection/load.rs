//! The load of a worker and what it discards because of it.
//!
//! Load is the processor time of the worker's own thread. Above the load that is aimed at, a growing share of
//! the requests is discarded, the least important first, until the load is there; below it requests are let in
//! again by as much as there is room. Load that requests do not cause, such as a peer that floods a connection,
//! is not made less by discarding them: what they were measured to cost is theirs in any case, up to a part of the
//! core. Configured steps discard fixed shares instead or besides. Beside that the requests under way are bounded: whoever waits for slow
//! producers holds memory and no processor. Of their last quarter the more important ones get more.

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
    /// Requests since the load was looked at.
    offered: Cell<u32>,
    in_flight: Cell<u32>,
    most_in_flight: u32,
}

struct State {
    cpu: CpuLoad,
    /// What is told of the load, and what steps go by.
    average: RunningAverage,
    levels: CongestionLevels,
    shares: Vec<f64>,
    aim: Option<Aim>,
    discard: PriorityDiscard,
    /// Level that was told last.
    told: usize,
}

/// Holds the load at a target by letting in a share.
struct Aim {
    target: f64,
    average: RunningAverage,
    admitted: f64,
    cost: Cost,
    /// Load that requests may cause in any case.
    kept: f64,
}

/// What a request costs: load in percent for one in an interval.
struct Cost {
    of_one: f64,
    offered: RunningAverage,
}

impl Cost {
    /// Until it is measured: a millisecond, more than any request takes. Too much means more discards.
    const UNKNOWN: f64 = 1.0;
    /// Requests in an interval of which a cost can be told.
    const ENOUGH: f64 = 20.0;

    /// An interval has passed in which so many were offered; `calm`: all were let in, and there was time left.
    fn feed(&mut self, load: f64, offered: f64, calm: bool, now: Instant) {
        self.offered.feed(offered, now);
        if !calm || offered < Self::ENOUGH {
            return;
        }
        // What else the worker does is in it as well: the least of what was measured is nearest to the truth. It
        // fades, as requests may come to cost more.
        let measured = load / offered;
        let part = if measured < self.of_one { 0.5 } else { 0.02 };
        self.of_one += part * (measured - self.of_one);
    }

    /// The share of the requests that causes this load.
    fn share(&self, load: f64) -> f64 {
        let all = self.of_one * self.offered.value();
        match load > 0.0 {
            true => (load / all.max(load)).min(1.0),
            false => 0.0,
        }
    }
}

impl Aim {
    fn feed(&mut self, load: f64, offered: u32, now: Instant) -> f64 {
        let calm = self.admitted >= 1.0 && load < self.target;
        self.cost.feed(load, f64::from(offered), calm, now);
        let load = self.average.feed(load, now);
        if load > self.target {
            // A full processor does not say by how much too much there is: a firm step each time.
            let step = if load >= 99.0 { 0.9 } else { 1.0 };
            self.admitted = (self.admitted * step * self.target / load).max(0.02);
        } else if self.admitted < 1.0 {
            // By as much as there is room: an idle worker lets in twice as many each time.
            let room = (self.target - load) / self.target;
            let growth = (self.target / load.max(1.0)).min(1.0 + room.max(0.05));
            self.admitted = (self.admitted * growth + 0.002).min(1.0);
        }
        if self.admitted < 1.0 {
            self.admitted = self.admitted.max(self.cost.share(self.kept));
        }
        1.0 - self.admitted
    }
}

impl Load {
    pub(crate) fn new(settings: &Protection) -> Self {
        let levels = settings.overload.iter().map(|step| step.level.clone()).collect();
        let aim = settings.target_load.map(|target| Aim {
            target: target.percent().max(1.0),
            average: RunningAverage::new(Duration::from_millis(150)),
            admitted: 1.0,
            cost: Cost {
                of_one: Cost::UNKNOWN,
                offered: RunningAverage::new(Duration::from_millis(500)),
            },
            kept: settings.kept_load.percent().min(target.percent()),
        });
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
                aim,
                discard: PriorityDiscard::new(settings.spare_priority.checked_sub(1)),
                told: 0,
            }),
            share: Cell::new(0.0),
            percent: Cell::new(0),
            offered: Cell::new(0),
            in_flight: Cell::new(0),
            most_in_flight: match settings.max_in_flight {
                0 => u32::MAX,
                most => most,
            },
        }
    }

    /// Looks at the clock of this thread; tells the level when it has changed.
    pub(crate) fn sample(&self, now: Instant) -> Option<usize> {
        let used = read::thread()?;
        let load = self.state.borrow_mut().cpu.feed(used, now)?;
        self.feed(load, now)
    }

    /// Takes a load in percent. The level is that of the steps; without steps it is 1 while anything is
    /// discarded.
    fn feed(&self, load: f64, now: Instant) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        let smooth = state.average.feed(load, now);
        self.percent.set(smooth.clamp(0.0, 100.0) as u8);
        let offered = self.offered.take();
        let aimed = state.aim.as_mut().map_or(0.0, |aim| aim.feed(load, offered, now));
        state.levels.update(smooth, now);
        let step = state.levels.current();
        let stepped = step.checked_sub(1).and_then(|at| state.shares.get(at).copied());
        self.share.set(aimed.max(stepped.unwrap_or(0.0)));
        // A hundredth on its way back to nothing is no overload.
        let level = step.max(usize::from(aimed > 0.01));
        let changed = level != state.told;
        state.told = level;
        changed.then_some(level)
    }

    /// Whether a request of this priority is discarded.
    pub(crate) fn discards(&self, priority: u8) -> bool {
        let share = self.share.get();
        self.offered.set(self.offered.get().saturating_add(1));
        // Without overload a request costs this comparison; the mix of priorities is learned under load.
        share > 0.0 && self.state.borrow_mut().discard.next(priority, share)
    }

    /// Whether another request of this priority may be under way; if so it is, and [`Load::leave`] must
    /// follow.
    pub(crate) fn enter(&self, priority: u8) -> bool {
        let most = u64::from(self.most_in_flight);
        let kept = most * u64::from(priority.min(31)) / (4 * 31);
        let free = u64::from(self.in_flight.get()) < most - kept;
        self.in_flight.set(self.in_flight.get() + u32::from(free));
        free
    }

    /// A request that was under way has ended.
    pub(crate) fn leave(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    /// Load in percent of a core.
    pub(crate) fn percent(&self) -> u8 {
        self.percent.get()
    }

    /// Share of the requests that is discarded, in percent.
    pub(crate) fn reduction(&self) -> u8 {
        (100.0 * self.share.get()).round().clamp(0.0, 100.0) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OverloadStep;
    use overload::Level;
    use settings::Percent;

    #[test]
    fn steps_discard_the_least_important_first() {
        let load = Load::new(&Protection {
            target_load: None,
            overload: vec![OverloadStep {
                level: Level::new("major", 96.0, 90.0),
                discard: Percent::new(30.0),
            }],
            ..Protection::default()
        });
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

    /// What a simulated worker came to: its best without overload, served, longest queue, discarded by
    /// priority, by the share each had.
    struct Outcome {
        goodput: f64,
        longest: f64,
        discarded: [f64; 2],
    }

    /// A worker that can serve 100 requests in an interval is offered `times` as many for a minute, a quarter
    /// of them important. To discard one costs a twelfth of serving it.
    fn simulate(times: f64) -> Outcome {
        const CAPACITY: f64 = 100.0;
        let load = Load::new(&Protection::default());
        let mut now = Instant::now();
        let (mut queue, mut served, mut longest) = (0.0_f64, 0.0, 0.0_f64);
        let (mut offered, mut gone) = ([0.0; 2], [0.0; 2]);
        let mut number = 0_u32;
        for step in 0..600 {
            now += INTERVAL;
            let mut spent = 0.0;
            for _ in 0..(CAPACITY * times) as u32 {
                number += 1;
                let important = number.is_multiple_of(4);
                let class = usize::from(!important);
                offered[class] += 1.0;
                match load.discards(if important { 5 } else { 24 }) {
                    true => {
                        gone[class] += 1.0;
                        spent += 1.0 / 12.0;
                    }
                    false => queue += 1.0,
                }
            }
            let can = (CAPACITY - spent).max(0.0).min(queue);
            queue -= can;
            load.feed(100.0 * ((spent + can) / CAPACITY).min(1.0), now);
            // The first seconds are those in which it learns.
            if step >= 100 {
                served += can;
                longest = longest.max(queue);
            }
        }
        Outcome {
            goodput: served / (CAPACITY * 500.0),
            longest,
            discarded: [gone[0] / offered[0], gone[1] / offered[1]],
        }
    }

    #[test]
    fn three_times_the_capacity_costs_little_and_the_least_important() {
        let overloaded = simulate(3.0);
        // Of what is left beside discarding two in three, at least nine tenths are used.
        let most = 1.0 - 2.0 / 12.0;
        assert!(overloaded.goodput >= 0.9 * most, "{}", overloaded.goodput);
        assert!(
            overloaded.longest < 300.0,
            "the queue is bounded: {}",
            overloaded.longest
        );
        let [important, rest] = overloaded.discarded;
        assert!(important < 0.05 && rest > 0.8, "{important} {rest}");
    }

    #[test]
    fn a_little_too_much_costs_a_little_and_enough_costs_nothing() {
        let over = simulate(1.2);
        assert!(over.goodput >= 0.88, "{}", over.goodput);
        let under = simulate(0.9);
        assert!(under.goodput > 0.899, "{}", under.goodput);
        assert_eq!(under.discarded, [0.0, 0.0]);
    }

    /// A worker that other things than requests load, for so many intervals each time: how many of the requests
    /// were discarded in each of these phases. A request takes a thousandth of the time.
    fn flooded(phases: &[(u32, f64)], offered: u32) -> Vec<[f64; 2]> {
        let load = Load::new(&Protection::default());
        let mut now = Instant::now();
        let mut number = 0_u32;
        let phase = |(intervals, other): &(u32, f64)| {
            let (mut all, mut gone) = ([0.0; 2], [0.0; 2]);
            for _ in 0..*intervals {
                now += INTERVAL;
                let mut spent = 0.0;
                for _ in 0..offered {
                    number += 1;
                    let important = number.is_multiple_of(4);
                    let class = usize::from(!important);
                    all[class] += 1.0;
                    match load.discards(if important { 5 } else { 24 }) {
                        true => gone[class] += 1.0,
                        false => spent += 0.1,
                    }
                }
                load.feed((other + spent).min(100.0), now);
            }
            [gone[0] / all[0], gone[1] / all[1]]
        };
        phases.iter().map(phase).collect()
    }

    #[test]
    fn load_that_requests_do_not_cause_costs_them_nothing() {
        // A flood that fills the core: at 30 % of it, requests take less than what is theirs.
        let phases = flooded(&[(50, 0.0), (300, 100.0), (50, 0.0)], 300);
        assert_eq!(phases, [[0.0, 0.0]; 3]);
        // Few requests, of which no cost was ever measured.
        assert_eq!(flooded(&[(300, 100.0)], 1), [[0.0, 0.0]]);
    }

    #[test]
    fn beside_a_flood_requests_keep_their_part_and_after_it_all() {
        let phases = flooded(&[(50, 0.0), (300, 100.0), (10, 0.0), (50, 0.0)], 900);
        assert_eq!(phases[0], [0.0, 0.0]);
        // 50 % of the core for 90 %: four in nine go, none of the important quarter.
        let [important, rest] = phases[1];
        assert!(important < 0.02 && (0.5..=0.65).contains(&rest), "{phases:?}");
        // A second is enough to let all in again.
        assert!(phases[2][1] < 0.3 && phases[3] == [0.0, 0.0], "{phases:?}");
    }

    #[test]
    fn an_idle_worker_lets_all_in_within_a_second() {
        let load = Load::new(&Protection {
            kept_load: Percent::new(0.0),
            ..Protection::default()
        });
        let mut now = Instant::now();
        let mut feed = |percent, times| {
            for _ in 0..times {
                now += INTERVAL;
                load.feed(percent, now);
            }
            load.share.get()
        };
        assert!(feed(100.0, 300) >= 0.97);
        // What was measured before fades first.
        assert!(feed(0.5, 10) < 0.02);
        assert_eq!(feed(0.5, 5), 0.0);
    }

    #[test]
    fn the_last_places_are_for_the_more_important() {
        let load = Load::new(&Protection {
            max_in_flight: 124,
            ..Protection::default()
        });
        assert_eq!((0..200).filter(|_| load.enter(31)).count(), 93);
        assert_eq!((0..200).filter(|_| load.enter(15)).count(), 16);
        assert_eq!((0..200).filter(|_| load.enter(0)).count(), 15);
        load.leave();
        assert!(!load.enter(1) && load.enter(0));
    }
}
