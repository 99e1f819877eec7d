//! The search for the knee: the highest rate that the function carries within the bounds.
//!
//! It doubles the rate until a step fails, then halves the gap. Pure: the caller makes the steps and records their
//! outcome.

/// A search in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp {
    best: Option<f64>,
    worst: Option<f64>,
    next: f64,
    steps: u32,
}

/// How close the highest that passed and the lowest that failed must come.
const CLOSE: f64 = 1.04;
/// Steps after which the search ends in any case.
const MOST_STEPS: u32 = 20;

impl Ramp {
    /// A search that begins with `start` transactions per second.
    #[must_use]
    pub fn new(start: f64) -> Self {
        Self {
            best: None,
            worst: None,
            next: start,
            steps: 0,
        }
    }

    /// The next rate to try; `None` when the knee is known well enough.
    #[must_use]
    pub fn next(&self) -> Option<f64> {
        let close = matches!((self.best, self.worst), (Some(best), Some(worst)) if worst / best <= CLOSE);
        (!close && self.steps < MOST_STEPS && self.next >= 1.0).then_some(self.next)
    }

    /// Records the outcome of the last step.
    pub fn record(&mut self, passed: bool) {
        self.steps += 1;
        if passed {
            self.best = Some(self.best.map_or(self.next, |best| best.max(self.next)));
        } else {
            self.worst = Some(self.worst.map_or(self.next, |worst| worst.min(self.next)));
        }
        self.next = match (self.best, self.worst) {
            (Some(best), None) => best * 2.0,
            (Some(best), Some(worst)) => (best * worst).sqrt(),
            (None, Some(worst)) => worst / 4.0,
            (None, None) => self.next,
        };
    }

    /// The highest rate that passed.
    #[must_use]
    pub fn best(&self) -> Option<f64> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn search(start: f64, knee: f64) -> (Option<f64>, u32) {
        let mut ramp = Ramp::new(start);
        while let Some(rate) = ramp.next() {
            ramp.record(rate <= knee);
        }
        (ramp.best(), ramp.steps)
    }

    proptest! {
        #[test]
        fn the_knee_is_found(start in 100.0_f64..5000.0, knee in 100.0_f64..200_000.0) {
            let (best, steps) = search(start, knee);
            let best = best.unwrap();
            prop_assert!(best <= knee && knee / best <= CLOSE * 1.001, "{best} for {knee}");
            prop_assert!(steps <= MOST_STEPS);
        }
    }

    #[test]
    fn what_carries_nothing_has_no_knee() {
        assert_eq!(search(1000.0, 0.0).0, None);
    }
}
