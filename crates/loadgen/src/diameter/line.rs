//! One connection of a simulated client: capabilities exchange, requests, watchdog.

use std::net::SocketAddr;
use std::time::Duration;

use diameter_proto::known::command;
use diameter_proto::{MessageRef, ResultCode};

use super::base::Introduction;
use super::habits::Habits;
use super::inbox::Inbox;
use super::renewals::Renewals;
use super::requests::{Requests, Turn, result_of};
use crate::engine::{Backoff, Poller, Received, Socket};
use crate::load::{Ended, Fault, Ledger, Sent, Slots};

/// Reads of one socket before the next has its turn.
const GULPS: usize = 4;
/// Timeout of the connection setup, CEA included.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// A peer that is silent for this time gets a DWR (RFC 3539); after as much again the client closes the connection.
const WATCHDOG: Duration = Duration::from_secs(10);
/// A peer that leaves this many bytes unread gets no more requests.
const MOST_UNREAD: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed {
        retry_at: Duration,
    },
    Introducing {
        since: Duration,
    },
    Open {
        watching: bool,
    },
    /// The peer has sent a DPR.
    Leaving,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    peer: SocketAddr,
    /// The address to connect to after the connection to `peer` has failed or ended.
    other: Option<SocketAddr>,
    pub(super) introduction: Introduction,
    number: usize,
    socket: Option<Socket>,
    state: State,
    inbox: Inbox,
    out: Vec<u8>,
    pending: Slots,
    heard: Duration,
    next_end_to_end: u32,
    pub(super) dirty: bool,
    bytes: (u64, u64),
    habits: Habits,
    backoff: Backoff,
    /// The connection before this one, until the peer has closed it.
    before: Option<(Socket, Inbox)>,
    renewals: Renewals,
    /// When to send the next DWR.
    watch_at: Duration,
    /// When the DWR was sent that is still unanswered.
    watched_since: Option<Duration>,
}

/// Parts of its thread that a connection uses to handle input.
pub(super) struct Around<'a> {
    pub(super) requests: &'a mut dyn Requests,
    pub(super) poller: &'a Poller,
    pub(super) ledger: &'a mut Ledger,
    pub(super) now: Duration,
}

impl Line {
    pub(super) fn new(
        (peer, other): (SocketAddr, Option<SocketAddr>),
        introduction: Introduction,
        number: usize,
        seed: u32,
        habits: Habits,
    ) -> Self {
        let mut backoff = Backoff::of(&introduction.origin.host);
        let renewals = Renewals::new(habits.reconnect, &mut backoff);
        Self {
            peer,
            other,
            introduction,
            number,
            socket: None,
            state: State::Closed {
                retry_at: Duration::ZERO,
            },
            inbox: Inbox::default(),
            out: Vec::new(),
            pending: Slots::default(),
            heard: Duration::ZERO,
            next_end_to_end: seed,
            dirty: false,
            bytes: (0, 0),
            before: None,
            renewals,
            watch_at: Duration::ZERO,
            watched_since: None,
            habits,
            backoff,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether a request may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.is_open() && self.pending.room() > 0 && self.out.len() < MOST_UNREAD
    }

    /// Bytes read and written.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let (read, written) = self.socket.as_ref().map_or((0, 0), |s| (s.bytes_in, s.bytes_out));
        (self.bytes.0 + read, self.bytes.1 + written)
    }

    /// Maintains the connection: connects when it is closed, sends a DWR to a silent peer, closes the connection of a
    /// peer that does not answer.
    pub(super) fn keep(&mut self, poller: &Poller, ledger: &mut Ledger, now: Duration) {
        if self.is_open() {
            self.live(poller, now);
        }
        match self.state {
            State::Closed { retry_at } if retry_at <= now => self.connect(poller, now),
            State::Introducing { since } if since + INTRODUCTION <= now => self.close(poller, ledger, now),
            State::Open { watching: false } if self.heard + WATCHDOG <= now => {
                self.introduction.put_watchdog_request(0, &mut self.out);
                self.state = State::Open { watching: true };
                self.dirty = true;
            }
            State::Open { watching: true } if self.heard + WATCHDOG * 2 <= now => {
                self.close(poller, ledger, now);
            }
            _ => {}
        }
    }

