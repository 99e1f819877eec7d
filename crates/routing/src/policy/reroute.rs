//! Whether a failed attempt may be followed by another (TS 29.500 §6.10.8).
//!
//! A request that may have had an effect is not sent to a second producer unless it is idempotent
//! (RFC 9110 §9.2.2) or the policy allows it (`rerouteUnsafe`).

use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use super::table::ServicePolicy;

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The producer was unreachable, or refused the request before processing it.
    NotProcessed,
    /// The request was sent and not answered: it may have had an effect.
    Unknown,
    /// The producer answered with this status, and the policy says whether another may be tried.
    Status(StatusCode, bool),
}

/// An attempt that failed.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Method of the request.
    pub method: &'a Method,
    /// How it failed.
    pub failure: Failure,
}

/// Attempts and time that a request has left.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    attempts_left: u8,
    until: Instant,
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try another producer.
    TryAnother,
    /// Another producer would fail alike, or a second attempt is unsafe.
    NotAllowed,
    /// The attempts are used up.
    NoAttemptLeft,
    /// The time is used up.
    NoTimeLeft,
}

impl Budget {
    /// The budget of a request whose first attempt begins at `now`; at `deadline` the consumer no longer waits
    /// (`3gpp-Sbi-Max-Rsp-Time`, TS 29.500 §6.11.2).
    #[must_use]
    pub fn new(policy: &ServicePolicy, deadline: Option<Instant>, now: Instant) -> Self {
        let total = now + policy.total_timeout();
        Self {
            attempts_left: policy.attempts,
            until: deadline.map_or(total, |deadline| deadline.min(total)),
        }
    }

    /// Takes an attempt and returns its timeout; `None` when attempts or time are used up.
    pub fn take(&mut self, policy: &ServicePolicy, now: Instant) -> Option<Duration> {
        let left = self.left(now);
        if left.is_zero() {
            return None;
        }
        self.attempts_left = self.attempts_left.checked_sub(1)?;
        Some(left.min(policy.response_timeout()))
    }

    /// Returns the time left at `now`.
    #[must_use]
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// Decides what follows when `attempt` failed at `now`.
    #[must_use]
    pub fn after(&self, attempt: Attempt<'_>, policy: &ServicePolicy, now: Instant) -> Verdict {
        let allowed = match attempt.failure {
            Failure::NotProcessed => true,
            Failure::Unknown => attempt.method.is_idempotent() || policy.reroute_unsafe,
            // The producer answered, so the request had no effect; the configuration decides about another
            // attempt.
            Failure::Status(_, reroutes) => reroutes,
        };
        if !allowed {
            Verdict::NotAllowed
        } else if self.attempts_left == 0 {
            Verdict::NoAttemptLeft
        } else if now >= self.until {
            Verdict::NoTimeLeft
        } else {
            Verdict::TryAnother
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(method: &Method, failure: Failure, policy: &ServicePolicy) -> Verdict {
        let now = Instant::now();
        Budget::new(policy, None, now).after(Attempt { method, failure }, policy, now)
    }

    #[test]
    fn what_may_have_had_effect_is_not_repeated() {
        let policy = ServicePolicy::default();
        assert_eq!(
            after(&Method::POST, Failure::NotProcessed, &policy),
            Verdict::TryAnother
        );
        assert_eq!(
            after(&Method::POST, Failure::Unknown, &policy),
            Verdict::NotAllowed
        );
        assert_eq!(
            after(&Method::PATCH, Failure::Unknown, &policy),
            Verdict::NotAllowed
        );
        assert_eq!(
            after(&Method::PUT, Failure::Unknown, &policy),
            Verdict::TryAnother
        );
        let bold = ServicePolicy {
            reroute_unsafe: true,
            ..policy
        };
        assert_eq!(after(&Method::POST, Failure::Unknown, &bold), Verdict::TryAnother);
    }

    #[test]
    fn answers_are_rerouted_where_the_policy_says_so() {
        let policy = ServicePolicy::default();
        for (reroutes, expected) in [(true, Verdict::TryAnother), (false, Verdict::NotAllowed)] {
            let failure = Failure::Status(StatusCode::SERVICE_UNAVAILABLE, reroutes);
            assert_eq!(after(&Method::POST, failure, &policy), expected);
        }
    }

    #[test]
    fn attempts_and_time_are_bounded() {
        let policy = ServicePolicy {
            attempts: 2,
            response_timeout_ms: 1_000,
            total_timeout_ms: 1_500,
            ..Default::default()
        };
        let start = Instant::now();
        let lost = Attempt {
            method: &Method::GET,
            failure: Failure::Unknown,
        };
        let mut budget = Budget::new(&policy, None, start);
        assert_eq!(budget.take(&policy, start), Some(Duration::from_millis(1_000)));
        let later = start + Duration::from_millis(1_000);
        assert_eq!(budget.after(lost, &policy, later), Verdict::TryAnother);
        assert_eq!(budget.take(&policy, later), Some(Duration::from_millis(500)));
        assert_eq!(budget.after(lost, &policy, later), Verdict::NoAttemptLeft);
        assert_eq!(budget.take(&policy, later), None);

        let hasty = Budget::new(&policy, Some(start + Duration::from_millis(100)), start);
        assert_eq!(
            hasty.after(lost, &policy, start + Duration::from_millis(100)),
            Verdict::NoTimeLeft
        );
    }
}
