use std::fmt;

use http2::Reason;

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    /// What happened.
    pub kind: SendErrorKind,
    /// Whether the request may have had effect.
    pub processed: Processed,
}

/// What happened to a request without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendErrorKind {
    /// The peer could not be connected to; the text says why.
    Connect(String),
    /// The deadline passed.
    Timeout,
    /// Too many requests are pending for this peer, or the client has connections to `origins` others in use.
    Overflow,
    /// Every connection of the origin has sent what `maxRequestRate` allows.
    OverRate,
    /// An `https` origin, and no TLS is configured.
    NoTls,
    /// The peer reset the stream with this HTTP/2 error code.
    Reset(u32),
    /// The peer sent GOAWAY before it processed the request.
    GoAway,
    /// The connection broke; the text says how.
    Broken(String),
    /// The response was larger than the client accepts.
    TooLarge,
    /// The request cannot be sent as it is; the text says why.
    Unsendable(String),
}

/// Whether a request without a response may have had effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    /// It certainly had none: any request may be tried elsewhere.
    No,
    /// The request was sent, and no answer shows whether the peer processed it.
    Maybe,
}

impl SendError {
    pub(crate) fn not_sent(kind: SendErrorKind) -> Self {
        Self {
            kind,
            processed: Processed::No,
        }
    }

    pub(crate) fn unknown(kind: SendErrorKind) -> Self {
        Self {
            kind,
            processed: Processed::Maybe,
        }
    }

    /// The peer has ended the stream of a request that was sent, `processed` or not (RFC 9113 §8.7): with this reason, or
    /// without one by GOAWAY.
    pub(crate) fn of_stream(reason: Reason, processed: bool) -> Self {
        match (processed, reason) {
            (true, _) => Self::unknown(SendErrorKind::Reset(reason.code())),
            (false, Reason::NO_ERROR) => Self::not_sent(SendErrorKind::GoAway),
            (false, _) => Self::not_sent(SendErrorKind::Reset(reason.code())),
        }
    }

    /// Whether the peer said with REFUSED_STREAM that it has not processed the request. A proxy before it may say so of a
    /// request that it has passed on.
    #[must_use]
    pub fn is_refused_stream(&self) -> bool {
        self.kind == SendErrorKind::Reset(Reason::REFUSED_STREAM.code())
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SendErrorKind::Connect(why) => write!(f, "could not connect: {why}"),
            SendErrorKind::Timeout => f.write_str("no response before the deadline"),
            SendErrorKind::Overflow => f.write_str("too many requests are pending for this peer"),
            SendErrorKind::OverRate => {
                f.write_str("every connection to this peer is at its request rate (client.maxRequestRate)")
            }
            SendErrorKind::NoTls => f.write_str("the peer is https and no TLS client is configured"),
            SendErrorKind::Reset(code) => {
                write!(f, "the peer reset the stream ({:?})", Reason::from(*code))
            }
            SendErrorKind::GoAway => f.write_str("the peer closed the connection before it took the request"),
            SendErrorKind::Broken(why) => write!(f, "the connection broke: {why}"),
            SendErrorKind::TooLarge => f.write_str("the response is larger than accepted"),
            SendErrorKind::Unsendable(why) => write!(f, "the request cannot be sent: {why}"),
        }
    }
}

impl std::error::Error for SendError {}
