//! Frames of the peer, one after the other.

use std::time::Instant;

use super::input::{Data, Expected};
use super::streams::{Receiving, Sending};
use super::{Connection, Ending, Event, MAX_EVENTS, Role, SHUTDOWN_PING, StreamId};
use crate::error::{Fault, Reason};
use crate::frame::{self, Head, MAX_WINDOW, flag, kind};

impl Connection {
    /// Handles what came; how much of it was taken.
    pub(super) fn handle(&mut self, bytes: &[u8], now: Instant) -> Result<usize, Fault> {
        let mut rest = bytes;
        if !self.input.has_preface() {
            if !self.input.take_preface(&mut rest) {
                let fault = Fault::protocol("the first bytes are not the preface of HTTP/2");
                return Err(Fault {
                    is_preface: true,
                    ..fault
                });
            }
            if !self.input.has_preface() {
                return Ok(bytes.len());
            }
            self.send_settings();
        }
        let mut frames = 0;
        loop {
            match self.input.expected {
                Expected::Head => {
                    let enough =
                        frames >= self.config.max_frames_per_receive || self.events.len() >= MAX_EVENTS;
                    if rest.is_empty() || enough || !self.takes_input() || self.ending == Ending::Over {
                        break;
                    }
                    let Some(head) = self.input.take_head(&mut rest) else {
                        break;
                    };
                    frames += 1;
                    self.counts.frames += 1;
                    self.input.expected = self.begin(head)?;
                }
                Expected::Payload(head) => {
                    let Some(payload) = self.input.take_payload(head.len, &mut rest) else {
                        break;
                    };
                    self.input.frame_ends();
                    self.frame(head, payload.bytes(), now)?;
                }
                Expected::PadLength(data) => {
                    let Some((padding, after)) = rest.split_first() else {
                        break;
                    };
                    rest = after;
                    self.pad_length(data, usize::from(*padding))?;
                }
                Expected::Data(data) => {
                    if data.left + data.padding > 0 && rest.is_empty() {
                        break;
                    }
                    self.data(data, &mut rest)?;
                }
                Expected::Skipped { left, timed } => {
                    let (_, after) = rest.split_at(left.min(rest.len()));
                    let left = left - (rest.len() - after.len());
                    rest = after;
                    self.input.expected = Expected::Skipped { left, timed };
                    if left > 0 {
                        break;
                    }
                    self.input.frame_ends();
                }
            }
        }
        self.input.pause(now);
        Ok(bytes.len() - rest.len())
    }

