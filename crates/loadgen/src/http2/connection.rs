//! One HTTP/2 connection, either side.

use bytes::Bytes;

use super::frame::{self, Header};
use super::hpack::{Decoder, Encoder, Fields};
use super::send::SendHalf;

/// Which side of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens streams with requests.
    Client,
    /// Answers them.
    Server,
}

/// What this side allows its peer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Window of each stream, in bytes.
    pub stream_window: u32,
    /// Window of the connection, in bytes.
    pub connection_window: u32,
    /// Largest frame payload, in bytes; 16,384 is what most network functions announce.
    pub max_frame: u32,
    /// Streams the peer may have open (server side).
    pub max_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stream_window: 1 << 20,
            connection_window: 1 << 26,
            max_frame: 16_384,
            max_streams: 4096,
        }
    }
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `GET`, `PUT` …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a [u8],
    /// Host and port of the peer.
    pub authority: &'a str,
    /// Fields that repeat from request to request; indexed.
    pub stable: &'a [(&'a str, &'a str)],
    /// Fields of this request alone.
    pub own: &'a [(&'a str, &'a str)],
}

/// What arrived.
#[derive(Debug)]
pub enum Event<'a> {
    /// The peer's settings are known; a client may send requests.
    Ready,
    /// The head of a request or response.
    Head {
        /// Its stream.
        stream: u32,
        /// Its fields, pseudo-headers first.
        fields: &'a Fields,
        /// Whether no body follows.
        end: bool,
    },
    /// A piece of a body, where it lies in the input.
    Data {
        /// Its stream.
        stream: u32,
        /// The piece.
        bytes: &'a [u8],
        /// Whether it is the last.
        end: bool,
    },
    /// The peer gave the stream up.
    Reset {
        /// Its stream.
        stream: u32,
        /// Why (RFC 9113 §7).
        code: u32,
    },
    /// The peer will answer no stream after `last`.
    GoAway {
        /// The last stream the peer will process.
        last: u32,
        /// Why (RFC 9113 §7).
        code: u32,
    },
}

/// The peer broke the protocol; the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The connection did not begin with the preface of a client.
    #[error("the peer does not begin as an HTTP/2 client does")]
    Preface,
    /// A frame is larger than allowed or cut short.
    #[error("a frame has a wrong size")]
    FrameSize,
    /// A header block cannot be decoded.
    #[error("a header block cannot be decoded")]
    Compression,
    /// A flow-control window passed its limit.
    #[error("a flow-control window passed its limit")]
    FlowControl,
    /// A frame came where it may not.
    #[error("a frame came where it may not")]
    Order,
}

/// Where the parser is.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Preface,
    Frames,
    /// Inside a DATA frame: its bytes are handed over as they come.
    Data {
        stream: u32,
        left: usize,
        padding: usize,
        end: bool,
    },
}

/// The connection machine. Bytes from the socket go through [`Connection::next`]; bytes for the socket are
/// appended to [`Connection::out`].
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    reading: Reading,
    partial: Vec<u8>,
    block: Vec<u8>,
    block_of: Option<Header>,
    decoder: Decoder,
    fields: Fields,
    encoder: Encoder,
    send: SendHalf,
    consumed: u32,
    peer_streams: u32,
    next_stream: u32,
    ready: bool,
    closing: bool,
    scheme: &'static str,
    /// Bytes to be written to the socket; the caller removes what it wrote.
    pub out: Vec<u8>,
}

impl Connection {
    /// A new connection; its first bytes are already in `out`.
    #[must_use]
    pub fn new(role: Role, limits: Limits) -> Self {
        let mut out = Vec::with_capacity(4096);
        let client = role == Role::Client;
        if client {
            out.extend_from_slice(frame::PREFACE);
        }
        let of_role = if client {
            (frame::SETTING_ENABLE_PUSH, 0)
        } else {
            (frame::SETTING_MAX_CONCURRENT_STREAMS, limits.max_streams)
        };
        frame::put_settings(
            &mut out,
            &[
                of_role,
                (frame::SETTING_INITIAL_WINDOW_SIZE, limits.stream_window),
                (frame::SETTING_MAX_FRAME_SIZE, limits.max_frame),
            ],
        );
        if limits.connection_window > 65_535 {
            frame::put_number(
                &mut out,
                frame::WINDOW_UPDATE,
                0,
                limits.connection_window - 65_535,
            );
        }
        Self {
            limits,
            reading: if client { Reading::Frames } else { Reading::Preface },
            partial: Vec::new(),
            block: Vec::new(),
            block_of: None,
            decoder: Decoder::default(),
            fields: Fields::default(),
            encoder: Encoder::default(),
            send: SendHalf::default(),
            consumed: 0,
            // RFC 9113 §6.5.2 sets no limit until the peer does; 100 is its advice for the smallest.
            peer_streams: 100,
            next_stream: 1,
            ready: false,
            closing: false,
            scheme: "http",
            out,
        }
    }

