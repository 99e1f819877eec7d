//! One connection of the generator: socket, HTTP/2 machine and the pending requests.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ahash::AHashMap;

use super::ledger::{Ended, Sent};
use super::{Answer, Draft, Interest, Workload};
use crate::engine::{Backoff, ClientTls, Poller, Received, Socket};
use crate::http2::{CANCEL, Connection, Event, Limits, RequestHead, Role};

/// Longer bodies are truncated; no body of the lab's requests is as long.
const LONGEST_BODY: usize = 8 << 20;
/// Reads of one socket before the next has its turn.
const GULPS: usize = 4;

/// A pending request.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) sent: Sent,
    status: u16,
    received: u64,
    body: Option<Vec<u8>>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    peer: SocketAddr,
    /// The address that it comes from; none: the system chooses.
    source: Option<IpAddr>,
    tls: Option<ClientTls>,
    token: u64,
    socket: Option<Socket>,
    http: Connection,
    pub(super) pending: AHashMap<u32, Pending>,
    pub(super) dirty: bool,
    /// The connection is in the list of connections to be flushed.
    pub(super) queued: bool,
    retry_at: Duration,
    backoff: Backoff,
    spare: Vec<Vec<u8>>,
    bytes: (u64, u64),
}

impl Link {
    /// A connection that is made later; `name` is unique over all threads.
    pub(super) fn new(peer: SocketAddr, tls: Option<ClientTls>, token: u64, name: &str) -> Self {
        Self {
            backoff: Backoff::of(name),
            peer,
            source: None,
            tls,
            token,
            socket: None,
            http: Connection::new(Role::Client, Limits::default()),
            pending: AHashMap::new(),
            dirty: false,
            queued: false,
            retry_at: Duration::ZERO,
            spare: Vec::new(),
            bytes: (0, 0),
        }
    }

    /// Sets the source address.
    pub(super) fn with_source(self, source: Option<IpAddr>) -> Self {
        Self { source, ..self }
    }

    /// Connects if there is no connection and the pause since the last try is over.
    pub(super) fn ensure(&mut self, poller: &Poller, now: Duration) {
        if self.socket.is_some() || now < self.retry_at {
            return;
        }
        let connected = Socket::connect_from(self.source, self.peer);
        let connected = match &self.tls {
            Some(tls) => connected.and_then(|socket| socket.secure(tls, self.peer)),
            None => connected,
        };
        let added = connected.and_then(|socket| poller.add(&socket, self.token).map(|()| socket));
        let Ok(socket) = added else {
            self.retry_at = now + self.backoff.pause();
            return;
        };
        self.socket = Some(socket);
        let http = Connection::new(Role::Client, Limits::default());
        self.http = if self.tls.is_some() { http.secure() } else { http };
        self.dirty = true;
    }

    /// Whether there is a connection, or an attempt in progress.
    pub(super) fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Free streams on this connection now.
    pub(super) fn room(&self) -> usize {
        if self.socket.is_some() {
            self.http.streams().saturating_sub(self.pending.len())
        } else {
            0
        }
    }

