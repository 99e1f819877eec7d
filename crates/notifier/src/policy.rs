//! Limits and timing of delivery.

use std::time::Duration;

/// Bound of pending notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Notifications.
    pub notifications: usize,
    /// Bytes of their bodies.
    pub bytes: usize,
}

impl Bound {
    pub(crate) fn exceeded_by(&self, notifications: usize, bytes: usize) -> bool {
        notifications > self.notifications.max(1) || bytes > self.bytes
    }
}

/// How notifications are delivered. A function makes it from its settings; it may change at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Of all subscriptions together.
    pub total: Bound,
    /// Of one subscription.
    pub per_subscription: Bound,
    /// Requests in flight at most.
    pub parallel: usize,
    /// Attempts of one notification at the callback URI.
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one. Varied by a quarter either way.
    pub pause: Duration,
    /// Longest pause, however many attempts were made and whatever `Retry-After` the subscriber sent.
    pub max_pause: Duration,
    /// Time for the subscriber to answer.
    pub timeout: Duration,
    /// Redirections followed per attempt.
    pub redirects: u32,
    /// Alternates tried in turn when no attempt was answered.
    pub alternates: usize,
    /// Requests per second, retries included. 0: unlimited.
    pub rate: u32,
}

impl Policy {
    /// The pause after a failed attempt, `attempts` so far; `dice` is a random number of 0 to 1.
    pub(crate) fn pause_after(&self, attempts: u32, retry_after: Option<Duration>, dice: f64) -> Duration {
        let doubled = self.pause.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        let varied = doubled
            .min(self.max_pause)
            .mul_f64(0.75 + 0.5 * dice.clamp(0.0, 1.0));
        varied
            .max(retry_after.unwrap_or_default())
            .min(self.max_pause.max(self.pause))
    }
}
