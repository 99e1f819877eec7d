//! Settings of admission by waiting time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How long requests may wait for a worker before it refuses the least important of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct WaitingTime {
    /// Waiting time that is aimed at under overload; 0s: no request is refused for its waiting time.
    pub target: Period,
    /// Requests must have waited longer than `target` for so long, without a pause, before any is refused.
    pub interval: Period,
    /// A request that has waited for so long is refused whatever its priority, because its consumer waits no longer.
    /// `3gpp-Sbi-Max-Rsp-Time`, where a request has it, counts instead. 0s: any age.
    pub age_limit: Period,
}

/// On a shared machine a process may not get its core for 10 ms and more, which refusing requests does not mend: so
/// the target is above that, and far below what consumers wait.
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
