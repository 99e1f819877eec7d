//! Subscriptions and notifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Period};

/// Subscriptions and their notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Subscriptions {
    /// Subscriptions at most; further ones are refused.
    pub max: usize,
    /// Subscriptions at most of one subscriber: of the NF instance (`reqNfInstanceId`) at one address, or of those
    /// from one address that name no instance. Further ones are answered 429.
    pub max_per_subscriber: usize,
    /// Subscriptions at most from one address (of IPv6: one /64), of whatever subscribers. Further ones are
    /// answered 429. Where all NFs subscribe through one SCP this has to be as much as `max`.
    pub max_per_source: usize,
    /// Bytes of a subscription at most.
    pub max_size: ByteSize,
    /// Longest validity; a subscription that asks for more, or for none, gets this.
    pub max_validity: Period,
    /// Longest validity of a subscription whose subscriber (`reqNfInstanceId`) is not registered, or not named.
    pub unregistered_validity: Period,
    /// A load is told only when it differs from the last one told by this much, in points of 100.
    pub load_threshold: u8,
    /// Tell changes as `profileChanges` instead of whole profiles.
    pub notify_changes: bool,
    /// Attempts per notification.
    pub attempts: u8,
    /// Pause before the second attempt; doubles each time.
    pub retry_pause: Period,
    /// How long a subscriber may take to answer a notification.
    pub timeout: Period,
    /// Notifications that may wait for one subscriber; older ones are dropped and counted.
    pub queue_per_subscriber: usize,
    /// Notifications that may wait for all; further ones are dropped and counted.
    pub queue_total: usize,
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
            timeout: Period::from_secs(2),
            queue_per_subscriber: 1_000,
            queue_total: 100_000,
        }
    }
}
