//! Settings of admission by waiting time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How long requests may wait for a worker before it refuses the least important of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct WaitingTime {
    /// Waiting time that the controller aims at under overload; 0s: no request is refused for its waiting time.
    pub target: Period,
    /// Time for which the waiting time of requests must stay above `target`, without a break, before any is refused.
    pub interval: Period,
    /// Waiting time from which a request is refused whatever its priority, because its consumer has given up. A
    /// `3gpp-Sbi-Max-Rsp-Time` of the request counts instead. 0s: no limit.
    pub age_limit: Period,
}

/// On a shared machine a process may not get its core for 10 ms and more, and refusals do not shorten that: the default
/// target is above it, and far below the timeouts of consumers.
impl Default for WaitingTime {
    fn default() -> Self {
        Self {
            target: Period::from_millis(20),
            interval: Period::from_millis(200),
            age_limit: Period::from_secs(3),
        }
    }
}

impl WaitingTime {
    /// Settings that never refuse.
    #[must_use]
    pub fn off() -> Self {
        Self {
            target: Period::from_secs(0),
            age_limit: Period::from_secs(0),
            ..Self::default()
        }
    }
}

impl Validate for WaitingTime {
    fn validate(&self, faults: &mut Faults) {
        if self.target.is_zero() {
            return;
        }
        if self.interval < self.target || self.interval < Period::from_millis(10) {
            faults.at("interval").say(
                format!("{} is too short for the target of {}", self.interval, self.target),
                "at least 10ms and at least `target`, better twenty times `target`",
            );
        }
        if !self.age_limit.is_zero() && self.age_limit <= self.target {
            faults.at("ageLimit").say(
                format!("{} is not above `target` ({})", self.age_limit, self.target),
                "more than `target`, or 0s",
            );
        }
    }
}
