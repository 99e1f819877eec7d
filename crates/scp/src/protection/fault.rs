//! Whose fault it is when a request to a producer ends badly. Producers are left alone for all consumers, so only
//! what is the producer's doing counts: what one consumer sends, or how long it waits, decides nothing for others.

use std::cell::Cell;
use std::time::{Duration, Instant};

use http::StatusCode;
use sbi::client::SendErrorKind;

/// What the end of a request says of its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// It answered.
    Well,
    /// Nothing: this SCP or the consumer has ended it.
    Nothing,
    /// It failed, and the request itself may be why.
    Doubtful,
    /// It fails, whatever is asked.
    Failed,
}

/// How a request was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Who has sent it to this SCP; see [`source`].
    pub(crate) source: u64,
    /// Whether the producer had the whole time that the policy gives it.
    pub(crate) whole_time: bool,
}

impl Says {
    /// What an answer of this status says.
    pub(crate) fn by_status(status: StatusCode, sent: Sent) -> Self {
        match status.as_u16() {
            500 | 502 | 503 => Self::Doubtful,
            // A producer that is told how long the consumer waits may say that this is over (TS 29.500 §6.11.2).
            504 if sent.whole_time => Self::Doubtful,
            504 => Self::Nothing,
            // An error of the request's own (501 as well) says nothing against the producer.
            _ => Self::Well,
        }
    }

    /// What it says that no answer came.
    pub(crate) fn by_error(error: &SendErrorKind, sent: Sent) -> Self {
        match error {
            SendErrorKind::Connect(_) => Self::Failed,
            SendErrorKind::Timeout if sent.whole_time => Self::Doubtful,
            // A request may be one that a producer breaks off, or whose answer is too large.
            SendErrorKind::Reset(_)
            | SendErrorKind::GoAway
            | SendErrorKind::Broken(_)
            | SendErrorKind::TooLarge => Self::Doubtful,
            // The consumer waited too short a time, this SCP has no room or no TLS, the request is none.
            SendErrorKind::Timeout
            | SendErrorKind::Overflow
            | SendErrorKind::OverRate
            | SendErrorKind::NoTls
            | SendErrorKind::Unsendable(_) => Self::Nothing,
        }
    }
}

/// Whom a producer has served and failed lately.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The last two that were served, and when.
    served: [Cell<Option<(u64, Instant)>>; 2],
    /// The first that it failed since it served somebody well.
    failed: Cell<Option<u64>>,
    /// Whether it has failed others as well since then.
    several: Cell<bool>,
}

impl Record {
    /// It has served a request.
    pub(crate) fn served(&self, source: u64, now: Instant) {
        let [last, other] = &self.served;
        if last.get().is_some_and(|(before, _)| before != source) {
            other.set(last.get());
        }
        last.set(Some((source, now)));
        self.failed.set(None);
        self.several.set(false);
    }

    /// It has failed a request that may be why itself. Answers whether that counts: when it failed another one as
    /// well, or has served nobody else for so long.
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

/// Who sends: by the name of its certificate where it shows one, else by its address. What a request says of its
/// sender can be anything.
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
    fn what_one_consumer_alone_meets_counts_only_when_nobody_else_is_served() {
        let (now, long) = (Instant::now(), Duration::from_secs(10));
        let record = Record::default();
        assert!(record.failed(1, long, now), "there is nobody else");
        record.served(1, now);
        assert!(record.failed(1, long, now));
        record.served(2, now);
        record.served(1, now);
        assert!(
            (0..100).all(|_| !record.failed(1, long, now)),
            "the other is served"
        );
        assert!(record.failed(1, long, now + long), "not for long any more");
        assert!(record.failed(2, long, now), "now both are failed");
        assert!(record.failed(1, long, now));
        record.served(2, now);
        assert!(!record.failed(1, long, now));
    }
}
