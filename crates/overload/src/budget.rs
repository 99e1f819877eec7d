//! Bound of retries as a share of all requests.

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Percent, Validate};

use crate::rate::{Rate, RateLimiter};

/// Settings of the retry budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RetryBudgetSettings {
    /// Retries for each first try, in the long run.
    pub share: Percent,
    /// Retries per second that are always allowed, for times of little traffic.
    #[schemars(range(min = 0))]
    pub always_per_second: f64,
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self {
            share: Percent::new(20.0),
            always_per_second: 10.0,
        }
    }
}

impl Validate for RetryBudgetSettings {}

/// A budget of retries: each first try earns a share of one. When many requests fail, retries multiply the
/// load of overloaded peers; the budget limits that.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    earned_per_try: f64,
    balance: f64,
    always: RateLimiter,
}

/// Retries that may be saved up, so that a quiet hour does not allow a burst.
const SAVED: f64 = 100.0;

impl RetryBudget {
    /// Creates an empty budget.
    #[must_use]
    pub fn new(settings: &RetryBudgetSettings) -> Self {
        Self {
            earned_per_try: settings.share.fraction(),
            balance: 0.0,
            always: RateLimiter::new(Rate::per_second(settings.always_per_second)),
        }
    }

    /// A first try is sent.
    pub fn earn(&mut self) {
        self.balance = (self.balance + self.earned_per_try).min(SAVED);
    }

    /// Whether a retry may be sent; if so, it is paid for.
    pub fn spend(&mut self, now: Instant) -> bool {
        if self.balance >= 1.0 {
            self.balance -= 1.0;
            return true;
        }
        self.always.allow(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_tries() {
        let now = Instant::now();
        let mut budget = RetryBudget::new(&RetryBudgetSettings {
            share: Percent::new(20.0),
            always_per_second: 0.0,
        });
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn();
            retries += u32::from(budget.spend(now));
        }
        assert!((199..=200).contains(&retries), "{retries}");
        (0..10_000).for_each(|_| budget.earn());
        assert_eq!((0..1000).filter(|_| budget.spend(now)).count(), 100);
    }

    #[test]
    fn a_few_are_always_allowed() {
        let mut budget = RetryBudget::new(&RetryBudgetSettings::default());
        assert!(budget.spend(Instant::now()));
    }
}
