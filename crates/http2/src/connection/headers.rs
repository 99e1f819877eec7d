//! Header blocks: new requests, responses, trailers.

use std::time::Instant;

use http::{Method, StatusCode};

use super::message;
use super::settings::OwnSettings;
use super::streams::Receiving;
use super::{Connection, Ending, Event, Oversize, Role, StreamId};
use crate::error::{Fault, Flood, Reason};
use crate::fields::{Fields, name};
use crate::frame::{Head, MAX_STREAM, flag};
use crate::hpack::{Limits, Outcome};

/// A header block that goes on in other frames.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: u32,
    pub(super) since: Instant,
    ends_stream: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
    frames: usize,
}

impl Block {
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

/// A decoded header block.
struct Decoded {
    number: u32,
    ends_stream: bool,
    depends_on_itself: bool,
    fields: Fields,
    outcome: Outcome,
}

impl Connection {
    pub(super) fn headers(&mut self, head: Head, payload: &[u8], now: Instant) -> Result<(), Fault> {
        if head.stream.is_multiple_of(2) {
            return Err(Fault::protocol(
                "HEADERS on a stream of a server, which opens none",
            ));
        }
        let (fragment, depends_on_itself) = fragment(head, payload)?;
        if self.role == Role::Client {
            self.floods.block(&self.config)?;
        }
        let ends_stream = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.block_ends(head.stream, ends_stream, depends_on_itself, fragment);
        }
        self.block = Some(Block {
            number: head.stream,
            since: now,
            ends_stream,
            depends_on_itself,
            bytes: fragment.to_vec(),
            frames: 0,
        });
        Ok(())
    }

    /// A CONTINUATION frame begins: blocks are bounded in bytes and frames (CVE-2024-27316).
    pub(super) fn check_continuation(&mut self, head: Head) -> Result<(), Fault> {
        let Some(block) = &mut self.block else {
            return Err(Fault::protocol("CONTINUATION without HEADERS"));
        };
        block.frames += 1;
        let bytes = block.bytes.len() + head.len;
        if bytes > self.own.max_block || block.frames > OwnSettings::max_continuations(bytes) {
            return Err(Fault::flood(Flood::HeaderBlock));
        }
        Ok(())
    }

