//! Congestion levels: entered at once, left after a while.

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// When a level begins and ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Level {
    /// Name in logs, alarms and metrics: `CL1`.
    pub name: String,
    /// The level begins when the load reaches this.
    pub set: Percent,
    /// It ends when the load has been below this for the abatement time.
    pub clear: Percent,
    /// How long the load must have been below `clear`.
    #[serde(default = "abatement")]
    pub abatement: Period,
}

fn abatement() -> Period {
    Period::from_millis(250)
}

impl Level {
    /// A level with the usual abatement time of 250 ms.
    #[must_use]
    pub fn new(name: &str, set: f64, clear: f64) -> Self {
        Self {
            name: name.to_owned(),
            set: Percent::new(set),
            clear: Percent::new(clear),
            abatement: abatement(),
        }
    }

    /// The four levels of a Diameter router: danger of congestion and three levels of it, each cleared three
    /// points below where it is set.
    #[must_use]
    pub fn diameter() -> Vec<Self> {
        vec![
            Self::new("DOC", 54.0, 51.0),
            Self::new("CL1", 60.0, 57.0),
            Self::new("CL2", 66.0, 63.0),
            Self::new("CL3", 72.0, 69.0),
        ]
    }
}

impl Validate for Level {
    fn validate(&self, faults: &mut Faults) {
        if self.clear >= self.set {
            faults.at("clear").say(
                format!("{} is not below `set` ({})", self.clear, self.set),
                "less than `set`, so that the level does not flap",
            );
        }
    }
}

/// Checks that levels rise, for the settings that hold a list of them: each `set` above that of the level before, and no
/// `clear` below it.
pub(crate) fn validate_order(levels: &[Level], faults: &mut Faults) {
    for (index, pair) in levels.windows(2).enumerate() {
        let [lower, higher] = pair else { continue };
        if higher.set <= lower.set {
            faults.at(format_args!("[{}].set", index + 1)).say(
                format!(
                    "{} is not above {}, the `set` of {}",
                    higher.set, lower.set, lower.name
                ),
                "levels in rising order",
            );
        }
        if higher.clear < lower.clear {
            faults.at(format_args!("[{}].clear", index + 1)).say(
                format!(
                    "{} is below {}, the `clear` of {}",
                    higher.clear, lower.clear, lower.name
                ),
                "at least that of the level before, so that the levels end in order",
            );
        }
    }
}

/// A change of level; 0 is "no congestion", 1 the first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The level before.
    pub from: usize,
    /// The level now.
    pub to: usize,
}

/// Congestion level of a load.
#[derive(Clone, Debug)]
pub struct CongestionLevels {
    levels: Vec<Level>,
    /// Since when the load has been below the `clear` of each level.
    below: Vec<Option<Instant>>,
    current: usize,
}

impl CongestionLevels {
    /// Creates a state without congestion. Sorts the levels by `set`.
    #[must_use]
    pub fn new(mut levels: Vec<Level>) -> Self {
        levels.sort_by(|a, b| a.set.percent().total_cmp(&b.set.percent()));
        Self {
            below: vec![None; levels.len()],
            levels,
            current: 0,
        }
    }

    /// Checks a list of levels as settings: each by itself, and that they rise.
    pub fn validate(levels: &Vec<Level>, faults: &mut Faults) {
        levels.validate(faults);
        validate_order(levels, faults);
    }

    /// Takes the load in percent; returns the change of level, if any.
    pub fn update(&mut self, load: f64, now: Instant) -> Option<Change> {
        let from = self.current;
        // The highest level that is set, or that has not been below its `clear` for long enough.
        let mut to = 0;
        for (index, (level, below)) in self.levels.iter().zip(&mut self.below).enumerate() {
            let number = index + 1;
            if load < level.clear.percent() {
                let since = *below.get_or_insert(now);
                let over = now.saturating_duration_since(since) >= level.abatement.duration();
                if number <= from && !over {
                    to = number;
                }
            } else {
                *below = None;
                if load >= level.set.percent() || number <= from {
                    to = number;
                }
            }
        }
        self.current = to;
        (to != from).then_some(Change { from, to })
    }

    /// The level now; 0 is "no congestion".
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// The name of a level; that of 0 is `normal`.
    #[must_use]
    pub fn name(&self, level: usize) -> &str {
        match level.checked_sub(1).and_then(|index| self.levels.get(index)) {
            Some(level) => &level.name,
            None => "normal",
        }
    }

    /// Number of levels above 0.
    #[must_use]
    pub fn count(&self) -> usize {
        self.levels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn levels_are_entered_at_once_and_left_after_the_abatement_time() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut levels = CongestionLevels::new(Level::diameter());
        assert_eq!(levels.update(53.9, at(0)), None);
        assert_eq!(levels.update(67.0, at(10)), Some(Change { from: 0, to: 3 }));
        assert_eq!(levels.name(3), "CL2");
        // Between clear and set: stays.
        assert_eq!(levels.update(64.0, at(20)), None);
        // Below the clear of CL2 (63), not of CL1 (57).
        assert_eq!(levels.update(58.0, at(30)), None);
        assert_eq!(levels.update(58.0, at(279)), None);
        assert_eq!(levels.update(58.0, at(280)), Some(Change { from: 3, to: 2 }));
        // A moment above the clear value restarts the abatement time.
        assert_eq!(levels.update(10.0, at(300)), None);
        assert_eq!(levels.update(59.0, at(400)), None);
        assert_eq!(levels.update(10.0, at(410)), None);
        assert_eq!(levels.update(10.0, at(659)), None);
        assert_eq!(levels.update(10.0, at(660)), Some(Change { from: 2, to: 0 }));
        assert_eq!(levels.name(0), "normal");
    }

    #[test]
    fn mistakes_in_levels_are_told() {
        let paths = |levels: Vec<Level>| -> Vec<String> {
            let mut faults = Faults::default();
            CongestionLevels::validate(&levels, &mut faults);
            faults.into_vec().into_iter().map(|fault| fault.path).collect()
        };
        let wrong = vec![Level::new("a", 50.0, 50.0), Level::new("b", 40.0, 39.0)];
        assert_eq!(paths(wrong), ["[0].clear", "[1].set", "[1].clear"]);
        let clear_falls = vec![Level::new("a", 50.0, 45.0), Level::new("b", 60.0, 40.0)];
        assert_eq!(paths(clear_falls), ["[1].clear"], "`set` rises");
    }

    proptest! {
        /// Whatever the load does: the level is never below what is set, and never changes downwards while
        /// the load is not below the level's clear value.
        #[test]
        fn never_lower_than_the_load_says(loads in proptest::collection::vec((0.0..100.0, 0_u64..400), 1..200)) {
            let mut now = Instant::now();
            let mut levels = CongestionLevels::new(Level::diameter());
            for (load, wait) in loads {
                now += Duration::from_millis(wait);
                let before = levels.current();
                levels.update(load, now);
                let set = Level::diameter().iter().filter(|level| load >= level.set.percent()).count();
                prop_assert!(levels.current() >= set);
                if levels.current() < before {
                    let left = &Level::diameter()[before - 1];
                    prop_assert!(load < left.clear.percent());
                }
            }
            for _ in 0..2 {
                now += Duration::from_millis(300);
                levels.update(0.0, now);
            }
            prop_assert_eq!(levels.current(), 0);
        }
    }
}
