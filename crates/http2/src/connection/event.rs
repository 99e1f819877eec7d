//! What a connection reports to its owner.

use crate::body::Body;
use crate::error::Reason;
use crate::head::{RequestHead, ResponseHead};

/// A stream of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId {
    pub(super) number: u32,
    /// Its slot in the table of streams: a lookup compares one number.
    pub(super) slot: u32,
}

impl StreamId {
    /// The stream identifier on the wire (RFC 9113 §5.1.1).
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The header block of a request is whole (server).
    Request {
        /// The new stream.
        stream: StreamId,
        /// What the block said.
        head: RequestHead,
        /// No body comes. Otherwise [`Event::Body`], [`Event::TooLarge`] or [`Event::Reset`] follows.
        end: bool,
    },
    /// The header block is larger than permitted. A server answers with 431, and what still comes of the request is
    /// discarded. On a client the stream is reset already.
    Oversized {
        /// The stream; new to a server.
        stream: StreamId,
        /// The limit that was passed.
        what: Oversize,
    },
    /// The header block of the final response is whole (client). Informational responses are dropped.
    Response {
        /// The stream of the request.
        stream: StreamId,
        /// What the block said.
        head: ResponseHead,
        /// No body comes. Otherwise [`Event::Body`], [`Event::TooLarge`] or [`Event::Reset`] follows.
        end: bool,
    },
    /// The memory that the body of the stream takes grew, and the body is not whole at the end of this `receive`.
    Arriving {
        /// The stream.
        stream: StreamId,
        /// Bytes of memory held for its body now.
        bytes: usize,
    },
    /// The whole body: the peer ended its message. Trailers are decoded, checked and dropped.
    Body {
        /// The stream.
        stream: StreamId,
        /// The body.
        body: Body,
    },
    /// The body is larger than permitted, or announced to be. What came and what still comes is discarded.
    TooLarge {
        /// The stream.
        stream: StreamId,
    },
    /// The stream ended before its time: the peer reset it, or this side did because the peer broke a rule on it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The error code.
        reason: Reason,
        /// `false`: the peer says that it did not process the request: by REFUSED_STREAM, or by a GOAWAY whose last stream
        /// is an earlier one (then `reason` is `NO_ERROR`; RFC 9113 §8.7).
        processed: bool,
    },
    /// The whole outgoing message of the stream is in the output, or a server gave it up
    /// ([`Connection::give_up_unsent`](crate::Connection::give_up_unsent)). It follows each `respond` and `request`
    /// whose stream is not reset before.
    Sent {
        /// The stream.
        stream: StreamId,
    },
    /// The peer sent GOAWAY: it takes no more requests. [`Event::Reset`] follows for each that it did not process.
    GoAway {
        /// The error code.
        reason: Reason,
    },
    /// The peer answered a [`Connection::ping`](crate::Connection::ping).
    Pong {
        /// The payload of the PING.
        payload: [u8; 8],
    },
    /// The peer's settings came or changed: there may be room for more streams.
    Settings,
}

/// Which limit of header blocks was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Oversize {
    /// `max_header_list`.
    List,
    /// `max_header_fields`.
    Fields,
}

/// What happened on a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames received.
    pub frames: u64,
    /// Streams that the peer opened with a whole header block (server), or that this side opened (client).
    pub opened: u64,
    /// Streams of those that did not become a request: too many at once, or malformed.
    pub refused: u64,
    /// RST_STREAM frames received.
    pub resets_received: u64,
    /// Streams that this side reset because the peer broke a rule on them.
    pub error_resets: u64,
    /// Bytes of DATA received for streams that were reset or too large.
    pub discarded: u64,
}
