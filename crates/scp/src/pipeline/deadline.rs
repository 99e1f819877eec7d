//! Step 6, deadline: the timeout of the consumer (TS 29.500 §6.11.2): `3gpp-Sbi-Max-Rsp-Time`, counted from
//! `3gpp-Sbi-Sender-Timestamp` if the request has it.

use std::time::{Duration, Instant};

use routing::target::{self, Has};
use sbi::Fields;
use sbi::headers::{MaxRspTime, SbiHeader, SenderTimestamp, names};
use sbi::problem::{Cause, Problem};
use time::OffsetDateTime;

use super::message::Step;
use crate::config::LateRequests;
use crate::refusal::Refusal;

/// The deadline of the consumer, if the request names one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deadline {
    until: Option<(Instant, Duration)>,
    /// Whether the producer gets the remaining time: without a timestamp it counts from the sending of the message.
    /// With a timestamp both headers are forwarded unchanged.
    shortened: bool,
}

impl Deadline {
    /// The deadline of a request with these headers.
    pub(super) fn of(headers: &Fields, has: Has, settings: &LateRequests) -> Step<Self> {
        if !has.has(Has::MAX_RSP_TIME) {
            return Ok(Self::default());
        }
        let most = target::header::<MaxRspTime>(headers).map_err(|problem| Refusal::Header.with(problem))?;
        let Some(most) = most.map(MaxRspTime::duration) else {
            return Ok(Self::default());
        };
        let now = Instant::now();
        // An invalid timestamp, or one in the future, is ignored.
        let sent = SenderTimestamp::of(headers).ok().flatten();
        let Some(SenderTimestamp(sent)) = sent.filter(|_| settings.detect) else {
            return Ok(Self::after(most, !headers.contains(names::SENDER_TIMESTAMP), now));
        };
        let passed = Duration::try_from(OffsetDateTime::now_utc() - sent).unwrap_or_default();
        let left = most.saturating_sub(passed.saturating_sub(settings.clock_skew.duration()));
        if left.is_zero() {
            let problem = Problem::new(Cause::TimedOutRequest).detail(format!(
                "the request was sent {passed:?} ago, its sender waits at most {most:?}"
            ));
            return Err(Refusal::Late.with(problem));
        }
        Ok(Self::after(left, false, now))
    }

    fn after(most: Duration, shortened: bool, now: Instant) -> Self {
        Self {
            until: Some((now + most, most)),
            shortened,
        }
    }

    /// The instant of the deadline; `None` without one.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until.map(|(until, _)| until)
    }

    /// The remaining time; `None` without a deadline.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(now))
    }

    /// Whether the deadline has passed.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|(until, _)| now >= until)
    }

    /// Writes the remaining time into the headers of a request that is sent now.
    pub(super) fn pass_on(&self, headers: &mut Fields) {
        let Some((until, most)) = self.until.filter(|_| self.shortened) else {
            return;
        };
        let left = until.saturating_duration_since(Instant::now());
        // The header is in milliseconds; it stays if less than one has passed.
        if most.saturating_sub(left) >= Duration::from_millis(1) {
            let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            headers.set_number(names::MAX_RSP_TIME, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_date_is_shortened_by_what_has_passed() {
        let started = Instant::now();
        let long_ago = started.checked_sub(Duration::from_millis(400)).unwrap_or(started);
        let mut headers = Fields::new();
        headers.set_number(names::MAX_RSP_TIME, 1_000);
        Deadline::after(Duration::from_secs(1), false, long_ago).pass_on(&mut headers);
        assert_eq!(headers.get(names::MAX_RSP_TIME).unwrap(), "1000");
        let deadline = Deadline::after(Duration::from_secs(1), true, long_ago);
        deadline.pass_on(&mut headers);
        let left: u64 = headers
            .get(names::MAX_RSP_TIME)
            .unwrap()
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(left <= 600, "{left}");
        assert!(!deadline.is_over(started) && deadline.is_over(started + Duration::from_secs(1)));
        Deadline::default().pass_on(&mut headers);
        assert!(!Deadline::default().is_over(started));
    }
}