    /// Makes the reconnections and watchdogs that are due.
    fn live(&mut self, poller: &Poller, now: Duration) {
        if let Some(every) = self.habits.watchdog
            && self.watched_since.is_none()
            && self.watch_at <= now
        {
            self.introduction.put_watchdog_request(0, &mut self.out);
            self.habits.counts.asked();
            self.watched_since = Some(now);
            self.watch_at = now + every;
            self.dirty = true;
        }
        // A request that is half written cannot be completed on another connection.
        if self.renewals.is_due(now, &mut self.backoff) && self.before.is_none() && self.out.is_empty() {
            self.renew(poller, now);
        }
    }

    /// Reconnects under the same name, without a DPR. Requests in flight stay pending.
    fn renew(&mut self, poller: &Poller, now: Duration) {
        let Ok(socket) = Socket::connect(self.peer) else {
            return;
        };
        if poller.add(&socket, self.number as u64).is_err() {
            return;
        }
        let inbox = std::mem::take(&mut self.inbox);
        self.introduction
            .put_capabilities_request(socket.local_ip(), &mut self.out);
        self.before = self.socket.replace(socket).map(|before| (before, inbox));
        self.renewals.done(now, &mut self.backoff);
        self.state = State::Introducing { since: now };
        self.watched_since = None;
        self.heard = now;
        self.dirty = true;
        self.habits.counts.reconnected();
    }

    /// Reads the former connection, until the peer closes it.
    pub(super) fn receive_rest(&mut self, buffer: &mut [u8], around: &mut Around<'_>) {
        let Some((mut socket, mut inbox)) = self.before.take() else {
            return;
        };
        loop {
            match socket.receive(buffer) {
                Received::Bytes(count) => {
                    let whole = inbox.feed(&buffer[..count], |message| {
                        if !message.is_request() && message.application() != 0 {
                            self.take_answer(message, around);
                        }
                    });
                    if whole.is_err() {
                        break;
                    }
                }
                Received::Nothing => {
                    self.before = Some((socket, inbox));
                    return;
                }
                Received::Closed => break,
            }
        }
        around.poller.remove(&socket);
        self.bytes.0 += socket.bytes_in;
        self.bytes.1 += socket.bytes_out;
    }

    fn connect(&mut self, poller: &Poller, now: Duration) {
        let connected = Socket::connect(self.peer);
        let added = connected.and_then(|socket| poller.add(&socket, self.number as u64).map(|()| socket));
        let Ok(socket) = added else {
            self.change_peer();
            self.state = State::Closed {
                retry_at: now + self.backoff.pause(),
            };
            return;
        };
        self.inbox.clear();
        self.out.clear();
        self.introduction
            .put_capabilities_request(socket.local_ip(), &mut self.out);
        self.socket = Some(socket);
        self.state = State::Introducing { since: now };
        self.heard = now;
        self.dirty = true;
    }

    /// Writes a request to the output, to be flushed: `message` with its identifiers set. The caller has checked that
    /// there is room; a request without room is lost.
    pub(super) fn send(&mut self, message: &mut [u8], sent: Sent) -> Option<u32> {
        let id = self.pending.keep(sent)?;
        self.next_end_to_end = self.next_end_to_end.wrapping_add(1);
        if let Some(place) = message.get_mut(12..20) {
            let both = u64::from(id) << 32 | u64::from(self.next_end_to_end);
            place.copy_from_slice(&both.to_be_bytes());
        }
        self.out.extend_from_slice(message);
        self.dirty = true;
        Some(id)
    }

    /// The request of this identifier, if it is still pending.
    pub(super) fn pending(&self, id: u32) -> Option<&Sent> {
        self.pending.get(id)
    }

    /// Fails a request that had no answer in time.
    pub(super) fn forget(&mut self, id: u32) -> Option<Sent> {
        self.pending.take(id)
    }

