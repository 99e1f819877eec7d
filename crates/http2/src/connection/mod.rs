//! One connection, as server or client (RFC 9113).
//!
//! * `input` finds frames, `receive` handles them, `headers` and `data` what they do to streams.
//! * `send` writes messages, as the windows of the peer allow.
//! * `floods` counts what a peer has no reason to send, `message` knows the rules for heads.

mod data;
mod event;
mod floods;
mod headers;
mod incoming;
mod input;
mod message;
mod receive;
mod send;
mod settings;
mod streams;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use event::{Counts, Event, Oversize, StreamId};

use crate::error::{Fault, NotOpened, Reason};
use crate::frame::{self, INITIAL_WINDOW, MAX_STREAM, PREFACE};
use crate::hpack::{Decoder, Encoder};
use crate::limits::Config;
use crate::output::Output;
use floods::Floods;
use headers::Block;
use input::Input;
use settings::{OwnSettings, PeerSettings};
use streams::{Receiving, ResetStreams, Sending, Streams};

/// Events that may wait to be taken; a connection with more receives nothing.
const MAX_EVENTS: usize = 4_096;
/// Room for this many events is kept for the next ones.
const EVENTS_KEPT: usize = 64;
/// A server whose output is this many times `max_output` receives nothing: heads of responses and answers to PING have
/// no window of their own.
const OUTPUT_STOP: usize = 4;
/// The PING between the two GOAWAY frames of a shutdown (RFC 9113 §6.8).
const SHUTDOWN_PING: [u8; 8] = *b"shutdown";

/// Which side of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// How far the connection is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It is open.
    No,
    /// GOAWAY with the highest stream identifier is sent: what the peer has sent meanwhile is still served.
    Announced,
    /// No more streams are accepted or opened; those that are open finish.
    Draining,
    /// Over. What still comes is dropped.
    Over,
}

/// An HTTP/2 connection without its socket. Bytes of the peer go into [`receive`](Connection::receive), what they mean
/// comes out of [`next_event`](Connection::next_event), messages go in, and [`output`](Connection::output) has the bytes
/// to be written.
pub struct Connection {
    config: Arc<Config>,
    own: OwnSettings,
    role: Role,
    ending: Ending,
    /// The last stream that the peer's GOAWAY names.
    goaway: Option<u32>,
    sent_settings: bool,
    /// The peer has sent its first SETTINGS, and acknowledged ours.
    has_settings: bool,
    is_acknowledged: bool,
    peer: PeerSettings,
    input: Input,
    block: Option<Block>,
    decoder: Decoder,
    encoder: Encoder,
    floods: Floods,
    streams: Streams,
    reset: ResetStreams,
    /// The highest stream that the peer opened, and the next one that this side opens.
    last_peer: u32,
    next_own: u32,
    /// What the peer may still send on the connection, and what is to be given back to it.
    receive_window: i64,
    owed: u32,
    /// What this side may still send on the connection.
    send_window: i64,
    /// Streams that have something to send and a window for it.
    ready: VecDeque<StreamId>,
    /// Bytes of outgoing bodies that are not in the output, and of memory for bodies that arrive.
    unsent: usize,
    arriving: usize,
    /// Streams whose bodies have grown in this `receive`.
    grown: Vec<StreamId>,
    events: VecDeque<Event>,
    output: Output,
    counts: Counts,
}

impl Connection {
    /// The side that accepted the connection. It sends nothing before the preface of the peer is complete.
    #[must_use]
    pub fn server(config: Arc<Config>, now: Instant) -> Self {
        Self::new(Role::Server, 0, config, now)
    }

    /// The side that opened the connection: the preface and SETTINGS are in the output.
    #[must_use]
    pub fn client(config: Arc<Config>, now: Instant) -> Self {
        let mut connection = Self::new(Role::Client, PREFACE.len(), config, now);
        connection.output.buffer().extend_from_slice(PREFACE);
        connection.send_settings();
        connection
    }

