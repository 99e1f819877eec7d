//! One connection to a database processor.

use std::net::SocketAddr;
use std::time::Duration;

use dp_proto::{Answer, Bundle, Frame, Malformed, Outcome, Query};

use super::{Lookups, Question};
use crate::engine::{Backoff, Poller, Received, Socket};
use crate::load::{Ended, Ledger, Sent, Slots};

/// Reads of one socket before the next has its turn.
const GULPS: usize = 4;
/// A processor that leaves this many octets unread gets no more look-ups.
const MOST_UNREAD: usize = 4 << 20;
/// The status that counts as a refusal.
const REFUSED: u32 = 503;

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    peer: SocketAddr,
    token: u64,
    socket: Option<Socket>,
    retry_at: Duration,
    backoff: Backoff,
    /// The beginning of a frame whose rest has not arrived.
    held: Vec<u8>,
    /// Look-ups since the last flush.
    bundle: Bundle,
    frames: Vec<u8>,
    out: Vec<u8>,
    pending: Slots,
    pub(super) is_dirty: bool,
    bytes: (u64, u64),
}

impl Link {
    /// A connection that is made later.
    pub(super) fn new(peer: SocketAddr, token: usize) -> Self {
        Self {
            peer,
            token: token as u64,
            socket: None,
            retry_at: Duration::ZERO,
            backoff: Backoff::of(&format!("router {token}")),
            held: Vec::new(),
            bundle: Bundle::default(),
            frames: Vec::new(),
            out: Vec::new(),
            pending: Slots::default(),
            is_dirty: false,
            bytes: (0, 0),
        }
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether a look-up may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.is_connected() && self.pending.room() > 0 && self.out.len() < MOST_UNREAD
    }

    /// Octets read and written.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let (read, written) = self.socket.as_ref().map_or((0, 0), |s| (s.bytes_in, s.bytes_out));
        (self.bytes.0 + read, self.bytes.1 + written)
    }

    /// Connects where there is no connection and the pause since the last attempt is over.
    pub(super) fn ensure(&mut self, poller: &Poller, now: Duration) {
        if self.is_connected() || now < self.retry_at {
            return;
        }
        let connected = Socket::connect(self.peer);
        let added = connected.and_then(|socket| poller.add(&socket, self.token).map(|()| socket));
        match added {
            Ok(socket) => self.socket = Some(socket),
            Err(_) => self.retry_at = now + self.backoff.pause(),
        }
    }

    /// Bundles a look-up with the others of this tick; its identifier. None without room.
    pub(super) fn send(&mut self, question: &Question, value: &[u8], sent: Sent) -> Option<u32> {
        let id = self.pending.keep(sent)?;
        self.bundle.push(&Query {
            id,
            kind: question.kind,
            service: question.service,
            value,
        });
        self.is_dirty = true;
        Some(id)
    }

    /// The look-up of this identifier, if it is pending and was to be sent at `intended`.
    pub(super) fn expire(&mut self, id: u32, intended: Duration) -> Option<Sent> {
        // The identifier may have been reused; then the intended time differs.
        self.pending.get(id).filter(|sent| sent.intended == intended)?;
        self.pending.take(id)
    }

    /// Writes the pending output.
    pub(super) fn flush(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        self.is_dirty = false;
        let Some(socket) = &mut self.socket else { return };
        self.bundle.take_into(&mut self.frames);
        self.out.extend_from_slice(&self.frames);
        if socket.flush(&mut self.out, poller, self.token).is_err() {
            self.close(poller, now, ledger);
        }
    }

    /// Reads and judges what has arrived.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        lookups: &mut dyn Lookups,
        poller: &Poller,
        now: Duration,
        ledger: &mut Ledger,
    ) {
        for _ in 0..GULPS {
            let Some(socket) = &mut self.socket else { return };
            match socket.receive(buffer) {
                Received::Bytes(count) => {
                    self.held
                        .extend_from_slice(buffer.get(..count).unwrap_or_default());
                    if self.take_frames(lookups, now, ledger).is_err() {
                        return self.close(poller, now, ledger);
                    }
                    if count < buffer.len() {
                        return;
                    }
                }
                Received::Nothing => return,
                Received::Closed => return self.close(poller, now, ledger),
            }
        }
    }

    fn take_frames(
        &mut self,
        lookups: &mut dyn Lookups,
        now: Duration,
        ledger: &mut Ledger,
    ) -> Result<(), Malformed> {
        let mut rest = &self.held[..];
        while let Some((frame, length)) = Frame::<Answer<'_>>::split(rest)? {
            self.backoff.succeeded();
            frame.each(|answer| {
                // An answer without a look-up was late.
                let Some(sent) = self.pending.take(answer.id) else {
                    return;
                };
                let verdict = lookups.judge(&sent.ticket, &answer);
                let status = match answer.outcome {
                    Outcome::Congested => REFUSED,
                    outcome => outcome as u32,
                };
                ledger.end(&sent, Ended::Judged(verdict, status), now);
            })?;
            rest = rest.get(length..).unwrap_or_default();
        }
        let taken = self.held.len() - rest.len();
        self.held.drain(..taken);
        Ok(())
    }

    /// Ends the connection; all its pending look-ups are lost.
    fn close(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        self.bytes = self.bytes();
        if let Some(socket) = self.socket.take() {
            poller.remove(&socket);
        }
        self.held.clear();
        self.out.clear();
        self.bundle.take_into(&mut self.frames);
        self.is_dirty = false;
        self.retry_at = now + self.backoff.pause();
        for sent in self.pending.drain() {
            ledger.end(&sent, Ended::Lost, now);
        }
    }
}