    /// Reads and handles input.
    pub(super) fn receive(&mut self, buffer: &mut [u8], around: &mut Around<'_>) {
        for _ in 0..GULPS {
            let Some(socket) = &mut self.socket else { return };
            match socket.receive(buffer) {
                Received::Bytes(count) => {
                    self.heard = around.now;
                    let mut inbox = std::mem::take(&mut self.inbox);
                    let mut good = true;
                    let whole = inbox.feed(&buffer[..count], |message| {
                        good = good && self.handle(message, around);
                    });
                    self.inbox = inbox;
                    if whole.is_err() || !good {
                        return self.close(around.poller, around.ledger, around.now);
                    }
                    if count < buffer.len() {
                        break;
                    }
                }
                Received::Nothing => break,
                Received::Closed => return self.close(around.poller, around.ledger, around.now),
            }
        }
        self.dirty |= !self.out.is_empty();
    }

    /// Handles a message; false when the connection must be closed.
    fn handle(&mut self, message: MessageRef<'_>, around: &mut Around<'_>) -> bool {
        if message.is_request() {
            self.handle_request(message, around);
            return true;
        }
        match message.command() {
            command::CAPABILITIES_EXCHANGE => {
                let welcome = result_of(message) == ResultCode::SUCCESS.0
                    && self.introduction.has_common_application(message);
                if welcome && matches!(self.state, State::Introducing { .. }) {
                    self.state = State::Open { watching: false };
                    self.backoff.succeeded();
                }
                welcome
            }
            command::DEVICE_WATCHDOG => {
                if self.is_open() {
                    self.state = State::Open { watching: false };
                }
                if let Some(since) = self.watched_since.take() {
                    self.habits.counts.answered(around.now.saturating_sub(since));
                }
                true
            }
            _ => {
                self.take_answer(message, around);
                true
            }
        }
    }

    fn take_answer(&mut self, message: MessageRef<'_>, around: &mut Around<'_>) {
        let Some(sent) = self.pending.take(message.hop_by_hop()) else {
            // The answer has been counted as late, or has no request.
            return self.habits.counts.strayed();
        };
        let verdict = around.requests.judge(&sent.ticket, message);
        let result = if verdict == Err(Fault::Status) {
            result_of(message)
        } else {
            0
        };
        around
            .ledger
            .end(&sent, Ended::Judged(verdict, result), around.now);
    }

    fn handle_request(&mut self, message: MessageRef<'_>, around: &mut Around<'_>) {
        match message.command() {
            command::DEVICE_WATCHDOG => {
                self.introduction
                    .put_result(message, ResultCode::SUCCESS, &mut self.out);
            }
            command::DISCONNECT_PEER => {
                self.introduction
                    .put_result(message, ResultCode::SUCCESS, &mut self.out);
                self.state = State::Leaving;
            }
            _ => {
                let turn = Turn {
                    line: self.number,
                    introduction: &self.introduction,
                };
                around.requests.asked(turn, message, &mut self.out);
            }
        }
    }

    /// Writes the pending output.
    pub(super) fn flush(&mut self, poller: &Poller, ledger: &mut Ledger, now: Duration) {
        self.dirty = false;
        let Some(socket) = &mut self.socket else { return };
        if socket.flush(&mut self.out, poller, self.number as u64).is_err() {
            self.close(poller, ledger, now);
        }
    }

    /// The next connection attempt goes to the other peer, if there is one.
    fn change_peer(&mut self) {
        if let Some(other) = &mut self.other {
            std::mem::swap(other, &mut self.peer);
        }
    }

    /// Closes the connection; all its pending requests are lost.
    fn close(&mut self, poller: &Poller, ledger: &mut Ledger, now: Duration) {
        self.bytes = self.bytes();
        for socket in self
            .socket
            .take()
            .into_iter()
            .chain(self.before.take().map(|(s, _)| s))
        {
            poller.remove(&socket);
        }
        if self.is_open() {
            self.habits.counts.ended();
        }
        self.change_peer();
        self.watched_since = None;
        self.state = State::Closed {
            retry_at: now + self.backoff.pause(),
        };
        self.dirty = false;
        for sent in self.pending.drain() {
            ledger.end(&sent, Ended::Lost, now);
        }
    }
}
