//! Notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Delivery of notifications to consumers: changed policies and terminations (TS 29.512 §4.2.3). Those of one
/// association are delivered in order. When a queue is full, the oldest notification is dropped; the consumer gets the
/// whole present policy of the association later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Notifications {
    /// Pending notifications of all associations.
    #[schemars(extend("x-reload" = true))]
    pub queue: usize,
    /// Bytes of the pending notifications of all associations.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes: ByteSize,
    /// Pending notifications of one association.
    #[schemars(extend("x-reload" = true))]
    pub queue_per_association: usize,
    /// Bytes of the pending notifications of one association.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes_per_association: ByteSize,
    /// Notifications in flight. Those of one association are sent one by one, in order.
    #[schemars(extend("x-reload" = true))]
    pub parallel: usize,
    /// Attempts of one notification.
    #[schemars(extend("x-reload" = true))]
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one, and varies by a quarter either way.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Longest pause, whatever `Retry-After` a consumer sends.
    #[schemars(extend("x-reload" = true))]
    pub max_retry_pause: Period,
    /// Time for a consumer to answer.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// Notifications per second, retries included; further ones stay queued. 0: unlimited.
    #[schemars(extend("x-reload" = true))]
    pub rate: u32,
    /// Redirections (307, 308) followed per attempt.
    #[schemars(extend("x-reload" = true))]
    pub redirects: u32,
}

impl Default for Notifications {
    fn default() -> Self {
        Self {
            queue: 10_000,
            queue_bytes: ByteSize::mib(64),
            queue_per_association: 100,
            queue_bytes_per_association: ByteSize::mib(1),
            parallel: 32,
            attempts: 3,
            retry_pause: Period::from_millis(500),
            max_retry_pause: Period::from_secs(30),
            timeout: Period::from_secs(2),
            rate: 0,
            redirects: 3,
        }
    }
}

impl Validate for Notifications {
    fn validate(&self, faults: &mut Faults) {
        for (name, value) in [
            ("queue", self.queue),
            ("queuePerAssociation", self.queue_per_association),
            ("parallel", self.parallel),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