    fn new(role: Role, preface: usize, config: Arc<Config>, now: Instant) -> Self {
        let own = OwnSettings::of(&config);
        Self {
            own,
            role,
            ending: Ending::No,
            goaway: None,
            sent_settings: false,
            has_settings: false,
            is_acknowledged: false,
            peer: PeerSettings::new(),
            input: Input::new(preface),
            block: None,
            decoder: Decoder::new(config.header_table_size as usize),
            encoder: Encoder::new(),
            floods: Floods::new(now),
            streams: Streams::default(),
            reset: ResetStreams::default(),
            last_peer: 0,
            next_own: 1,
            receive_window: i64::from(INITIAL_WINDOW),
            owed: 0,
            send_window: i64::from(INITIAL_WINDOW),
            ready: VecDeque::new(),
            unsent: 0,
            arriving: 0,
            grown: Vec::new(),
            events: VecDeque::new(),
            output: Output::default(),
            counts: Counts::default(),
            config,
        }
    }

    /// Takes bytes of the peer, cut in any way; returns how many. What is kept of them is copied.
    ///
    /// It stops early after [`Config::max_frames_per_receive`] frames, with too many events that were not taken, and
    /// while [`takes_input`](Connection::takes_input) is `false`; the rest is to be given again. After the end of the
    /// connection all bytes are dropped.
    ///
    /// # Errors
    /// When the peer broke a rule or a limit. The connection is over: all its streams are closed without events, and
    /// the output ends with GOAWAY.
    pub fn receive(&mut self, bytes: &[u8], now: Instant) -> Result<usize, Fault> {
        if self.ending == Ending::Over {
            return Ok(bytes.len());
        }
        self.floods.tick(now);
        match self.handle(bytes, now) {
            Ok(taken) => {
                self.report_grown();
                Ok(taken)
            }
            Err(fault) => {
                self.close(fault.reason);
                Err(fault)
            }
        }
    }

