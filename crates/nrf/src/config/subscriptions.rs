//! Subscriptions and notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Subscriptions and their notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Subscriptions {
    /// Subscriptions at most; further ones are refused.
    #[schemars(extend("x-reload" = true))]
    pub max: usize,
    /// Subscriptions at most of one subscriber: of the NF instance (`reqNfInstanceId`) at one address, or of those
    /// from one address that name no instance. Further ones are answered 429.
    #[schemars(extend("x-reload" = true))]
    pub max_per_subscriber: usize,
    /// Subscriptions at most from one address (of IPv6: one /64), of whatever subscribers. Further ones are
    /// answered 429. Where all NFs subscribe through one SCP this has to be as much as `max`.
    #[schemars(extend("x-reload" = true))]
    pub max_per_source: usize,
    /// Bytes of a subscription at most.
    #[schemars(extend("x-reload" = true))]
    pub max_size: ByteSize,
    /// Longest validity; a subscription that asks for more, or for none, gets this.
    #[schemars(extend("x-reload" = true))]
    pub max_validity: Period,
    /// Longest validity of a subscription whose subscriber (`reqNfInstanceId`) is not registered, or not named.
    #[schemars(extend("x-reload" = true))]
    pub unregistered_validity: Period,
    /// A load is notified only when it differs from the last one notified by this much, in points of 100.
    #[schemars(extend("x-reload" = true))]
    pub load_threshold: u8,
    /// Notify changes as `profileChanges` instead of whole profiles.
    #[schemars(extend("x-reload" = true))]
    pub notify_changes: bool,
    /// Attempts per notification.
    #[schemars(extend("x-reload" = true))]
    pub attempts: u8,
    /// Pause before the second attempt; doubles before each further one, and varies by a quarter either way.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Longest pause, whatever `Retry-After` a subscriber sends.
    #[schemars(extend("x-reload" = true))]
    pub max_retry_pause: Period,
    /// Time for a subscriber to answer a notification.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// Notifications in flight. Those of one subscription are sent one by one, in order.
    #[schemars(extend("x-reload" = true))]
    pub parallel: usize,
    /// Notifications per second, retries included; further ones wait. 0: unlimited.
    #[schemars(extend("x-reload" = true))]
    pub rate: u32,
    /// Redirections (307, 308) of a notification followed per attempt, where `outgoing` permits.
    #[schemars(extend("x-reload" = true))]
    pub redirects: u32,
    /// Pending notifications of one subscription. When there is no room the oldest is dropped, first those that a
    /// later one of the same NF instance replaces; the subscriber gets the present state of the instance later.
    #[schemars(extend("x-reload" = true))]
    pub queue_per_subscriber: usize,
    /// Bytes of the pending notifications of one subscription.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes_per_subscriber: ByteSize,
    /// Pending notifications of all subscriptions.
    #[schemars(extend("x-reload" = true))]
    pub queue_total: usize,
    /// Bytes of the pending notifications of all subscriptions.
    #[schemars(extend("x-reload" = true))]
    pub queue_bytes: ByteSize,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self {
            max: 1_000,
            max_per_subscriber: 100,
            max_per_source: 500,
            max_size: ByteSize::kib(64),
            max_validity: Period::from_secs(24 * 3_600),
            unregistered_validity: Period::from_secs(3_600),
            load_threshold: 10,
            notify_changes: false,
            attempts: 3,
            retry_pause: Period::from_millis(200),
            max_retry_pause: Period::from_secs(30),
            timeout: Period::from_secs(2),
            parallel: 1_000,
            rate: 0,
            redirects: 3,
            queue_per_subscriber: 1_000,
            queue_bytes_per_subscriber: ByteSize::mib(16),
            queue_total: 100_000,
            queue_bytes: ByteSize::mib(256),
        }
    }
}

impl Validate for Subscriptions {
    fn validate(&self, faults: &mut Faults) {
        if self.load_threshold > 100 {
            faults.at("loadThreshold").say(
                "is above 100, so that no change of load is ever notified",
                "0 to 100",
            );
        }
        for (key, zero) in [
            ("attempts", self.attempts == 0),
            ("parallel", self.parallel == 0),
            ("queuePerSubscriber", self.queue_per_subscriber == 0),
            ("queueTotal", self.queue_total == 0),
        ] {
            if zero {
                faults
                    .at(key)
                    .say("is 0, so that nothing is notified", "at least 1");
            }
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "a period such as 2s");
        }
        if self.max_validity.is_zero() {
            faults.at("maxValidity").say("is 0", "a period such as 24h");
        }
    }
}
