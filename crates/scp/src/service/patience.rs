//! How long a consumer waits for the answer (TS 29.500 §6.11.2): `3gpp-Sbi-Max-Rsp-Time`, counted from
//! `3gpp-Sbi-Sender-Timestamp` where that is there.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};
use sbi::headers::{MaxRspTime, SbiHeader, SenderTimestamp, names};
use sbi::problem::{Cause, Problem};
use time::OffsetDateTime;

use super::worker::Worker;
use crate::target::{self, Has};

/// How long a consumer waits, if it says so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    until: Option<(Instant, Duration)>,
    /// Whether producers are told what is left: a time without a date counts from when the message is sent.
    /// With a date both pass on as they are.
    told: bool,
}

impl Patience {
    fn of(most: Duration, told: bool, now: Instant) -> Self {
        Self {
            until: Some((now + most, most)),
            told,
        }
    }

    /// The time there is from the start; `None` when the consumer does not say.
    pub(super) fn most(&self) -> Option<Duration> {
        self.until.map(|(_, most)| most)
    }

    /// Whether the consumer waits no more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|(until, _)| now >= until)
    }

    /// Tells the next one how much time is left.
    pub(super) fn pass_on(&self, headers: &mut HeaderMap) {
        let Some((until, most)) = self.until.filter(|_| self.told) else {
            return;
        };
        let left = until.saturating_duration_since(Instant::now());
        // Milliseconds are what the header tells; none that has passed need not be told.
        if most.saturating_sub(left) >= Duration::from_millis(1) {
            let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            headers.insert(names::MAX_RSP_TIME, HeaderValue::from(left));
        }
    }
}

impl Worker {
    /// How long the consumer of a request waits.
    ///
    /// # Errors
    /// A problem and its reason, when a header cannot be read or the consumer waits no more.
    pub(super) fn patience(
        &self,
        headers: &HeaderMap,
        has: Has,
    ) -> Result<Patience, (&'static str, Problem)> {
        if !has.has(Has::MAX_RSP_TIME) {
            return Ok(Patience::default());
        }
        let most = target::header::<MaxRspTime>(headers).map_err(|problem| ("header", problem))?;
        let Some(most) = most.map(MaxRspTime::duration) else {
            return Ok(Patience::default());
        };
        let now = Instant::now();
        // A date that cannot be read, or of a consumer whose clock is ahead, says nothing.
        let settings = &self.live.config.late_requests;
        let sent = SenderTimestamp::of(headers).ok().flatten();
        let Some(SenderTimestamp(sent)) = sent.filter(|_| settings.detect) else {
            return Ok(Patience::of(
                most,
                !headers.contains_key(names::SENDER_TIMESTAMP),
                now,
            ));
        };
        let passed = Duration::try_from(OffsetDateTime::now_utc() - sent).unwrap_or_default();
        let left = most.saturating_sub(passed.saturating_sub(settings.clock_skew.duration()));
        if left.is_zero() {
            let problem = Problem::new(Cause::TimedOutRequest).detail(format!(
                "the request was sent {passed:?} ago and its sender waits {most:?}"
            ));
            return Err(("late", problem));
        }
        Ok(Patience::of(left, false, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_where_no_date_is() {
        let started = Instant::now();
        let long_ago = started.checked_sub(Duration::from_millis(400)).unwrap_or(started);
        let mut headers = HeaderMap::new();
        headers.insert(names::MAX_RSP_TIME, HeaderValue::from(1_000));
        Patience::of(Duration::from_secs(1), false, long_ago).pass_on(&mut headers);
        assert_eq!(headers[names::MAX_RSP_TIME], "1000");
        let waits = Patience::of(Duration::from_secs(1), true, long_ago);
        waits.pass_on(&mut headers);
        let told: u64 = headers[names::MAX_RSP_TIME].to_str().unwrap().parse().unwrap();
        assert!(told <= 600, "{told}");
        assert!(!waits.is_over(started) && waits.is_over(started + Duration::from_secs(1)));
        Patience::default().pass_on(&mut headers);
        assert!(!Patience::default().is_over(started));
    }
}
