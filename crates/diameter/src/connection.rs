//! A connection as other modules use it: an id to send to, a state, figures. The node owns the task that reads and
//! writes.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use diameter_proto::MessageMut;
use diameter_proto::peer::{Health, Side};
use follow::{Cause, Direction, Room};

use crate::peer::PeerUp;
use crate::queue::OutQueue;

/// Capacity of the queue that is reserved for messages of the base protocol.
const BASE_RESERVE: usize = 64 * 1024;

/// Identifies a connection for the lifetime of the node: positions are reused, ids are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ConnectionId {
    /// Position in the node's slab, the owner of pending requests.
    pub(crate) slot: u32,
    /// Which connection at that position.
    pub(crate) generation: u32,
}

/// How a connection is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Not at all.
    Open,
    /// When all that is queued has been written.
    AfterFlush,
    /// At once.
    Now,
}

/// Figures of a connection. Counters only grow.
#[derive(Debug, Default)]
pub struct Figures {
    /// Messages read.
    pub messages_in: Cell<u64>,
    /// Messages queued to be written.
    pub messages_out: Cell<u64>,
    /// Bytes read.
    pub bytes_in: Cell<u64>,
    /// Bytes written.
    pub bytes_out: Cell<u64>,
    /// Requests sent.
    pub requests_out: Cell<u64>,
    /// Requests read.
    pub requests_in: Cell<u64>,
    /// Answers that matched no request of ours.
    pub answers_unmatched: Cell<u64>,
    /// Requests given up at their deadline.
    pub timeouts: Cell<u64>,
    /// Messages not sent because the queue was full.
    pub queue_full: Cell<u64>,
    /// Read system calls.
    pub reads: Cell<u64>,
    /// Write system calls.
    pub writes: Cell<u64>,
}

/// Figures of all connections of a peer together, those that ended included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Connections that were open, the present one included.
    pub connections: u64,
    /// Messages read.
    pub messages_in: u64,
    /// Messages queued to be written.
    pub messages_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Requests read.
    pub requests_in: u64,
    /// Requests sent.
    pub requests_out: u64,
    /// Answers that matched no request of ours.
    pub answers_unmatched: u64,
    /// Requests given up at their deadline.
    pub timeouts: u64,
    /// Messages not sent because the queue was full.
    pub queue_full: u64,
}

impl Totals {
    /// Adds the figures of another connection.
    pub(crate) fn add(&mut self, figures: &Figures) {
        self.connections += 1;
        self.messages_in += figures.messages_in.get();
        self.messages_out += figures.messages_out.get();
        self.bytes_in += figures.bytes_in.get();
        self.bytes_out += figures.bytes_out.get();
        self.requests_in += figures.requests_in.get();
        self.requests_out += figures.requests_out.get();
        self.answers_unmatched += figures.answers_unmatched.get();
        self.timeouts += figures.timeouts.get();
        self.queue_full += figures.queue_full.get();
    }
}

