//! Heart-beats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Heart-beats and what happens without them (TS 29.510 §5.2.2.3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct HeartBeat {
    /// Timer assigned to NFs that request none.
    #[schemars(extend("x-reload" = true))]
    pub default: Period,
    /// Shortest timer that an NF may request.
    #[schemars(extend("x-reload" = true))]
    pub min: Period,
    /// Longest timer that an NF may request.
    #[schemars(extend("x-reload" = true))]
    pub max: Period,
    /// Heart-beats that may be missed before an NF is suspended.
    #[schemars(extend("x-reload" = true))]
    pub missed: u32,
    /// Time after which a suspended NF is removed.
    #[schemars(extend("x-reload" = true))]
    pub remove_after: Period,
    /// Interval of the audit of heart-beats and subscriptions.
    pub audit_interval: Period,
}

impl Default for HeartBeat {
    fn default() -> Self {
        Self {
            default: Period::from_secs(30),
            min: Period::from_secs(1),
            max: Period::from_secs(3_600),
            missed: 2,
            remove_after: Period::from_secs(3_600),
            audit_interval: Period::from_secs(1),
        }
    }
}

impl HeartBeat {
    /// The timer for an NF that asks for `wanted` seconds.
    #[must_use]
    pub fn assign(&self, wanted: Option<u32>) -> u32 {
        let bound = |period: Period| u32::try_from(period.as_secs()).unwrap_or(u32::MAX).max(1);
        let (min, max) = (bound(self.min), bound(self.max));
        wanted.unwrap_or(bound(self.default)).clamp(min, max.max(min))
    }
}

impl Validate for HeartBeat {
    fn validate(&self, faults: &mut Faults) {
        if self.min > self.max {
            faults.at("min").say("is longer than max", "at most max");
        }
        if self.audit_interval.is_zero() {
            faults.at("auditInterval").say("is 0", "a period such as 1s");
        }
    }
}