    /// Bytes read and written.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let (read, written) = self.socket.as_ref().map_or((0, 0), |s| (s.bytes_in, s.bytes_out));
        (self.bytes.0 + read, self.bytes.1 + written)
    }

    /// Writes a request to the output, to be flushed. The caller has checked [`Link::room`].
    pub(super) fn send(
        &mut self,
        draft: &Draft,
        authority: &str,
        stable: &[(&str, &str)],
        sent: Sent,
    ) -> u32 {
        let length;
        let mut own: smallvec::SmallVec<[(&str, &str); 4]> = smallvec::SmallVec::new();
        if let Some(kind) = draft.content_type {
            length = draft.body.len().to_string();
            own.push(("content-type", kind));
            own.push(("content-length", &length));
        }
        own.extend(draft.headers.iter().map(|(name, value)| (*name, value.as_str())));
        let head = RequestHead {
            method: draft.method,
            path: &draft.path,
            authority,
            stable,
            own: &own,
        };
        let stream = self.http.request(&head, &draft.body);
        self.pending.insert(
            stream,
            Pending {
                sent,
                status: 0,
                received: 0,
                body: None,
            },
        );
        self.dirty = true;
        stream
    }

    /// Writes the pending output. Requests that the loss of the connection ended go to `ended`.
    pub(super) fn flush(&mut self, poller: &Poller, now: Duration, ended: &mut impl FnMut(Pending, Ended)) {
        self.dirty = false;
        let Some(socket) = &mut self.socket else { return };
        if socket.flush(&mut self.http.out, poller, self.token).is_err() {
            self.close(poller, now, ended);
        }
    }

    /// Fails a request that had no answer in time.
    pub(super) fn cancel(&mut self, stream: u32) -> Option<Pending> {
        let pending = self.pending.remove(&stream)?;
        self.http.reset(stream, CANCEL);
        self.dirty = true;
        Some(pending)
    }

    /// Reads and handles input.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        workload: &mut dyn Workload,
        poller: &Poller,
        now: Duration,
        ended: &mut impl FnMut(Pending, Ended),
    ) {
        for _ in 0..GULPS {
            let Some(socket) = &mut self.socket else { return };
            match socket.receive(buffer) {
                Received::Bytes(count) => {
                    if !self.handle(&buffer[..count], workload, ended) {
                        return self.close(poller, now, ended);
                    }
                    if count < buffer.len() {
                        break;
                    }
                }
                Received::Nothing => break,
                Received::Closed => return self.close(poller, now, ended),
            }
        }
        self.dirty |= !self.http.out.is_empty();
        if self.http.is_closing() && self.pending.is_empty() {
            self.close(poller, now, ended);
        }
    }

    /// Handles bytes; false when the connection must be closed.
    fn handle(
        &mut self,
        mut input: &[u8],
        workload: &mut dyn Workload,
        ended: &mut impl FnMut(Pending, Ended),
    ) -> bool {
        loop {
            let event = match self.http.next(&mut input) {
                Ok(Some(event)) => event,
                Ok(None) => return true,
                Err(_) => return false,
            };
            match event {
                Event::Ready => self.backoff.succeeded(),
                Event::GoAway { last, .. } => {
                    // Requests that the peer will not process have failed; the rest may still be answered.
                    let over: Vec<u32> = self
                        .pending
                        .keys()
                        .copied()
                        .filter(|stream| *stream > last)
                        .collect();
                    for stream in over {
                        if let Some(pending) = self.pending.remove(&stream) {
                            ended(pending, Ended::Lost);
                        }
                    }
                }
                Event::Reset { stream, code } => {
                    if let Some(pending) = self.pending.remove(&stream) {
                        ended(pending, Ended::Reset(code));
                    }
                }
                Event::Head { stream, fields, end } => {
                    let Some(pending) = self.pending.get_mut(&stream) else {
                        continue;
                    };
                    let status = fields.get(":status").and_then(decimal).unwrap_or(0);
                    // Interim answers are skipped; trailers have no status.
                    if status >= 200 {
                        let length = fields.get("content-length").and_then(decimal);
                        pending.status = status as u16;
                        if let Some(location) = fields.get("location") {
                            workload.located(&pending.sent.ticket, location);
                        }
                        if !end
                            && workload.interest(&pending.sent.ticket, pending.status, length)
                                == Interest::Body
                        {
                            pending.body = Some(self.spare.pop().unwrap_or_default());
                        }
                    }
                    if end {
                        self.finish(stream, workload, ended);
                    }
                }
                Event::Data { stream, bytes, end } => {
                    let Some(pending) = self.pending.get_mut(&stream) else {
                        continue;
                    };
                    pending.received += bytes.len() as u64;
                    if let Some(body) = &mut pending.body
                        && body.len() + bytes.len() <= LONGEST_BODY
                    {
                        body.extend_from_slice(bytes);
                    }
                    if end {
                        self.finish(stream, workload, ended);
                    }
                }
            }
        }
    }

    fn finish(&mut self, stream: u32, workload: &mut dyn Workload, ended: &mut impl FnMut(Pending, Ended)) {
        let Some(mut pending) = self.pending.remove(&stream) else {
            return;
        };
        let answer = Answer {
            status: pending.status,
            length: pending.received,
            body: pending.body.as_deref(),
        };
        let verdict = workload.judge(&pending.sent.ticket, &answer);
        if let Some(mut body) = pending.body.take() {
            body.clear();
            self.spare.push(body);
        }
        let status = u32::from(pending.status);
        ended(pending, Ended::Judged(verdict, status));
    }

    /// Closes the connection; all its pending requests are lost.
    pub(super) fn close(&mut self, poller: &Poller, now: Duration, ended: &mut impl FnMut(Pending, Ended)) {
        self.bytes = self.bytes();
        if let Some(socket) = self.socket.take() {
            poller.remove(&socket);
        }
        self.retry_at = now + self.backoff.pause();
        for (_, pending) in self.pending.drain() {
            ended(pending, Ended::Lost);
        }
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
