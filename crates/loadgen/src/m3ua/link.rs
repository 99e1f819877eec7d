//! The association of a simulated node: an ASP that becomes active, answers heartbeats, and connects again.

use std::time::Duration;

use ss7_proto::m3ua::{Builder, Data, Message, MessageType, Tag};

use super::counts::{Counts, count};
use super::nodes::{Node, Protocol};
use crate::engine::{Backoff, Poller, Received, Socket};

/// Reads of one socket before the next has its turn.
const GULPS: usize = 4;
/// Timeout of ASPUP and ASPAC, the connection included. Hundreds of nodes begin at one moment, also on a busy machine.
const OPENING: Duration = Duration::from_secs(60);
/// A peer that leaves this many octets unread gets no more messages.
const MOST_UNREAD: usize = 4 << 20;
/// A longer message ends the association; no message to the lab is as long.
const LONGEST: usize = 1 << 16;
/// Octets of the common header (RFC 4666 §3.1).
const HEADER: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { retry_at: Duration },
    Opening { since: Duration },
    Active,
}

/// The octets are no M3UA, or the peer has closed.
pub(super) struct Broken;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) node: Node,
    token: u64,
    state: State,
    socket: Option<Socket>,
    /// Whether the poller of the thread has the socket.
    is_watched: bool,
    /// The beginning of a message whose rest has not arrived.
    held: Vec<u8>,
    pub(super) out: Vec<u8>,
    pub(super) is_dirty: bool,
    bytes: (u64, u64),
    backoff: Backoff,
}

impl Link {
    pub(super) fn new(node: Node, token: u64) -> Self {
        Self {
            backoff: Backoff::of(&node.name),
            node,
            token,
            state: State::Closed {
                retry_at: Duration::ZERO,
            },
            socket: None,
            is_watched: false,
            held: Vec::new(),
            out: Vec::new(),
            is_dirty: false,
            bytes: (0, 0),
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Whether a message may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.is_active() && self.out.len() < MOST_UNREAD
    }

    /// Octets read and written.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let (read, written) = self.socket.as_ref().map_or((0, 0), |s| (s.bytes_in, s.bytes_out));
        (self.bytes.0 + read, self.bytes.1 + written)
    }

    /// Maintains the association: connects when it is closed, and ends it when it must be away.
    pub(super) fn keep(&mut self, poller: &Poller, now: Duration, is_absent: bool) {
        match self.state {
            State::Closed { .. } if is_absent => self.state = State::Closed { retry_at: now },
            State::Active | State::Opening { .. } if is_absent => self.close(poller, now),
            State::Closed { retry_at } if retry_at <= now => self.connect(now),
            State::Opening { since } if since + OPENING <= now => self.close(poller, now),
            _ => {}
        }
        if let (false, Some(socket)) = (self.is_watched, &self.socket) {
            self.is_watched = true;
            if poller.add(socket, self.token).is_err() {
                self.close(poller, now);
            }
        }
    }

    fn connect(&mut self, now: Duration) {
        let Ok(socket) = Socket::connect_from(Some(self.node.source), self.node.address) else {
            let retry_at = now + self.backoff.pause();
            self.state = State::Closed { retry_at };
            return;
        };
        self.held.clear();
        self.out.clear();
        if self.node.protocol != Protocol::Ipa {
            Builder::new(MessageType::Aspup, &mut self.out).finish();
        }
        (self.socket, self.is_watched) = (Some(socket), false);
        self.state = State::Opening { since: now };
        self.is_dirty = true;
    }

    /// Another poller watches the socket from the next [`Link::keep`] on.
    pub(super) fn leave(&mut self, poller: &Poller) {
        if let Some(socket) = &self.socket {
            poller.remove(socket);
        }
        self.is_watched = false;
    }

    /// Reads what has arrived, and gives each MSU to `each`.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        counts: &Counts,
        mut each: impl FnMut(&Data<'_>),
    ) -> Result<(), Broken> {
        let mut held = std::mem::take(&mut self.held);
        for _ in 0..GULPS {
            let Some(socket) = &mut self.socket else { break };
            match socket.receive(buffer) {
                Received::Bytes(read) => held.extend_from_slice(buffer.get(..read).unwrap_or_default()),
                Received::Nothing => break,
                Received::Closed => return Err(Broken),
            }
            let rest = match self.node.protocol {
                Protocol::M3ua { routing_context } => {
                    self.take_messages(&held, routing_context, counts, &mut each)?
                }
                Protocol::Ipa => self.take_frames(&held, &mut each),
            };
            let used = held.len() - rest;
            held.drain(..used);
        }
        self.held = held;
        Ok(())
    }

    /// Handles the whole messages among these octets; returns how many octets are left.
    fn take_messages(
        &mut self,
        octets: &[u8],
        routing_context: u32,
        counts: &Counts,
        each: &mut impl FnMut(&Data<'_>),
    ) -> Result<usize, Broken> {
        let mut rest = octets;
        while let Some((message, behind)) = length(rest)?.and_then(|first| rest.split_at_checked(first)) {
            let message = Message::parse(message).map_err(|_| Broken)?;
            match message.data() {
                Some(data) => each(&data),
                None => self.handle(&message, routing_context, counts),
            }
            rest = behind;
        }
        Ok(rest.len())
    }

    /// A message other than DATA.
    fn handle(&mut self, message: &Message<'_>, routing_context: u32, counts: &Counts) {
        match (message.message_type(), self.state) {
            (MessageType::AspupAck, State::Opening { .. }) => {
                let mut aspac = Builder::new(MessageType::Aspac, &mut self.out);
                aspac.word(Tag::ROUTING_CONTEXT, routing_context);
                aspac.finish();
            }
            (MessageType::AspacAck, State::Opening { .. }) => {
                self.activate();
            }
            (MessageType::Beat, _) => {
                let mut answer = Builder::new(MessageType::BeatAck, &mut self.out);
                if let Some(content) = message.get(Tag::HEARTBEAT_DATA) {
                    answer.parameter(Tag::HEARTBEAT_DATA, content);
                }
                answer.finish();
            }
            (MessageType::Err, _) => count(&counts.refused),
            // NTFY and SSNM: the nodes send whatever the state of their destinations is.
            _ => {}
        }
        self.is_dirty |= !self.out.is_empty();
    }

    pub(super) fn activate(&mut self) {
        self.state = State::Active;
        self.backoff.succeeded();
    }

    /// Writes the pending output.
    pub(super) fn flush(&mut self, poller: &Poller, now: Duration) {
        self.is_dirty = false;
        let Some(socket) = &mut self.socket else { return };
        if socket.flush(&mut self.out, poller, self.token).is_err() {
            self.close(poller, now);
        }
    }

    /// Ends the association. What was in flight arrives by others, or its time is over.
    pub(super) fn close(&mut self, poller: &Poller, now: Duration) {
        self.bytes = self.bytes();
        if let Some(socket) = self.socket.take() {
            poller.remove(&socket);
        }
        self.held.clear();
        self.out.clear();
        self.is_dirty = false;
        let retry_at = now + self.backoff.pause();
        self.state = State::Closed { retry_at };
    }
}

/// The length of the message that begins here; `None` while its header is not whole.
fn length(octets: &[u8]) -> Result<Option<usize>, Broken> {
    let Some([version, _, _, _, l0, l1, l2, l3]) = octets.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize;
    if *version != 1 || !(HEADER..=LONGEST).contains(&length) {
        return Err(Broken);
    }
    Ok(Some(length))
}
