//! Admission of requests: by their headers alone, so that a refusal costs little.

use std::time::{Duration, Instant};

use ::sbi::Request;
use ::sbi::headers::{MaxRspTime, SbiHeader as _, SenderTimestamp, names};
use ::sbi::problem::{Cause, Problem};
use overload::{Admission, Offered};
use time::OffsetDateTime;

use super::priority;
use crate::shedder::Shedder;

/// Time by which the clock of a consumer may be ahead of ours before its request counts as late.
pub(super) const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// A request that asks for admission.
pub struct Offer<'a>(pub &'a Request);

impl Offered for Offer<'_> {
    fn priority(&self) -> u8 {
        priority(self.0)
    }

    /// TS 29.500 §6.11.2: `3gpp-Sbi-Max-Rsp-Time` counts from `3gpp-Sbi-Sender-Timestamp`, or from the receipt of the
    /// request where that header is absent.
    fn is_late(&self, waited: Duration) -> Option<bool> {
        let headers = self.0.headers();
        if !headers.contains(names::MAX_RSP_TIME) {
            return None;
        }
        let most = MaxRspTime::of(headers).ok().flatten()?.duration();
        let sent = SenderTimestamp::of(headers).ok().flatten();
        // The timestamp of a consumer whose clock is ahead gives no elapsed time.
        let passed = sent
            .and_then(|SenderTimestamp(sent)| Duration::try_from(OffsetDateTime::now_utc() - sent).ok())
            .map_or(Duration::ZERO, |passed| passed.saturating_sub(CLOCK_SKEW));
        Some(passed.max(waited) >= most)
    }
}

/// A request that has waited for less than the time that admission goes by: others have waited behind it.
pub(super) struct Ahead<'a, O> {
    pub(super) request: &'a Request,
    pub(super) offer: &'a O,
    /// `ageLimit`, by what the request itself has waited for.
    pub(super) age_limit: Duration,
}

impl<O: Offered> Offered for Ahead<'_, O> {
    fn priority(&self) -> u8 {
        self.offer.priority()
    }

    fn is_late(&self, _longest: Duration) -> Option<bool> {
        let own = waited(self.request, Instant::now());
        let too_old = !self.age_limit.is_zero() && own >= self.age_limit;
        self.offer.is_late(own).or(Some(too_old))
    }
}

/// Whether the consumer of a request has given it up (`3gpp-Sbi-Max-Rsp-Time`).
pub(super) fn is_late(request: &Request) -> bool {
    let now = Instant::now();
    Offer(request).is_late(waited(request, now)).unwrap_or_default()
}

/// Whether the consumer of a request still waits: it has neither left nor is past its `3gpp-Sbi-Max-Rsp-Time`.
#[must_use]
pub fn is_awaited(request: &Request) -> bool {
    !request.is_given_up() && !is_late(request)
}

/// An upper bound of the time that a request was queued for its worker, and the moment from which it counts.
#[must_use]
pub fn waited(request: &Request, now: Instant) -> Duration {
    request.waited + now.saturating_duration_since(request.received)
}

/// Admits or refuses a request of this class; a request without a class is served under any load.
pub fn admit(shedder: &Shedder, request: &Request, class: Option<usize>) -> Admission {
    if let Some(class) = class {
        return admit_as(shedder, request, class, &Offer(request));
    }
    let now = Instant::now();
    shedder.observe(now, waited(request, now));
    Admission::Admitted
}

/// As [`admit`], where the function itself gives requests their priorities.
pub fn admit_as(shedder: &Shedder, request: &Request, class: usize, message: &impl Offered) -> Admission {
    let now = Instant::now();
    shedder.admit(now, waited(request, now), class, message)
}

/// The answer to a request that is not admitted (TS 29.500 §6.4.2.3, §6.11.2); none to one that is.
#[must_use]
pub fn refusal(admission: Admission) -> Option<Problem> {
    match admission {
        Admission::Admitted => None,
        Admission::Refused => Some(Problem::new(Cause::NfCongestion).detail("discarded under overload")),
        Admission::Late => Some(
            Problem::new(Cause::TimedOutRequest)
                .detail("the request was queued here for longer than its 3gpp-Sbi-Max-Rsp-Time"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use ::sbi::{Body, Peer, RequestHead, Value};
    use http::Method;

    use super::*;

    fn request(headers: &[(&'static str, String)]) -> Request {
        let mut head = RequestHead::to(Method::GET, Value::from_static("/"));
        for (name, value) in headers {
            head.fields.append(*name, Value::new(value.as_bytes()).unwrap());
        }
        let address = ([127, 0, 0, 1], 1).into();
        Request {
            head,
            body: Body::empty(),
            peer: Rc::new(Peer {
                addr: address,
                local: address,
                tls: None,
                connection: 0,
                given_up: sbi::GivenUp::default(),
            }),
            received: Instant::now(),
            stream: 1,
            waited: Duration::ZERO,
        }
    }

    #[test]
    fn a_request_is_late_after_its_max_rsp_time() {
        let is_late = |headers: &[(&'static str, String)], millis| {
            Offer(&request(headers)).is_late(Duration::from_millis(millis))
        };
        let most = |millis: u32| ("3gpp-sbi-max-rsp-time", millis.to_string());
        let sent = |ago: f64| {
            let date = OffsetDateTime::now_utc() - Duration::from_secs_f64(ago);
            let value = SenderTimestamp(date).to_value().unwrap();
            ("3gpp-sbi-sender-timestamp", value.to_str().unwrap().to_owned())
        };
        assert_eq!(is_late(&[], 60_000), None, "no header gives a time");
        assert_eq!(is_late(&[most(500)], 499), Some(false));
        assert_eq!(is_late(&[most(500)], 500), Some(true));
        assert_eq!(is_late(&[most(500), sent(0.9)], 6), Some(false), "clocks differ");
        assert_eq!(is_late(&[most(500), sent(1.6)], 6), Some(true));
        let ahead = ("3gpp-sbi-sender-timestamp", {
            let date = OffsetDateTime::now_utc() + Duration::from_secs(60);
            SenderTimestamp(date)
                .to_value()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        });
        assert_eq!(is_late(&[most(500), ahead], 6), Some(false));
    }
}