    /// Requests are for `https` URIs.
    #[must_use]
    pub fn secure(mut self) -> Self {
        self.scheme = "https";
        self
    }

    /// How many requests may be without a complete answer (client side); 0 when none may be sent.
    #[must_use]
    pub fn streams(&self) -> usize {
        if self.ready && !self.closing && self.next_stream < 0x7fff_fff0 {
            self.peer_streams as usize
        } else {
            0
        }
    }

    /// Whether the peer's settings are known.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether the peer said that it takes no more streams.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Sends a request and returns its stream. The caller counts what it has open and keeps to
    /// [`Connection::streams`].
    pub fn request(&mut self, head: &RequestHead<'_>, body: &Bytes) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let start = self.begin_headers(stream, body.is_empty());
        self.encoder.stable(&mut self.out, ":method", head.method);
        self.encoder.stable(&mut self.out, ":scheme", self.scheme);
        self.encoder.stable(&mut self.out, ":authority", head.authority);
        self.encoder.literal(&mut self.out, ":path", head.path);
        for (name, value) in head.stable {
            self.encoder.stable(&mut self.out, name, value);
        }
        for (name, value) in head.own {
            self.encoder.literal(&mut self.out, name, value.as_bytes());
        }
        self.end_headers(start, body);
        stream
    }

    /// Answers the request of `stream` (server side).
    pub fn respond(
        &mut self,
        stream: u32,
        status: u16,
        stable: &[(&str, &str)],
        own: &[(&str, &str)],
        body: &Bytes,
    ) {
        let start = self.begin_headers(stream, body.is_empty());
        let mut digits = [0; 3];
        for (place, digit) in [100, 10, 1].into_iter().zip(&mut digits) {
            *digit = b'0' + (status / place % 10) as u8;
        }
        // Proof: the digits are ASCII by construction.
        self.encoder.stable(
            &mut self.out,
            ":status",
            std::str::from_utf8(&digits).unwrap_or("500"),
        );
        for (name, value) in stable {
            self.encoder.stable(&mut self.out, name, value);
        }
        for (name, value) in own {
            self.encoder.literal(&mut self.out, name, value.as_bytes());
        }
        self.end_headers(start, body);
    }

    /// Gives a stream up.
    pub fn reset(&mut self, stream: u32, code: u32) {
        frame::put_number(&mut self.out, frame::RST_STREAM, stream, code);
        self.send.forget(stream);
    }

    /// Sends `GOAWAY` without an error: no more streams are wanted.
    pub fn shut_down(&mut self) {
        frame::put_header(&mut self.out, 8, frame::GOAWAY, 0, 0);
        self.out.extend_from_slice(&[0; 8]);
        self.closing = true;
    }

