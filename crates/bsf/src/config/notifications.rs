//! Notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How subscribers are told (TS 29.521 §4.2.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Notifications {
    /// Notifications that may wait; further ones are dropped and counted.
    pub queue: usize,
    /// Notifications on their way at the same time. Those of one subscription go one by one, in order.
    pub parallel: usize,
    /// Tries of one notification.
    pub attempts: u32,
    /// Pause before the second try; doubled before each further one.
    pub retry_pause: Period,
    /// How long a subscriber may take to answer.
    pub timeout: Period,
    /// Notifications a second, tries of failed ones included; further ones wait. 0: any number.
    pub rate: u32,
    /// Other instances of the subscriber's NF set that are tried, one after the other, when the subscriber does not
    /// answer: where its subscription came with a `3gpp-Sbi-Binding` for callbacks, by discovery at the NRF. 0: none.
    pub alternates: usize,
    /// Whether the targets of the SRV records (`_http._tcp`, `_https._tcp`) of a subscriber's name are tried as well,
    /// no more than `alternates`, when it does not answer (RFC 2782).
    pub dns_srv: bool,
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            queue: 10_000,
            parallel: 32,
            attempts: 3,
            retry_pause: Period::from_millis(500),
            timeout: Period::from_secs(2),
            rate: 0,
            alternates: 2,
            dns_srv: false,
        }
    }
}

impl Validate for Notifications {
    fn validate(&self, faults: &mut Faults) {
        for (name, value) in [("queue", self.queue), ("parallel", self.parallel)] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
