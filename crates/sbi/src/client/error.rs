use std::fmt;

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
    /// Too many requests wait for this peer, or too many peers are known.
    Overflow,
    /// An `https` origin, and no TLS is configured.
    NoTls,
    /// The peer reset the stream with this HTTP/2 error code.
    Reset(u32),
    /// The peer said goodbye (GOAWAY) before it looked at the request.
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
    /// It was sent, and what became of it is not known.
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

    /// What the engine says of a request that was sent (RFC 9113 §8.7).
    pub(crate) fn of_stream(error: &h2::Error) -> Self {
        match error.reason() {
            Some(h2::Reason::REFUSED_STREAM) => {
                Self::not_sent(SendErrorKind::Reset(h2::Reason::REFUSED_STREAM.into()))
            }
            // The engine reports a GOAWAY only to streams above the last one the peer says it has seen.
            Some(_) if error.is_go_away() && error.is_remote() => Self::not_sent(SendErrorKind::GoAway),
            Some(reason) => Self::unknown(SendErrorKind::Reset(reason.into())),
            None => Self::unknown(SendErrorKind::Broken(error.to_string())),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SendErrorKind::Connect(why) => write!(f, "could not connect: {why}"),
            SendErrorKind::Timeout => f.write_str("no response before the deadline"),
            SendErrorKind::Overflow => f.write_str("too many requests wait for this peer"),
            SendErrorKind::NoTls => f.write_str("the peer is https and no TLS client is configured"),
            SendErrorKind::Reset(code) => {
                write!(f, "the peer reset the stream ({:?})", h2::Reason::from(*code))
            }
            SendErrorKind::GoAway => f.write_str("the peer closed the connection before it took the request"),
            SendErrorKind::Broken(why) => write!(f, "the connection broke: {why}"),
            SendErrorKind::TooLarge => f.write_str("the response is larger than accepted"),
            SendErrorKind::Unsendable(why) => write!(f, "the request cannot be sent: {why}"),
        }
    }
}

impl std::error::Error for SendError {}
