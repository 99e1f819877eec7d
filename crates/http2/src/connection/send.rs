//! Messages of this side: heads at once, bodies as the windows of the peer allow.

use std::time::{Duration, Instant};

use bytes::Buf;
use http::StatusCode;

use super::streams::{Receiving, Sending};
use super::{Connection, Event, NotOpened, Role, StreamId};
use crate::body::Body;
use crate::error::Reason;
use crate::fields::{Fields, name};
use crate::frame::{self, HEAD, Head, flag, kind};
use crate::head::{RequestHead, ResponseHead};
use crate::hpack::Encoder;
use crate::output::Output;

/// Bodies up to this size are copied behind their heads: that costs less than another segment of a `writev`.
const COPIED: usize = 1_024;

/// Room for this many streams with something to send is kept for the next ones.
const QUEUE_KEPT: usize = 8;

impl Connection {
    /// Answers a request; `false` if the stream is gone, because the peer or this side has reset it. A response to HEAD,
    /// 204 and 304 go without their body. Content-Length is added where there is a body and none.
    pub fn respond(&mut self, stream: StreamId, head: &ResponseHead, body: Body) -> bool {
        let Some(open) = self.streams.get(stream) else {
            return false;
        };
        if self.role == Role::Client || open.sending != Sending::Message {
            return false;
        }
        let no_content = head.status == StatusCode::NO_CONTENT;
        let bodiless = open.is_head || no_content || head.status == StatusCode::NOT_MODIFIED;
        let length = if no_content {
            0
        } else {
            missing_length(&head.fields, &body)
        };
        let body = if bodiless { Body::empty() } else { body };
        self.message(stream, body, length, |encoder, out| encoder.response(head, out));
        true
    }

    /// Asks for the body of a request whose sender waits to be asked (100, RFC 9110 §10.1.1); the answer follows. `false`
    /// if the stream is gone, or has an answer.
    pub fn ask_for_body(&mut self, stream: StreamId) -> bool {
        let Some(open) = self.streams.get(stream) else {
            return false;
        };
        if self.role == Role::Client || open.sending != Sending::Message {
            return false;
        }
        let out = self.output.buffer();
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        self.encoder
            .response(&ResponseHead::new(StatusCode::CONTINUE), out);
        frame::seal_headers(out, start, self.peer.max_frame, stream.number, false);
        true
    }

    /// Opens a stream for a request. Content-Length is added where there is a body and none.
    ///
    /// # Errors
    /// When there is no room for another stream, or the connection takes no more.
    pub fn request(&mut self, head: &RequestHead, body: Body) -> Result<StreamId, NotOpened> {
        if self.room() == 0 {
            return Err(NotOpened::why(self));
        }
        let number = self.next_own;
        self.next_own += 2;
        let window = i64::from(self.peer.initial_window);
        let (stream, opened) = self.streams.insert(number, Receiving::Head, window);
        opened.is_head = head.method() == http::Method::HEAD;
        self.counts.opened += 1;
        self.floods.sent_request();
        let length = missing_length(&head.fields, &body);
        self.message(stream, body, length, |encoder, out| encoder.request(head, out));
        Ok(stream)
    }

    /// Whether a part of the outgoing message of the stream is not in the output yet.
    #[must_use]
    pub fn is_sending(&mut self, stream: StreamId) -> bool {
        self.streams
            .get(stream)
            .is_some_and(|stream| stream.sending == Sending::Body)
    }

    /// What is to be written now: filled from the bodies as windows allow, up to [`Config::max_output`](crate::Config),
    /// one frame of each stream after the other.
    pub fn output(&mut self) -> &mut Output {
        if !self.ready.is_empty() {
            self.fill();
        }
        &mut self.output
    }

    /// Resets the streams whose bodies have been kept back by the peer's windows for longer than `limit`; how many.
    /// [`Event::Sent`] reports each to a server, [`Event::Reset`] to a client. It has to be called several times within
    /// `limit`: a stream counts from the first call that finds it blocked.
    pub fn give_up_unsent(&mut self, now: Instant, limit: Duration) -> u64 {
        if self.unsent == 0 {
            return 0;
        }
        let mut given_up = 0;
        let ids: Vec<StreamId> = self.streams.ids().collect();
        for stream in ids {
            let connection_blocks = self.send_window <= 0;
            let Some(open) = self.streams.get(stream) else {
                continue;
            };
            let left = open.outgoing.len();
            if left == 0 || (open.window > 0 && !connection_blocks) {
                open.stalled = None;
                continue;
            }
            match open.stalled {
                Some((since, before)) if before == left => {
                    if now.saturating_duration_since(since) >= limit {
                        given_up += 1;
                        self.give_up(stream);
                    }
                }
                _ => open.stalled = Some((now, left)),
            }
        }
        given_up
    }