    /// The next event.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        match self.events.is_empty() {
            true => None,
            false => self.take_event(),
        }
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::Body { body, .. }) = &event {
            let bytes = body.len();
            self.arriving = self.arriving.saturating_sub(bytes);
            self.release(bytes as u32);
        }
        if self.events.is_empty() && self.events.capacity() > EVENTS_KEPT {
            self.events = VecDeque::new();
        }
        event
    }

    /// Resets a stream; no event follows for it. A stream that is closed already is left as it is.
    pub fn reset(&mut self, stream: StreamId, reason: Reason) {
        if self.streams.get(stream).is_some() {
            self.write_reset(stream.number, reason);
            self.remove(stream);
        }
    }

    /// Sends a PING; [`Event::Pong`] reports the answer.
    pub fn ping(&mut self, payload: [u8; 8]) {
        if self.ending == Ending::Over {
            return;
        }
        self.floods.sent_ping();
        frame::write(self.output.buffer(), frame::kind::PING, 0, 0, &payload);
    }

    /// Begins a graceful shutdown (RFC 9113 §6.8): streams that are open finish, and a server still serves the requests
    /// that the peer has sent before it got the GOAWAY.
    pub fn shut_down(&mut self) {
        if self.ending != Ending::No {
            return;
        }
        self.send_settings();
        match self.role {
            Role::Server => {
                frame::write_goaway(self.output.buffer(), MAX_STREAM, Reason::NO_ERROR);
                self.ending = Ending::Announced;
                self.ping(SHUTDOWN_PING);
            }
            Role::Client => {
                frame::write_goaway(self.output.buffer(), 0, Reason::NO_ERROR);
                self.ending = Ending::Draining;
            }
        }
    }

    /// Ends the connection: GOAWAY with the last stream that was processed. All streams are closed without events.
    pub fn close(&mut self, reason: Reason) {
        if self.ending == Ending::Over {
            return;
        }
        self.send_settings();
        frame::write_goaway(self.output.buffer(), self.last_peer, reason);
        self.ending = Ending::Over;
        self.streams.clear();
        self.ready = VecDeque::new();
        self.grown = Vec::new();
        self.block = None;
        self.input.clear();
        self.unsent = 0;
        let waiting = |event: &Event| {
            if let Event::Body { body, .. } = event {
                body.len()
            } else {
                0
            }
        };
        self.arriving = self.events.iter().map(waiting).sum();
    }

    /// Whether the connection is over, or was shut down by one side and has no streams left.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.ending {
            Ending::Over => true,
            Ending::Draining => self.streams.len() == 0,
            Ending::No | Ending::Announced => self.goaway.is_some() && self.streams.len() == 0,
        }
    }

    /// Whether the preface of the peer is whole, so that it speaks HTTP/2.
    #[must_use]
    pub fn has_preface(&self) -> bool {
        self.input.has_preface()
    }

    /// Whether the peer has acknowledged this side's SETTINGS.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }

    /// Streams that may be opened now.
    #[must_use]
    pub fn room(&self) -> u32 {
        if self.role == Role::Server || self.ending != Ending::No || self.goaway.is_some() {
            return 0;
        }
        let numbers = (MAX_STREAM - self.next_own.min(MAX_STREAM)).div_ceil(2);
        let allowed = self.config.max_concurrent_streams.min(self.peer.max_streams);
        allowed.saturating_sub(self.streams()).min(numbers)
    }

    /// Streams that are open now.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.streams.len() as u32
    }

    /// Whether bytes of the peer are taken: not while the output of a server is several times as large as
    /// [`Config::max_output`], because the peer does not read what it asked for.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        self.role == Role::Client || self.output.len() <= self.config.max_output.saturating_mul(OUTPUT_STOP)
    }

    /// Bytes of memory that it holds for the peer: incomplete frames and header blocks, bodies that arrive or wait to be
    /// taken, tables. The output and outgoing bodies are not among them.
    #[must_use]
    pub fn held(&self) -> usize {
        let block = self.block.as_ref().map_or(0, Block::held);
        self.input.held()
            + block
            + self.arriving
            + self.decoder.held()
            + self.encoder.held()
            + self.streams.held()
            + self.reset.held()
            + self.ready.capacity() * size_of::<StreamId>()
            + self.events.capacity() * size_of::<Event>()
    }

    /// Bytes of outgoing bodies that are not in the output yet.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.unsent
    }

    /// How long a frame that is not DATA, or a header block, has been incomplete.
    #[must_use]
    pub fn header_wait(&self, now: Instant) -> Option<Duration> {
        let block = self
            .block
            .as_ref()
            .map(|block| now.saturating_duration_since(block.since));
        block.max(self.input.wait(now))
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// SETTINGS and the window of the connection, before anything else.
    fn send_settings(&mut self) {
        if self.sent_settings {
            return;
        }
        self.sent_settings = true;
        self.floods.sent_settings();
        let settings = self.own.list(&self.config, self.role == Role::Server);
        let out = self.output.buffer();
        frame::write_settings(out, &settings);
        let more = self.own.connection_window - INITIAL_WINDOW;
        if more > 0 {
            frame::write_window_update(out, 0, more);
            self.receive_window += i64::from(more);
        }
    }

    /// Resets a stream on the wire.
    fn write_reset(&mut self, number: u32, reason: Reason) {
        frame::write_reset(self.output.buffer(), number, reason);
        self.reset.push(number);
    }

    /// Takes a stream out of the table; what it holds is let go.
    fn remove(&mut self, stream: StreamId) {
        if let Some(removed) = self.streams.remove(stream) {
            self.unsent -= removed.unsent;
            self.arriving = self.arriving.saturating_sub(removed.arriving);
            self.release(removed.unreleased);
        }
    }

    /// Takes a stream out of the table if both sides have ended it.
    fn remove_if_done(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.sending != Sending::Nothing {
            return;
        }
        if stream.receiving == Receiving::Nothing {
            self.remove(id);
        } else if self.role == Role::Server {
            // The answer is complete, the rest of the request is not needed (RFC 9113 §8.1).
            self.reset(id, Reason::NO_ERROR);
        }
    }

    /// Bytes of DATA were taken: the peer may send as many again.
    fn release(&mut self, bytes: u32) {
        self.owed += bytes;
        self.give_back();
    }

    /// Gives the peer its window back, in one frame per half. When little is left, at once: a body that fits into the
    /// window of its stream must not wait for a half.
    fn give_back(&mut self) {
        let is_short = self.receive_window < i64::from(self.own.stream_window);
        let half = self.own.connection_window / 2;
        if self.ending != Ending::Over && self.owed > 0 && (self.owed >= half || is_short) {
            frame::write_window_update(self.output.buffer(), 0, self.owed);
            self.receive_window += i64::from(self.owed);
            self.owed = 0;
        }
    }
}

impl NotOpened {
    fn why(connection: &Connection) -> Self {
        let closing = connection.ending != Ending::No
            || connection.goaway.is_some()
            || connection.next_own > MAX_STREAM
            || connection.role == Role::Server;
        if closing { Self::Closing } else { Self::NoRoom }
    }
}