#[inline]
pub(crate) fn count(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

/// State of an open connection.
#[derive(Debug)]
struct Established<S> {
    peer: PeerUp,
    /// The Route-Record that a relay appends to requests from here (RFC 6733 §6.1.9).
    route_record: Bytes,
    state: S,
}

/// A connection.
pub struct Connection<S> {
    id: ConnectionId,
    remote: SocketAddr,
    local: SocketAddr,
    since: Instant,
    /// The peer it belongs to and its side, once the CER or CEA has shown them.
    pub(crate) binding: Cell<Option<(usize, Side)>>,
    established: OnceCell<Established<S>>,
    pub(crate) open: Cell<bool>,
    pub(crate) health: Cell<Health>,
    pub(crate) ending: Cell<Ending>,
    /// A TLS handshake must finish before the next read or write.
    pub(crate) secure: Cell<bool>,
    pub(crate) paused: Cell<bool>,
    /// The peer has reconnected: requests that it sent here before are still served.
    pub(crate) replaced: Cell<bool>,
    pub(crate) queue: RefCell<OutQueue>,
    queue_limit: usize,
    pub(crate) waker: Cell<Option<Waker>>,
    /// Messages of the base protocol and answers without a request, and the start of the second in which they arrived.
    base: Cell<(Option<Instant>, u32)>,
    /// Since when the queue has not moved, and since when a message is incomplete.
    pub(crate) write_stalled: Cell<Option<Instant>>,
    pub(crate) read_stalled: Cell<Option<Instant>>,
    pub(crate) unread_since: Cell<Option<Instant>>,
    /// It was accepted and has not yet sent a valid CER.
    pub(crate) in_handshake: Cell<bool>,
    /// Bytes of its pending requests that are kept for another try.
    pub(crate) kept_bytes: Cell<usize>,
    /// Since when this node waits for the peer to close after it closed its own half.
    pub(crate) leaving: Cell<Option<Instant>>,
    figures: Figures,
}

impl<S> Connection<S> {
    pub(crate) fn new(
        id: ConnectionId,
        remote: SocketAddr,
        local: SocketAddr,
        since: Instant,
        queue_limit: usize,
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            remote,
            local,
            since,
            binding: Cell::new(None),
            established: OnceCell::new(),
            open: Cell::new(false),
            health: Cell::new(Health::Initial),
            ending: Cell::new(Ending::Open),
            secure: Cell::new(false),
            paused: Cell::new(false),
            replaced: Cell::new(false),
            queue: RefCell::default(),
            queue_limit,
            waker: Cell::new(None),
            base: Cell::new((None, 0)),
            write_stalled: Cell::new(None),
            read_stalled: Cell::new(None),
            unread_since: Cell::new(None),
            in_handshake: Cell::new(false),
            kept_bytes: Cell::new(0),
            leaving: Cell::new(None),
            figures: Figures::default(),
        })
    }

    /// Its id.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// Since when at most the message that was delivered last lay unread, because turns of the connection ended before its
    /// bytes did; none: it came after the sockets were polled last.
    #[must_use]
    pub const fn unread_since(&self) -> Option<Instant> {
        self.unread_since.get()
    }

    /// The peer's address.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Our address.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// When it was made.
    #[must_use]
    pub const fn since(&self) -> Instant {
        self.since
    }

    /// Whether messages may be sent: capabilities were exchanged, and neither side has begun to end the connection.
    #[inline]
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open.get()
    }

    /// The status of its watchdog.
    #[inline]
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health.get()
    }

    /// Whether requests should be sent here: open, and the watchdog is OKAY.
    #[inline]
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.open.get() && self.health.get() == Health::Okay
    }

    /// The peer, once the connection was open.
    #[inline]
    #[must_use]
    pub fn peer(&self) -> Option<&PeerUp> {
        self.established.get().map(|established| &established.peer)
    }

    /// The application's state for it, once it was open.
    #[inline]
    #[must_use]
    pub fn state(&self) -> Option<&S> {
        self.established.get().map(|established| &established.state)
    }

    /// The encoded Route-Record for requests that came from here: the peer's Origin-Host. Empty before it
    /// was open.
    #[inline]
    #[must_use]
    pub fn route_record(&self) -> &Bytes {
        static NONE: Bytes = Bytes::new();
        self.established
            .get()
            .map_or(&NONE, |established| &established.route_record)
    }

    /// Figures.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Bytes queued for it.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.borrow().bytes()
    }

    /// Pauses or resumes reading, for back-pressure towards the peer. Messages read before are still delivered. A
    /// paused connection looks silent to its watchdog, so pauses should be short.
    pub fn pause(&self, paused: bool) {
        self.paused.set(paused);
        self.wake();
    }

    /// Counts a message of the base protocol or an answer without a request; false when there are more than `most` in
    /// this second.
    pub(crate) fn allows_base(&self, now: Instant, most: u32) -> bool {
        let (since, count) = match self.base.get() {
            (Some(since), count) if now.saturating_duration_since(since) < Duration::from_secs(1) => {
                (since, count.saturating_add(1))
            }
            _ => (now, 1),
        };
        self.base.set((Some(since), count));
        most == 0 || count <= most
    }

    pub(crate) fn establish(&self, peer: PeerUp, route_record: Bytes, state: S) {
        // A connection is opened once; a second time would find the first's peer, which is the same.
        let _ = self.established.set(Established {
            peer,
            route_record,
            state,
        });
    }

    /// Whether `more` bytes would overfill the queue.
    #[inline]
    pub(crate) fn is_full(&self, more: usize) -> bool {
        let full = self.queue.borrow().bytes() + more > self.queue_limit;
        if full {
            count(&self.figures.queue_full, 1);
        }
        full
    }

    /// Queues a message given in pieces. The caller has checked [`Connection::is_full`].
    #[inline]
    pub(crate) fn enqueue(&self, pieces: impl IntoIterator<Item = Bytes>, last: Bytes) {
        let mut tapped = follow::active().map(|room| (room, Vec::new()));
        let mut queue = self.queue.borrow_mut();
        let idle = queue.is_empty();
        for piece in pieces {
            if let Some((_, copy)) = &mut tapped {
                copy.extend_from_slice(&piece);
            }
            queue.push(piece, false);
        }
        if let Some((room, mut copy)) = tapped {
            copy.extend_from_slice(&last);
            let _ = self.tap(&room, Direction::Out, &copy);
        }
        queue.push(last, true);
        drop(queue);
        count(&self.figures.messages_out, 1);
        if idle {
            self.wake();
        }
    }

    /// Offers a message to those who follow a subscriber; returns what is caused by one that belongs to them.
    #[cold]
    pub(crate) fn tap(&self, room: &Room, direction: Direction, message: &[u8]) -> Option<Cause> {
        let route = match direction {
            Direction::In => (self.remote, self.local),
            Direction::Out => (self.local, self.remote),
        };
        let peer = self.peer().map_or("", |up| up.remote.origin.host.as_str());
        room.diameter(direction, peer, route, message)
    }

    /// Queues a message of the base protocol, also when the queue is full for other messages: watchdogs must not
    /// starve. A separate bound limits a peer that floods requests and reads no answers.
    pub(crate) fn enqueue_base(&self, message: MessageMut) {
        let room = self.queue.borrow().bytes() < self.queue_limit + BASE_RESERVE;
        if room && self.ending.get() == Ending::Open {
            self.enqueue([], message.into_bytes().freeze());
        }
    }

    /// Asks the task to end the connection.
    pub(crate) fn end(&self, how: Ending) {
        self.open.set(false);
        if self.ending.get() != Ending::Now {
            self.ending.set(how);
        }
        self.wake();
    }

    #[inline]
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }
}

impl<S> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer().map(|up| up.remote.origin.host.as_str());
        write!(f, "Connection({:?} {} {:?})", self.id, self.remote, peer)
    }
}