    /// The head of a frame: what can be said of it before its payload is here.
    fn begin(&mut self, head: Head) -> Result<Expected, Fault> {
        if head.len > self.own.max_frame {
            return Err(Fault::frame_size(
                "a frame is longer than SETTINGS_MAX_FRAME_SIZE",
            ));
        }
        if !self.has_settings && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Fault::protocol("the first frame is not SETTINGS"));
        }
        if let Some(block) = &self.block
            && (head.kind != kind::CONTINUATION || head.stream != block.number)
        {
            return Err(Fault::protocol("a header block is interrupted by another frame"));
        }
        let on_connection = head.stream == 0;
        match head.kind {
            kind::DATA => return self.begin_data(head),
            kind::HEADERS | kind::PRIORITY | kind::RST_STREAM if on_connection => {
                return Err(Fault::protocol("a frame of streams came on stream 0"));
            }
            kind::SETTINGS | kind::PING | kind::GOAWAY if !on_connection => {
                return Err(Fault::protocol("a frame of the connection came on a stream"));
            }
            kind::RST_STREAM | kind::WINDOW_UPDATE if head.len != 4 => {
                return Err(Fault::frame_size("RST_STREAM and WINDOW_UPDATE have 4 bytes"));
            }
            kind::PING if head.len != 8 => return Err(Fault::frame_size("PING has 8 bytes")),
            kind::GOAWAY if head.len < 8 => return Err(Fault::frame_size("GOAWAY has 8 bytes or more")),
            kind::SETTINGS if head.has(flag::ACK) && head.len != 0 => {
                return Err(Fault::frame_size("an acknowledgement of SETTINGS has no payload"));
            }
            kind::PUSH_PROMISE => return Err(Fault::protocol("PUSH_PROMISE was never permitted")),
            kind::CONTINUATION => self.check_continuation(head)?,
            // Unknown types are ignored (RFC 9113 §4.1).
            10.. => {
                self.floods.control(&self.config)?;
                return Ok(Expected::Skipped {
                    left: head.len,
                    timed: true,
                });
            }
            _ => {}
        }
        Ok(Expected::Payload(head))
    }

    /// A whole frame that is not DATA.
    fn frame(&mut self, head: Head, payload: &[u8], now: Instant) -> Result<(), Fault> {
        match head.kind {
            kind::HEADERS => self.headers(head, payload, now),
            kind::CONTINUATION => self.continuation(head, payload),
            kind::PRIORITY => self.priority(head, payload),
            kind::RST_STREAM => self.reset_received(head.stream, Reason::from(number(payload))),
            kind::SETTINGS => self.settings(head, payload),
            kind::PING => self.ping_received(head, payload),
            kind::GOAWAY => self.goaway_received(payload),
            kind::WINDOW_UPDATE => self.window_update(head.stream, number(payload) & MAX_WINDOW as u32),
            _ => Ok(()),
        }
    }

    fn priority(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        self.floods.control(&self.config)?;
        if payload.len() != 5 {
            return self.error_on(head.stream, Reason::FRAME_SIZE_ERROR);
        }
        if number(payload) & MAX_WINDOW as u32 == head.stream {
            return self.error_on(head.stream, Reason::PROTOCOL_ERROR);
        }
        Ok(())
    }

    fn reset_received(&mut self, number: u32, reason: Reason) -> Result<(), Fault> {
        self.counts.resets_received += 1;
        self.floods.reset(self.role == Role::Server, &self.config)?;
        self.check_not_idle(number)?;
        let Some(id) = self.streams.find(number) else {
            return Ok(());
        };
        let done = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.receiving == Receiving::Nothing);
        self.remove(id);
        // A server that has answered needs no more of the request.
        let event = match self.role {
            Role::Client if done => Event::Sent { stream: id },
            _ => Event::Reset {
                stream: id,
                reason,
                processed: reason != Reason::REFUSED_STREAM,
            },
        };
        self.events.push_back(event);
        Ok(())
    }

    fn settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.has(flag::ACK) {
            if self.floods.acknowledgement(&self.config)? {
                self.is_acknowledged = true;
                self.decoder.settings_acknowledged();
            }
            return Ok(());
        }
        if self.has_settings {
            self.floods.control(&self.config)?;
        }
        self.has_settings = true;
        let before = i64::from(self.peer.initial_window);
        let encoder = &mut self.encoder;
        self.peer.apply(payload, self.role == Role::Client, |size| {
            encoder.peer_table_size(size);
        })?;
        let change = i64::from(self.peer.initial_window) - before;
        if change != 0 {
            self.change_windows(change)?;
        }
        frame::write(self.output.buffer(), kind::SETTINGS, flag::ACK, 0, &[]);
        self.events.push_back(Event::Settings);
        Ok(())
    }

    fn ping_received(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if !head.has(flag::ACK) {
            self.floods.control(&self.config)?;
            frame::write(self.output.buffer(), kind::PING, flag::ACK, 0, payload);
            return Ok(());
        }
        if !self.floods.pong(&self.config)? {
            return Ok(());
        }
        let payload = payload.first_chunk().copied().unwrap_or_default();
        if self.ending == Ending::Announced && payload == SHUTDOWN_PING {
            self.ending = Ending::Draining;
            frame::write_goaway(self.output.buffer(), self.last_peer, Reason::NO_ERROR);
        } else {
            self.events.push_back(Event::Pong { payload });
        }
        Ok(())
    }

    fn goaway_received(&mut self, payload: &[u8]) -> Result<(), Fault> {
        self.floods.control(&self.config)?;
        let last = number(payload) & MAX_WINDOW as u32;
        let reason = Reason::from(number(payload.get(4..).unwrap_or_default()));
        if self.goaway.is_some_and(|before| last > before) {
            return Err(Fault::protocol(
                "a GOAWAY names a later stream than the one before",
            ));
        }
        self.goaway = Some(last);
        self.events.push_back(Event::GoAway { reason });
        if self.role == Role::Server {
            return Ok(());
        }
        let unprocessed: Vec<StreamId> = self.streams.ids().filter(|id| id.number > last).collect();
        for stream in unprocessed {
            self.remove(stream);
            // No RST_STREAM has named a reason: the peer leaves, and has not begun this one.
            self.events.push_back(Event::Reset {
                stream,
                reason: Reason::NO_ERROR,
                processed: false,
            });
        }
        Ok(())
    }

    fn window_update(&mut self, number: u32, increment: u32) -> Result<(), Fault> {
        self.floods.window_update(&self.config)?;
        if number == 0 {
            self.send_window += i64::from(increment);
            return match increment {
                0 => Err(Fault::protocol("WINDOW_UPDATE of the connection by 0")),
                _ if self.send_window > MAX_WINDOW => {
                    let detail = "the window of the connection is above 2^31-1";
                    Err(Fault::of(Reason::FLOW_CONTROL_ERROR, detail))
                }
                _ => Ok(()),
            };
        }
        self.check_not_idle(number)?;
        let Some(id) = self.streams.find(number) else {
            return Ok(());
        };
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        stream.window += i64::from(increment);
        if increment == 0 {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        }
        if stream.window > MAX_WINDOW {
            return self.stream_error(id, Reason::FLOW_CONTROL_ERROR);
        }
        self.enqueue(id);
        Ok(())
    }

    /// The peer has changed its initial window: that of each stream changes as well (RFC 9113 §6.9.2).
    fn change_windows(&mut self, change: i64) -> Result<(), Fault> {
        let ids: Vec<StreamId> = self.streams.ids().collect();
        for id in ids {
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            stream.window += change;
            if stream.window > MAX_WINDOW {
                let detail = "SETTINGS_INITIAL_WINDOW_SIZE makes a window larger than 2^31-1";
                return Err(Fault::of(Reason::FLOW_CONTROL_ERROR, detail));
            }
            self.enqueue(id);
        }
        Ok(())
    }

    /// Frames other than HEADERS and PRIORITY on a stream that was never opened (RFC 9113 §5.1).
    pub(super) fn check_not_idle(&self, number: u32) -> Result<(), Fault> {
        let is_clients = number % 2 == 1;
        let opened = match self.role {
            Role::Server => is_clients && number <= self.last_peer,
            Role::Client => is_clients && number < self.next_own,
        };
        if opened {
            return Ok(());
        }
        Err(Fault::protocol("a frame came on a stream that was never opened"))
    }

    /// An error on a stream (RFC 9113 §5.4.2): it is reset.
    pub(super) fn stream_error(&mut self, id: StreamId, reason: Reason) -> Result<(), Fault> {
        let sending = self
            .streams
            .get(id)
            .map(|stream| (stream.receiving, stream.sending));
        self.remove(id);
        let event = match (self.role, sending) {
            // The response is whole; only the request was not.
            (Role::Client, Some((Receiving::Nothing, Sending::Body))) => Event::Sent { stream: id },
            _ => Event::Reset {
                stream: id,
                reason,
                processed: true,
            },
        };
        self.events.push_back(event);
        self.reset_for_error(id.number, reason)
    }

    /// An error on the stream of this number, which may be closed.
    pub(super) fn error_on(&mut self, number: u32, reason: Reason) -> Result<(), Fault> {
        match self.streams.find(number) {
            Some(id) => self.stream_error(id, reason),
            None => self.reset_for_error(number, reason),
        }
    }

    fn reset_for_error(&mut self, number: u32, reason: Reason) -> Result<(), Fault> {
        self.counts.error_resets += 1;
        self.write_reset(number, reason);
        self.floods.stream_error(&self.config)
    }

    /// The rest of the payload of DATA that is not wanted.
    pub(super) fn skip_data(&mut self, bytes: usize) -> Expected {
        self.counts.discarded += bytes as u64;
        self.release(bytes as u32);
        Expected::Skipped {
            left: bytes,
            timed: false,
        }
    }

    fn pad_length(&mut self, data: Data, padding: usize) -> Result<(), Fault> {
        if padding > data.left {
            return Err(Fault::protocol("the padding is longer than the frame"));
        }
        self.input.expected = Expected::Data(Data {
            left: data.left - padding,
            padding,
            ..data
        });
        if data.left == padding && !data.ends_stream {
            self.floods.empty_data(&self.config)?;
        }
        self.release_padding(data.stream, padding + 1);
        if !data.ends_stream {
            self.give_padding_back(data.stream, padding + 1);
        }
        Ok(())
    }
}

/// The first four bytes of a payload.
fn number(payload: &[u8]) -> u32 {
    payload
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