    fn give_up(&mut self, stream: StreamId) {
        self.reset(stream, Reason::CANCEL);
        let event = match self.role {
            Role::Server => Event::Sent { stream },
            Role::Client => Event::Reset {
                stream,
                reason: Reason::CANCEL,
                processed: true,
            },
        };
        self.events.push_back(event);
    }

    /// Writes the head of a message, and of its body what fits.
    fn message(
        &mut self,
        stream: StreamId,
        body: Body,
        length: usize,
        encode: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let out = self.output.buffer();
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        encode(&mut self.encoder, out);
        if length > 0 {
            self.encoder.number(name::CONTENT_LENGTH, length as u64, out);
        }
        frame::seal_headers(out, start, self.peer.max_frame, stream.number, body.is_empty());
        if body.is_empty() {
            return self.sent(stream);
        }
        self.unsent += body.len();
        if let Some(open) = self.streams.get(stream) {
            open.outgoing = body;
            open.sending = Sending::Body;
        }
        let is_alone = self.ready.is_empty();
        self.enqueue(stream);
        if is_alone {
            self.fill();
        }
    }

    /// Puts a stream into the queue of those that can send, if it can.
    pub(super) fn enqueue(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.is_queued || stream.window <= 0 || stream.outgoing.is_empty() {
            return;
        }
        stream.is_queued = true;
        if self.ready.len() > 2 * self.streams.len() {
            // Streams that were reset while they waited.
            let mut ready = std::mem::take(&mut self.ready);
            ready.retain(|id| self.streams.get(*id).is_some());
            self.ready = ready;
        }
        self.ready.push_back(id);
    }

    fn fill(&mut self) {
        while self.output.len() < self.config.max_output && self.send_window > 0 {
            let Some(id) = self.ready.pop_front() else {
                // An idle connection keeps no long queue.
                if self.ready.capacity() > QUEUE_KEPT {
                    self.ready = std::collections::VecDeque::new();
                }
                return;
            };
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            stream.is_queued = false;
            let window = self.send_window.min(stream.window);
            let allowed = usize::try_from(window).unwrap_or(0).min(self.peer.max_frame);
            let len = allowed.min(stream.outgoing.len());
            if len == 0 {
                continue;
            }
            self.send_window -= len as i64;
            stream.window -= len as i64;
            self.unsent -= len;
            self.floods.sent_data(len);
            let is_all = len == stream.outgoing.len();
            let more = if is_all { stream.outgoing.take_rest() } else { None };
            let ends = is_all && more.is_none();
            let head = Head {
                len,
                kind: kind::DATA,
                flags: if ends { flag::END_STREAM } else { 0 },
                stream: id.number,
            };
            self.output.buffer().extend_from_slice(&head.bytes());
            put(&mut self.output, &mut stream.outgoing, len);
            if let Some(more) = more {
                self.unsent += more.len();
                stream.outgoing.continue_with(more);
            }
            if ends {
                stream.outgoing.clear();
                self.sent(id);
            } else {
                self.enqueue(id);
            }
        }
    }

    /// The whole message of a stream is in the output.
    fn sent(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get(id) {
            stream.sending = Sending::Nothing;
            self.events.push_back(Event::Sent { stream: id });
            self.remove_if_done(id);
        }
    }
}

/// Moves the next `len` bytes of a body to the output.
fn put(output: &mut Output, body: &mut Body, mut len: usize) {
    let is_small = len <= COPIED;
    while len > 0 {
        let Some(segment) = body.segments().first() else {
            return;
        };
        let part = len.min(segment.len());
        if is_small {
            output
                .buffer()
                .extend_from_slice(segment.get(..part).unwrap_or_default());
        } else if part == segment.len() {
            output.push(body.take_first());
            len -= part;
            continue;
        } else {
            output.push(segment.slice(..part));
        }
        body.advance(part);
        len -= part;
    }
}

/// The Content-Length that a head lacks, or 0.
fn missing_length(fields: &Fields, body: &Body) -> usize {
    match body.is_empty() || body.is_streamed() || fields.contains(name::CONTENT_LENGTH) {
        true => 0,
        false => body.len(),
    }
}
