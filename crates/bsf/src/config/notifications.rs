//! Notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Delivery of notifications (TS 29.521 §4.2.8). When a queue is full, the oldest notification is dropped, first those
/// that a later one of the same binding replaces; the subscriber gets the present state of the binding later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Notifications {
    /// Pending notifications of all subscriptions.
    #[schemars(extend("x-reload" = true))]
    pub queue: usize,
    /// Bytes of the pending notifications of all subscriptions.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes: ByteSize,
    /// Pending notifications of one subscription.
    #[schemars(extend("x-reload" = true))]
    pub queue_per_subscription: usize,
    /// Bytes of the pending notifications of one subscription.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes_per_subscription: ByteSize,
    /// Notifications in flight. Those of one subscription are sent one by one, in order.
    #[schemars(extend("x-reload" = true))]
    pub parallel: usize,
    /// Attempts of one notification.
    #[schemars(extend("x-reload" = true))]
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one, and varies by a quarter either way.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Longest pause, whatever `Retry-After` a subscriber sends.
    #[schemars(extend("x-reload" = true))]
    pub max_retry_pause: Period,
    /// Time for a subscriber to answer.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// Notifications per second, retries included; further ones wait. 0: unlimited.
    #[schemars(extend("x-reload" = true))]
    pub rate: u32,
    /// Redirections (307, 308) followed per attempt.
    #[schemars(extend("x-reload" = true))]
    pub redirects: u32,
    /// Other places that are tried, one after the other, when the subscriber does not answer: instances of its NF set,
    /// where its subscription came with a `3gpp-Sbi-Binding` for callbacks, by discovery at the NRF. 0: none.
    #[schemars(extend("x-reload" = true))]
    pub alternates: usize,
    /// Whether the targets of the SRV records (`_http._tcp`, `_https._tcp`) of a subscriber's name are tried as well,
    /// no more than `alternates`, when it does not answer (RFC 2782).
    pub dns_srv: bool,
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            queue: 10_000,
            queue_bytes: ByteSize::mib(64),
            queue_per_subscription: 1_000,
            queue_bytes_per_subscription: ByteSize::mib(4),
            parallel: 32,
            attempts: 3,
            retry_pause: Period::from_millis(500),
            max_retry_pause: Period::from_secs(30),
            timeout: Period::from_secs(2),
            rate: 0,
            redirects: 3,
            alternates: 2,
            dns_srv: false,
        }
    }
}

impl Validate for Notifications {
    fn validate(&self, faults: &mut Faults) {
        for (name, value) in [
            ("queue", self.queue),
            ("queuePerSubscription", self.queue_per_subscription),
            ("parallel", self.parallel),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
