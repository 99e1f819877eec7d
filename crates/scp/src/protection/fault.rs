//! Attribution of failed requests. An ejection concerns all consumers, so only faults of the producer count: contents
//! and timeouts of one consumer's requests must not eject a producer for others.

use std::cell::Cell;
use std::time::{Duration, Instant};

use http::StatusCode;
use sbi::client::SendErrorKind;

/// Verdict about the producer from the outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// The producer answered well.
    Well,
    /// No verdict: this SCP or the consumer ended the request.
    Nothing,
    /// The producer failed, perhaps because of the request itself.
    Doubtful,
    /// The producer failed independently of the request.
    Failed,
}

/// How a request was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Source of the request; see [`source`].
    pub(crate) source: u64,
    /// Whether the producer had the whole timeout of the policy.
    pub(crate) whole_time: bool,
}

impl Says {
    /// Returns the verdict of an answer by its status.
    pub(crate) fn by_status(status: StatusCode, sent: Sent) -> Self {
        match status.as_u16() {
            500 | 502 | 503 => Self::Doubtful,
            // A producer that gets the deadline of the consumer may report that it has passed (TS 29.500 §6.11.2).
            504 if sent.whole_time => Self::Doubtful,
            504 => Self::Nothing,
            // Errors of the request itself (501 as well) do not count against the producer.
            _ => Self::Well,
        }
    }

    /// Returns the verdict of a request without an answer.
    pub(crate) fn by_error(error: &SendErrorKind, sent: Sent) -> Self {
        match error {
            SendErrorKind::Connect(_) => Self::Failed,
            SendErrorKind::Timeout if sent.whole_time => Self::Doubtful,
            // The request itself may cause a reset or a too large answer.
            SendErrorKind::Reset(_)
            | SendErrorKind::GoAway
            | SendErrorKind::Broken(_)
            | SendErrorKind::TooLarge => Self::Doubtful,
            // A short timeout of the consumer, no capacity or no TLS in this SCP, an invalid request.
            SendErrorKind::Timeout
            | SendErrorKind::Overflow
            | SendErrorKind::OverRate
            | SendErrorKind::NoTls
            | SendErrorKind::Unsendable(_) => Self::Nothing,
        }
    }
}

/// Sources that a producer has served and failed recently.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The last two served sources, with the time.
    served: [Cell<Option<(u64, Instant)>>; 2],
    /// The first failed source since the last success.
    failed: Cell<Option<u64>>,
    /// Whether it has failed further sources since then.
    several: Cell<bool>,
}

impl Record {
    /// Records a success.
    pub(crate) fn served(&self, source: u64, now: Instant) {
        let [last, other] = &self.served;
        if last.get().is_some_and(|(before, _)| before != source) {
            other.set(last.get());
        }
        last.set(Some((source, now)));
        self.failed.set(None);
        self.several.set(false);
    }

    /// Records a failure that the request itself may have caused. Returns whether it counts: if the producer failed
    /// another source as well, or has served no other source for `long`.
    pub(crate) fn failed(&self, source: u64, long: Duration, now: Instant) -> bool {
        match self.failed.get() {
            None => self.failed.set(Some(source)),
            Some(first) if first != source => self.several.set(true),
            Some(_) => {}
        }
        let serves_others = self
            .served
            .iter()
            .filter_map(Cell::get)
            .any(|(served, at)| served != source && now.saturating_duration_since(at) < long);
        self.several.get() || !serves_others
    }
}

/// Returns the source of a request: the name of the client certificate, else the address. Headers do not count, because
/// a sender can forge them.
pub(crate) fn source(peer: &sbi::Peer, hasher: &ahash::RandomState) -> u64 {
    let shown = peer.tls.as_ref().filter(|tls| tls.certificate.is_some());
    match shown.and_then(|tls| tls.names.first()) {
        Some(name) => hasher.hash_one(name),
        None => hasher.hash_one(peer.addr.ip().to_canonical()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Sent = Sent {
        source: 1,
        whole_time: true,
    };
    const CUT: Sent = Sent {
        source: 1,
        whole_time: false,
    };

    #[test]
    fn what_each_end_says() {
        use Says::{Doubtful, Failed, Nothing, Well};
        for (status, whole, cut) in [
            (200, Well, Well),
            (307, Well, Well),
            (400, Well, Well),
            (403, Well, Well),
            (404, Well, Well),
            (413, Well, Well),
            (429, Well, Well),
            (431, Well, Well),
            (500, Doubtful, Doubtful),
            (501, Well, Well),
            (502, Doubtful, Doubtful),
            (503, Doubtful, Doubtful),
            (504, Doubtful, Nothing),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let says = (Says::by_status(status, WHOLE), Says::by_status(status, CUT));
            assert_eq!(says, (whole, cut), "{status}");
        }
        let text = || "why".to_owned();
        for (error, whole, cut) in [
            (SendErrorKind::Connect(text()), Failed, Failed),
            (SendErrorKind::Timeout, Doubtful, Nothing),
            (SendErrorKind::Overflow, Nothing, Nothing),
            (SendErrorKind::OverRate, Nothing, Nothing),
            (SendErrorKind::NoTls, Nothing, Nothing),
            (SendErrorKind::Reset(2), Doubtful, Doubtful),
            (SendErrorKind::GoAway, Doubtful, Doubtful),
            (SendErrorKind::Broken(text()), Doubtful, Doubtful),
            (SendErrorKind::TooLarge, Doubtful, Doubtful),
            (SendErrorKind::Unsendable(text()), Nothing, Nothing),
        ] {
            let says = (Says::by_error(&error, WHOLE), Says::by_error(&error, CUT));
            assert_eq!(says, (whole, cut), "{error:?}");
        }
    }

    #[test]
    fn failures_of_one_source_count_only_while_no_other_is_served() {
        let (now, long) = (Instant::now(), Duration::from_secs(10));
        let record = Record::default();
        assert!(record.failed(1, long, now), "there is no other source");
        record.served(1, now);
        assert!(record.failed(1, long, now));
        record.served(2, now);
        record.served(1, now);
        assert!(
            (0..100).all(|_| !record.failed(1, long, now)),
            "the other source is served"
        );
        assert!(
            record.failed(1, long, now + long),
            "the other source was served too long ago"
        );
        assert!(record.failed(2, long, now), "both sources fail");
        assert!(record.failed(1, long, now));
        record.served(2, now);
        assert!(!record.failed(1, long, now));
    }
}