    pub(super) fn continuation(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        block.bytes.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(());
        }
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        self.block_ends(
            block.number,
            block.ends_stream,
            block.depends_on_itself,
            &block.bytes,
        )
    }

    /// A whole header block. It is decoded whatever becomes of it: the table is that of all streams.
    fn block_ends(
        &mut self,
        number: u32,
        ends_stream: bool,
        depends_on_itself: bool,
        block: &[u8],
    ) -> Result<(), Fault> {
        let open = self.streams.find(number);
        let is_wanted = match open {
            Some(id) => self
                .streams
                .get(id)
                .is_some_and(|s| s.receiving != Receiving::Nothing),
            None => self.role == Role::Server && number > self.last_peer,
        };
        let (limits, mut fields) = match is_wanted {
            true => (
                Limits {
                    list: self.config.max_header_list,
                    fields: self.config.max_header_fields,
                },
                Fields::with_capacity(24, 768),
            ),
            false => (Limits { list: 0, fields: 0 }, Fields::new()),
        };
        let decoded = self.decoder.decode(block, limits, &mut fields);
        let outcome =
            decoded.map_err(|_| Fault::of(Reason::COMPRESSION_ERROR, "a header block cannot be decoded"))?;
        let decoded = Decoded {
            number,
            ends_stream,
            depends_on_itself,
            fields,
            outcome,
        };
        match (open, self.role) {
            (Some(id), _) => self.block_on_stream(id, decoded),
            (None, Role::Server) if number > self.last_peer => self.request_received(decoded),
            (None, Role::Client) if number >= self.next_own => {
                Err(Fault::protocol("HEADERS on a stream that was never opened"))
            }
            (None, role) => {
                if !self.reset.may_hold(number) {
                    return Err(Fault::of(Reason::STREAM_CLOSED, "HEADERS on a closed stream"));
                }
                // Blocks of a server are counted already.
                if role == Role::Server {
                    self.floods.control(&self.config)?;
                }
                Ok(())
            }
        }
    }

    /// A header block on an open stream.
    fn block_on_stream(&mut self, id: StreamId, decoded: Decoded) -> Result<(), Fault> {
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if decoded.depends_on_itself {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        }
        match stream.receiving {
            Receiving::Nothing => self.stream_error(id, Reason::STREAM_CLOSED),
            Receiving::Head => self.response_received(id, decoded),
            Receiving::Body | Receiving::Rest => {
                if !decoded.ends_stream || message::trailers(decoded.outcome).is_err() {
                    return self.stream_error(id, Reason::PROTOCOL_ERROR);
                }
                self.body_ends(id)
            }
        }
    }

    fn request_received(&mut self, decoded: Decoded) -> Result<(), Fault> {
        let Decoded {
            number, ends_stream, ..
        } = decoded;
        if self.ending == Ending::Draining {
            // Beyond the last stream of our GOAWAY: the peer repeats it elsewhere.
            self.floods.control(&self.config)?;
            self.reset.push(number);
            return Ok(());
        }
        self.last_peer = number;
        self.counts.opened += 1;
        self.floods.opened();
        if self.streams() >= self.config.max_concurrent_streams {
            self.counts.refused += 1;
            self.write_reset(number, Reason::REFUSED_STREAM);
            return Ok(());
        }
        let outcome = decoded.outcome;
        let depends_on_itself = decoded.depends_on_itself;
        let window = i64::from(self.peer.initial_window);
        let receiving = |body| if ends_stream { Receiving::Nothing } else { body };
        if outcome.over && outcome.malformed.is_none() && !depends_on_itself {
            let method = decoded.fields.get(name::METHOD);
            let (stream, opened) = self.streams.insert(number, receiving(Receiving::Rest), window);
            opened.is_head = method.is_some_and(|method| method == "HEAD");
            let what = oversize(&outcome, self.config.max_header_fields);
            self.events.push_back(Event::Oversized { stream, what });
            return Ok(());
        }
        let (Ok((head, checked)), false) = (message::request(decoded.fields, outcome), depends_on_itself)
        else {
            self.counts.refused += 1;
            return self.error_on(number, Reason::PROTOCOL_ERROR);
        };
        let announced = checked.announced;
        if ends_stream && announced.unwrap_or(0) > 0 {
            self.counts.refused += 1;
            return self.error_on(number, Reason::PROTOCOL_ERROR);
        }
        if outcome.checked.is_none() {
            self.decoder.check(checked);
        }
        let (stream, opened) = self.streams.insert(number, receiving(Receiving::Body), window);
        (opened.is_head, opened.announced) = (*head.method() == Method::HEAD, announced);
        self.events.push_back(Event::Request {
            stream,
            head,
            end: ends_stream,
        });
        if announced.is_some_and(|announced| announced > self.config.max_body as u64) {
            self.too_large(stream);
        }
        Ok(())
    }

    fn response_received(&mut self, id: StreamId, decoded: Decoded) -> Result<(), Fault> {
        let ends_stream = decoded.ends_stream;
        if decoded.outcome.over && decoded.outcome.malformed.is_none() {
            let what = oversize(&decoded.outcome, self.config.max_header_fields);
            self.reset(id, Reason::CANCEL);
            self.events.push_back(Event::Oversized { stream: id, what });
            return Ok(());
        }
        let Ok((head, checked)) = message::response(decoded.fields, decoded.outcome) else {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        };
        let announced = checked.announced;
        if decoded.outcome.checked.is_none() {
            self.decoder.check(checked);
        }
        if head.status.is_informational() {
            return match ends_stream {
                true => self.stream_error(id, Reason::PROTOCOL_ERROR),
                false => Ok(()),
            };
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        // The length in the answer to HEAD, and in 304, is that of another body (RFC 9110 §8.6).
        let bodiless = stream.is_head || head.status == StatusCode::NOT_MODIFIED;
        if ends_stream && !bodiless && announced.unwrap_or(0) > 0 {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        }
        stream.announced = if bodiless { Some(0) } else { announced };
        stream.receiving = if ends_stream {
            Receiving::Nothing
        } else {
            Receiving::Body
        };
        let too_large = stream
            .announced
            .is_some_and(|announced| announced > self.config.max_body as u64);
        self.events.push_back(Event::Response {
            stream: id,
            head,
            end: ends_stream,
        });
        if ends_stream {
            self.remove_if_done(id);
        } else if too_large {
            self.too_large(id);
        }
        Ok(())
    }
}

fn oversize(outcome: &Outcome, max_fields: usize) -> Oversize {
    if outcome.fields > max_fields {
        Oversize::Fields
    } else {
        Oversize::List
    }
}

/// The part of the block in a HEADERS frame, and whether the stream depends on itself (RFC 9113 §6.2).
fn fragment(head: Head, payload: &[u8]) -> Result<(&[u8], bool), Fault> {
    let short = || Fault::frame_size("HEADERS is shorter than its flags say");
    let (mut rest, mut padding) = (payload, 0);
    if head.has(flag::PADDED) {
        let (length, after) = rest.split_first().ok_or_else(short)?;
        (rest, padding) = (after, usize::from(*length));
    }
    let mut depends_on_itself = false;
    if head.has(flag::PRIORITY) {
        let (priority, after) = rest.split_first_chunk::<5>().ok_or_else(short)?;
        let [a, b, c, d, _weight] = *priority;
        depends_on_itself = u32::from_be_bytes([a, b, c, d]) & MAX_STREAM == head.stream;
        rest = after;
    }
    let len = rest.len().checked_sub(padding);
    let len = len.ok_or_else(|| Fault::protocol("the padding is longer than the frame"))?;
    Ok((rest.get(..len).unwrap_or_default(), depends_on_itself))
}