    /// Whether body bytes wait for the peer to widen a window.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.send.is_blocked()
    }

    fn begin_headers(&mut self, stream: u32, end: bool) -> usize {
        let flags = frame::END_HEADERS | if end { frame::END_STREAM } else { 0 };
        let start = self.out.len();
        frame::put_header(&mut self.out, 0, frame::HEADERS, flags, stream);
        self.encoder.begin(&mut self.out);
        start
    }

    /// Writes the length of the block that began at `start`, then the body. The lab's header lists stay far
    /// below the 16 KiB that one frame may hold.
    fn end_headers(&mut self, start: usize, body: &Bytes) {
        let length = self.out.len() - start - frame::HEADER;
        debug_assert!(length <= frame::DEFAULT_PAYLOAD);
        let [_, a, b, c] = (length as u32).to_be_bytes();
        self.out[start..start + 3].copy_from_slice(&[a, b, c]);
        if !body.is_empty() {
            let stream = frame::number(&self.out[start + 5..]).unwrap_or_default();
            self.send.body(&mut self.out, stream, body);
        }
    }

    /// Takes bytes from `input` until there is an event; `None` when all bytes are taken without one.
    ///
    /// # Errors
    /// When the peer broke the protocol; the connection is then to be closed.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Event<'s>>, Failure> {
        loop {
            match self.reading {
                Reading::Preface => {
                    let missing = frame::PREFACE.len() - self.partial.len();
                    take(input, missing, &mut self.partial);
                    if !frame::PREFACE.starts_with(&self.partial) {
                        return Err(Failure::Preface);
                    }
                    if self.partial.len() < frame::PREFACE.len() {
                        return Ok(None);
                    }
                    self.partial.clear();
                    self.reading = Reading::Frames;
                }
                Reading::Data {
                    stream,
                    left,
                    padding,
                    end,
                } => {
                    if input.is_empty() && left + padding > 0 {
                        return Ok(None);
                    }
                    let length = left.min(input.len());
                    let (bytes, rest) = input.split_at(length);
                    let skipped = padding.min(rest.len());
                    *input = &rest[skipped..];
                    let (left, padding) = (left - length, padding - skipped);
                    let done = left + padding == 0;
                    self.reading = if done {
                        Reading::Frames
                    } else {
                        Reading::Data {
                            stream,
                            left,
                            padding,
                            end,
                        }
                    };
                    self.account(length + skipped);
                    return Ok(Some(Event::Data {
                        stream,
                        bytes,
                        end: done && end,
                    }));
                }
                Reading::Frames => {
                    let Some(frame) = self.frame(input)? else {
                        return Ok(None);
                    };
                    if let Some(found) = self.handle(frame)? {
                        return Ok(Some(self.event(found)));
                    }
                }
            }
        }
    }

    /// The next frame whose payload is complete, or the start of a DATA frame.
    fn frame<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Complete<'a>>, Failure> {
        if self.partial.is_empty()
            && let Some(header) = Header::read(input)
        {
            self.check(header)?;
            let size = frame::HEADER + header.length;
            if header.kind == frame::DATA && !header.has(frame::PADDED) {
                *input = &input[frame::HEADER..];
                return Ok(Some(Complete {
                    header,
                    payload: Payload::Here(&[]),
                }));
            }
            if input.len() >= size {
                let (whole, rest) = input.split_at(size);
                *input = rest;
                return Ok(Some(Complete {
                    header,
                    payload: Payload::Here(&whole[frame::HEADER..]),
                }));
            }
        }
        let missing = frame::HEADER.saturating_sub(self.partial.len());
        take(input, missing, &mut self.partial);
        let Some(header) = Header::read(&self.partial) else {
            return Ok(None);
        };
        self.check(header)?;
        let wanted = match header {
            Header {
                kind: frame::DATA, ..
            } if header.has(frame::PADDED) => header.length.min(1),
            Header {
                kind: frame::DATA, ..
            } => 0,
            _ => header.length,
        };
        let missing = frame::HEADER + wanted - self.partial.len();
        take(input, missing, &mut self.partial);
        let whole = self.partial.len() == frame::HEADER + wanted;
        Ok(whole.then_some(Complete {
            header,
            payload: Payload::Kept,
        }))
    }

    fn check(&self, header: Header) -> Result<(), Failure> {
        let continues = header.kind == frame::CONTINUATION;
        match self.block_of {
            _ if header.length > self.limits.max_frame as usize => Err(Failure::FrameSize),
            Some(open) if !continues || header.stream != open.stream => Err(Failure::Order),
            None if continues || header.kind == frame::PUSH_PROMISE => Err(Failure::Order),
            _ => Ok(()),
        }
    }

    /// Handles a frame; returns the event that it causes, if any.
    fn handle(&mut self, Complete { header, payload }: Complete<'_>) -> Result<Option<Found>, Failure> {
        let kept = match payload {
            Payload::Kept => std::mem::take(&mut self.partial),
            Payload::Here(_) => Vec::new(),
        };
        let payload = match payload {
            Payload::Here(bytes) => bytes,
            Payload::Kept => &kept[frame::HEADER..],
        };
        let found = self.act(header, payload)?;
        if kept.capacity() > 0 {
            self.partial = kept;
            self.partial.clear();
        }
        Ok(found)
    }

    fn act(&mut self, header: Header, payload: &[u8]) -> Result<Option<Found>, Failure> {
        let stream = header.stream;
        let end = header.has(frame::END_STREAM);
        match header.kind {
            frame::DATA => {
                let padding = if header.has(frame::PADDED) {
                    payload.first().copied()
                } else {
                    None
                };
                let overhead = usize::from(padding.is_some());
                let padding = usize::from(padding.unwrap_or(0));
                let left = header
                    .length
                    .checked_sub(padding + overhead)
                    .ok_or(Failure::FrameSize)?;
                self.account(overhead);
                self.reading = Reading::Data {
                    stream,
                    left,
                    padding,
                    end,
                };
                Ok(None)
            }
            frame::HEADERS => {
                let block = frame::unpadded(header, payload).ok_or(Failure::FrameSize)?;
                if header.has(frame::END_HEADERS) {
                    return self.head(stream, end, block).map(Some);
                }
                self.block.clear();
                self.block.extend_from_slice(block);
                self.block_of = Some(header);
                Ok(None)
            }
            frame::CONTINUATION => {
                let open = self.block_of.ok_or(Failure::Order)?;
                self.block.extend_from_slice(payload);
                if self.block.len() > 256 * 1024 {
                    return Err(Failure::FrameSize);
                }
                if !header.has(frame::END_HEADERS) {
                    return Ok(None);
                }
                self.block_of = None;
                let block = std::mem::take(&mut self.block);
                let found = self.head(stream, open.has(frame::END_STREAM), &block);
                self.block = block;
                found.map(Some)
            }
            frame::SETTINGS => self.settings(header, payload),
            frame::PING if !header.has(frame::ACK) => {
                let data = payload.first_chunk::<8>().ok_or(Failure::FrameSize)?;
                frame::put_header(&mut self.out, 8, frame::PING, frame::ACK, 0);
                self.out.extend_from_slice(data);
                Ok(None)
            }
            frame::WINDOW_UPDATE => {
                let by = frame::number(payload).ok_or(Failure::FrameSize)? & 0x7fff_ffff;
                self.send
                    .widen(stream, by, &mut self.out)
                    .then_some(None)
                    .ok_or(Failure::FlowControl)
            }
            frame::RST_STREAM => {
                let code = frame::number(payload).ok_or(Failure::FrameSize)?;
                self.send.forget(stream);
                Ok(Some(Found::Reset { stream, code }))
            }
            frame::GOAWAY => {
                let last = frame::number(payload).ok_or(Failure::FrameSize)? & 0x7fff_ffff;
                let code = payload
                    .get(4..)
                    .and_then(frame::number)
                    .ok_or(Failure::FrameSize)?;
                self.closing = true;
                Ok(Some(Found::GoAway { last, code }))
            }
            // PRIORITY, PING acknowledgements and kinds of later standards (RFC 9113 §4.1, §5.5).
            _ => Ok(None),
        }
    }

    fn head(&mut self, stream: u32, end: bool, block: &[u8]) -> Result<Found, Failure> {
        self.decoder
            .decode(block, &mut self.fields)
            .map_err(|_| Failure::Compression)?;
        Ok(Found::Head { stream, end })
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<Option<Found>, Failure> {
        if header.has(frame::ACK) {
            return Ok(None);
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Failure::FrameSize);
        }
        if !self.ready {
            self.peer_streams = u32::MAX;
        }
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                frame::SETTING_HEADER_TABLE_SIZE => self.encoder.resize(value as usize),
                frame::SETTING_MAX_CONCURRENT_STREAMS => self.peer_streams = value,
                frame::SETTING_INITIAL_WINDOW_SIZE if value > i32::MAX as u32 => {
                    return Err(Failure::FlowControl);
                }
                frame::SETTING_INITIAL_WINDOW_SIZE => self.send.set_initial(value, &mut self.out),
                frame::SETTING_MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                    return Err(Failure::FrameSize);
                }
                frame::SETTING_MAX_FRAME_SIZE => self.send.set_max_payload(value as usize),
                _ => {}
            }
        }
        frame::put_header(&mut self.out, 0, frame::SETTINGS, frame::ACK, 0);
        let first = !std::mem::replace(&mut self.ready, true);
        Ok(first.then_some(Found::Ready))
    }

    /// Gives the connection's window back when half of it is used. Stream windows are larger than any body
    /// the lab accepts and need no care.
    fn account(&mut self, bytes: usize) {
        self.consumed += bytes as u32;
        if self.consumed > self.limits.connection_window / 2 {
            frame::put_number(&mut self.out, frame::WINDOW_UPDATE, 0, self.consumed);
            self.consumed = 0;
        }
    }

    fn event(&self, found: Found) -> Event<'_> {
        match found {
            Found::Ready => Event::Ready,
            Found::Head { stream, end } => Event::Head {
                stream,
                fields: &self.fields,
                end,
            },
            Found::Reset { stream, code } => Event::Reset { stream, code },
            Found::GoAway { last, code } => Event::GoAway { last, code },
        }
    }
}

/// A frame and where its payload lies.
struct Complete<'a> {
    header: Header,
    payload: Payload<'a>,
}

enum Payload<'a> {
    /// In the caller's input.
    Here(&'a [u8]),
    /// In `partial`, behind the frame header.
    Kept,
}

/// An event without its borrow.
enum Found {
    Ready,
    Head { stream: u32, end: bool },
    Reset { stream: u32, code: u32 },
    GoAway { last: u32, code: u32 },
}

fn take(input: &mut &[u8], most: usize, into: &mut Vec<u8>) {
    let (now, rest) = input.split_at(most.min(input.len()));
    into.extend_from_slice(now);
    *input = rest;
}
