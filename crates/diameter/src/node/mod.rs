//! A node: one per worker, not `Send`. It owns the connections, the peers and the pending requests.
//!
//! | file | what happens there |
//! |---|---|
//! | `mod` (this) | the path of a message: in through `received`, out through `forward`, `request`, `answer` |
//! | `peers` | the peers, and the inputs of their machines |
//! | `orders` | the actions of the machines |
//! | `admission` | which peers may connect, and which worker owns them |
//! | `link` | connections: made, accepted, transferred, secured, ended |
//! | `tick` | deadlines, watchdogs, stalls |
//! | `pace` | several messages for each system call |
//! | `io` | the task of one connection |
//! | `handshakes` | connections that have not sent a CER |
//! | `application`, `contain` | the interface of the node's owner, and what its panics end |

mod admission;
mod application;
mod contain;
mod handshakes;
mod io;
mod link;
mod orders;
mod pace;
mod peers;
mod tick;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use bytes::{BufMut, Bytes, BytesMut};
use diameter_proto::known::{application as applications, command};
use diameter_proto::peer::Capabilities;
use diameter_proto::{CommandFlags, MessageMut, Pending};
use slab::Slab;
use tokio::task::JoinHandle;

use crate::config::{DynamicPeers, Limits, NodeConfig, Security};
use crate::connection::{Connection, ConnectionId, count};
use crate::directory::Seat;

pub use application::{Application, Kept, NodeEvent, Unanswered, UnansweredReason};
pub use peers::{AddPeerError, PeerStatus};

/// A node. Cheap to clone; all clones are the same node.
pub struct Node<A: Application>(pub(crate) Rc<Inner<A>>);

impl<A: Application> Clone for Node<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(crate) struct Inner<A: Application> {
    app: A,
    limits: Limits,
    dynamic: RefCell<Vec<DynamicPeers>>,
    /// Whether a CER without Host-IP-Address is refused.
    strict: bool,
    /// Connections of front ends whose PROXY header has not come.
    announcing: Cell<usize>,
    local: Arc<Capabilities>,
    connections: RefCell<Slab<Link<A>>>,
    next_generation: Cell<u32>,
    handshakes: RefCell<handshakes::Handshakes>,
    pending: RefCell<Pending<Waiting<A::Context>>>,
    /// Kept requests, oldest first, to be copied out of read buffers after a while.
    kept: RefCell<VecDeque<(Instant, u32, u32)>>,
    /// Bytes of kept requests.
    kept_bytes: Cell<usize>,
    peers: RefCell<peers::Peers>,
    outputs: RefCell<VecDeque<peers::Order<A::State>>>,
    draining: Cell<bool>,
    directory: Option<(Arc<crate::directory::Directory>, usize)>,
    now: Cell<Instant>,
    next_end_to_end: Cell<u32>,
    random: Cell<u64>,
    pace: pace::Pace,
    tasks: RefCell<Vec<JoinHandle<()>>>,
    stopping: Cell<bool>,
}

/// A connection and its security.
struct Link<A: Application> {
    connection: Rc<Connection<A::State>>,
    security: Security,
    /// The name in the peer's certificate, when it was checked.
    tls: Option<link::TlsPeer>,
}

/// A pending request.
#[derive(Debug)]
struct Waiting<C> {
    context: C,
    kept: Option<Kept>,
}

/// Outcome of a read message.
pub(crate) enum Verdict {
    Handled,
    /// It is the CER of a peer that belongs to that worker.
    Elsewhere(usize, MessageMut),
}

/// How a request is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Forward<'a> {
    /// Its deadline.
    pub deadline: Instant,
    /// Encoded AVPs to append: the Route-Record of the connection it came from
    /// ([`Connection::route_record`]). Empty for none.
    pub append: &'a Bytes,
    /// Whether to keep the request, to be sent once more elsewhere if this fails.
    pub keep: bool,
}

/// A request that was not sent; another try is safe.
#[derive(Debug)]
pub struct Refused<C> {
    /// Why.
    pub why: RefusedReason,
    /// The request, unchanged except for its Hop-by-Hop Identifier.
    pub message: MessageMut,
    /// Its context.
    pub context: C,
}

/// Why a request could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RefusedReason {
    /// The connection is not open (any more).
    #[error("the connection is not open")]
    NotOpen,
    /// The peer reads too slowly: its queue is full.
    #[error("the peer's queue is full")]
    QueueFull,
    /// Too many requests are pending, of this peer or in all.
    #[error("too many requests are pending")]
    PendingFull,
    /// With what is to be appended, the length exceeds 24 bits.
    #[error("the message is too long to append to")]
    TooLong,
}

impl<A: Application> Node<A> {
    /// A node on this worker. Call it within a `LocalSet`: the node's tasks are local ones.
    ///
    /// With several workers, give each a [`Seat`] of the same [`crate::Directory`], so that a peer's
    /// connections meet wherever they were accepted. `seed` makes identifiers differ from those of the last
    /// run.
    #[must_use]
    pub fn new(config: NodeConfig, app: A, seat: Option<Seat>, seed: u64) -> Self {
        let now = tokio::time::Instant::now().into_std();
        let seed = seed ^ seat.as_ref().map_or(0, |seat| (seat.worker as u64 + 1) << 56);
        let NodeConfig {
            local,
            limits,
            dynamic,
            strict,
        } = config;
        let pending = Pending::new(now, limits.pending, seed as u32);
        let (directory, mailbox) = match seat {
            Some(Seat {
                directory,
                worker,
                mailbox,
            }) => (Some((directory, worker)), Some(mailbox)),
            None => (None, None),
        };
        let node = Self(Rc::new(Inner {
            app,
            local: Arc::new(local),
            connections: RefCell::default(),
            next_generation: Cell::new(0),
            handshakes: RefCell::default(),
            pending: RefCell::new(pending),
            kept: RefCell::default(),
            kept_bytes: Cell::new(0),
            peers: RefCell::default(),
            outputs: RefCell::default(),
            draining: Cell::new(false),
            directory,
            now: Cell::new(now),
            // RFC 6733 §3: the high bits from the time, so that a restart does not repeat identifiers.
            next_end_to_end: Cell::new((seed >> 12) as u32),
            random: Cell::new(seed | 1),
            pace: pace::Pace::new(limits.gather, Instant::now()),
            tasks: RefCell::default(),
            stopping: Cell::new(false),
            limits,
            dynamic: RefCell::new(dynamic),
            strict,
            announcing: Cell::new(0),
        }));
        node.spawn_ticks();
        node.spawn_pacer();
        if let Some(mailbox) = mailbox {
            node.spawn_mailbox(mailbox);
        }
        node
    }

    /// The owner.
    #[inline]
    #[must_use]
    pub fn app(&self) -> &A {
        &self.0.app
    }

    /// Our capabilities.
    #[must_use]
    pub fn local(&self) -> &Arc<Capabilities> {
        &self.0.local
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The time of the last read or tick: for deadlines, without a clock read for each message.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// Reads the clock: for actions after a pause that no read or tick has ended.
    #[inline]
    pub fn refresh(&self) -> Instant {
        let now = tokio::time::Instant::now().into_std();
        self.0.now.set(now);
        now
    }

    pub(crate) fn random(&self) -> u64 {
        let mut random = self.0.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.0.random.set(random);
        random
    }

    /// Number of pending requests.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.pending.borrow().len()
    }

    /// Number of pending requests of this connection.
    #[must_use]
    pub fn pending_of(&self, id: ConnectionId) -> u32 {
        self.0.pending.borrow().owned(id.slot)
    }

    /// The connection of that id, while it lives.
    #[inline]
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<Rc<Connection<A::State>>> {
        let connections = self.0.connections.borrow();
        let link = connections.get(id.slot as usize)?;
        (link.connection.id() == id).then(|| link.connection.clone())
    }

    /// Every connection, also before its CER has arrived.
    #[must_use]
    pub fn connections(&self) -> Vec<Rc<Connection<A::State>>> {
        self.0
            .connections
            .borrow()
            .iter()
            .map(|(_, link)| link.connection.clone())
            .collect()
    }

    // ---- in ---------------------------------------------------------------------------------------------

    /// Handles a message.
    #[inline]
    pub(crate) fn received(&self, from: &Rc<Connection<A::State>>, message: MessageMut) -> Verdict {
        let is_base = message.application() == applications::COMMON
            && matches!(
                message.command(),
                command::CAPABILITIES_EXCHANGE | command::DEVICE_WATCHDOG | command::DISCONNECT_PEER
            );
        if is_base || from.peer().is_none() {
            if !self.bears_base(from) {
                return Verdict::Handled;
            }
            return self.received_base(from, message);
        }
        let cause = match follow::active() {
            None => None,
            Some(room) => from.tap(&room, follow::Direction::In, message.as_bytes()),
        };
        if message.is_request() {
            count(&from.figures().requests_in, 1);
            match cause {
                None => self.0.app.request(self, from, message),
                Some(cause) => self.caused(cause, from, message),
            }
        } else {
            let waiting = self
                .0
                .pending
                .borrow_mut()
                .take(from.id().slot, message.hop_by_hop());
            match waiting {
                Some(waiting) => {
                    self.release_bytes(from, &waiting);
                    self.0
                        .app
                        .answer_to(self, from, waiting.context, waiting.kept, message);
                }
                None => {
                    let figures = from.figures();
                    count(&figures.answers_unmatched, 1);
                    // A request that was given up may still be answered, once.
                    if figures.answers_unmatched.get() > figures.timeouts.get() {
                        self.bears_base(from);
                    }
                }
            }
        }
        Verdict::Handled
    }

    /// A request of a followed subscriber.
    #[cold]
    fn caused(&self, cause: follow::Cause, from: &Rc<Connection<A::State>>, message: MessageMut) {
        cause.run(|| self.0.app.request(self, from, message));
    }

    /// Whether a connection keeps to [`Limits::base_rate`]; one that does not is closed.
    #[cold]
    fn bears_base(&self, from: &Rc<Connection<A::State>>) -> bool {
        if from.allows_base(self.now(), self.limits().base_rate) {
            return true;
        }
        if from.ending.get() == crate::connection::Ending::Open {
            let remote = from.remote();
            self.app().event(self, NodeEvent::Flooded { remote });
        }
        from.end(crate::connection::Ending::Now);
        false
    }

    // ---- out --------------------------------------------------------------------------------------------

    /// Forwards a request as a relay does: with a new Hop-by-Hop Identifier in place and AVPs appended, otherwise
    /// unchanged. Its answer arrives with `context` at [`Application::answer`]; without one, `context` goes to
    /// [`Application::unanswered`].
    ///
    /// # Errors
    /// When it cannot be sent there. Nothing was.
    #[inline]
    #[allow(clippy::result_large_err)]
    pub fn forward(
        &self,
        to: &Connection<A::State>,
        mut message: MessageMut,
        how: Forward<'_>,
        context: A::Context,
    ) -> Result<(), Refused<A::Context>> {
        if let Err(why) = self.may_send(to, message.as_bytes().len() + how.append.len()) {
            return Err(Refused {
                why,
                message,
                context,
            });
        }
        if !how.append.is_empty() && !message.announce_appended(how.append.len()) {
            return Err(Refused {
                why: RefusedReason::TooLong,
                message,
                context,
            });
        }
        let slot = to.id().slot;
        let length = message.as_bytes().len();
        let mut pending = self.0.pending.borrow_mut();
        let mut sent = Bytes::new();
        let id = pending.insert_with(slot, how.deadline, |id| {
            message.set_hop_by_hop(id);
            let message = message.freeze();
            sent = message.as_shared().clone();
            let kept = how.keep.then(|| Kept {
                message,
                appended: (!how.append.is_empty()).then(|| how.append.clone()),
            });
            Waiting { context, kept }
        });
        drop(pending);
        if how.keep {
            self.hold_bytes(to, length);
            self.0.kept.borrow_mut().push_back((self.now(), slot, id));
        }
        count(&to.figures().requests_out, 1);
        if how.append.is_empty() {
            to.enqueue([], sent);
        } else {
            to.enqueue([sent], how.append.clone());
        }
        Ok(())
    }

    /// Sends a kept request elsewhere, with the T flag (RFC 6733 §5.5.4). The AVPs are those that were sent
    /// the first time; only the header is new.
    ///
    /// # Errors
    /// When it cannot be sent there either.
    pub fn forward_again(
        &self,
        to: &Connection<A::State>,
        kept: Kept,
        deadline: Instant,
        context: A::Context,
    ) -> Result<(), (RefusedReason, Kept, A::Context)> {
        self.forward_kept(to, kept, deadline, CommandFlags::RETRANSMITTED, context)
    }

    /// Sends a kept request with these flags added to its own: the T flag, or none where the answer of the first
    /// receiver shows that it did not process the request. The AVPs are those that were kept; only the header is new.
    ///
    /// # Errors
    /// When it cannot be sent there.
    pub fn forward_kept(
        &self,
        to: &Connection<A::State>,
        kept: Kept,
        deadline: Instant,
        more: CommandFlags,
        context: A::Context,
    ) -> Result<(), (RefusedReason, Kept, A::Context)> {
        let appended = kept.appended.as_ref().map_or(0, Bytes::len);
        let length = kept.message.as_bytes().len() + appended;
        if length > diameter_proto::header::MAX_LENGTH {
            return Err((RefusedReason::TooLong, kept, context));
        }
        if let Err(why) = self.may_send(to, length) {
            return Err((why, kept, context));
        }
        let message_bytes = kept.message.as_bytes().len();
        let (mut header, rest) = kept.message.split();
        header.flags = header.flags.with(more);
        header.length = length as u32;
        let slot = to.id().slot;
        let tail = kept.appended.clone();
        let id = self.0.pending.borrow_mut().insert_with(slot, deadline, |id| {
            header.hop_by_hop = id;
            Waiting {
                context,
                kept: Some(kept),
            }
        });
        self.hold_bytes(to, message_bytes);
        self.0.kept.borrow_mut().push_back((self.now(), slot, id));
        count(&to.figures().requests_out, 1);
        let mut head = BytesMut::with_capacity(diameter_proto::HEADER_LEN);
        head.put_slice(&header.encode());
        let head = head.freeze();
        match tail {
            Some(tail) => to.enqueue([head, rest], tail),
            None => to.enqueue([head], rest),
        }
        Ok(())
    }

    /// Sends a request of our own. An End-to-End Identifier of 0 is replaced by a fresh one.
    ///
    /// # Errors
    /// When it cannot be sent there. Nothing was.
    #[allow(clippy::result_large_err)]
    pub fn request(
        &self,
        to: &Connection<A::State>,
        mut message: MessageMut,
        deadline: Instant,
        context: A::Context,
    ) -> Result<(), Refused<A::Context>> {
        if message.end_to_end() == 0 {
            message.set_end_to_end(self.end_to_end());
        }
        static NOTHING: Bytes = Bytes::new();
        self.forward(
            to,
            message,
            Forward {
                deadline,
                append: &NOTHING,
                keep: false,
            },
            context,
        )
    }

    /// Sends an answer, under the Hop-by-Hop Identifier of the request. False when the connection is closed or its
    /// queue full; the answer is then lost, as it would be on the wire.
    #[inline]
    pub fn answer(&self, to: &Connection<A::State>, mut message: MessageMut, hop_by_hop: u32) -> bool {
        let length = message.as_bytes().len();
        if !to.is_open() || to.is_full(length) {
            return false;
        }
        message.set_hop_by_hop(hop_by_hop);
        to.enqueue([], message.into_bytes().freeze());
        true
    }

    /// As [`Node::answer`], with encoded AVPs appended, such as an overload report. Nothing is sent when the
    /// length would exceed 24 bits.
    #[inline]
    pub fn answer_with(
        &self,
        to: &Connection<A::State>,
        mut message: MessageMut,
        hop_by_hop: u32,
        append: Bytes,
    ) -> bool {
        let length = message.as_bytes().len() + append.len();
        if !to.is_open() || to.is_full(length) || !message.announce_appended(append.len()) {
            return false;
        }
        message.set_hop_by_hop(hop_by_hop);
        to.enqueue([message.into_bytes().freeze()], append);
        true
    }

    /// A fresh End-to-End Identifier.
    #[must_use]
    pub fn end_to_end(&self) -> u32 {
        let id = self.0.next_end_to_end.get().wrapping_add(1).max(1);
        self.0.next_end_to_end.set(id);
        id
    }

    fn may_send(&self, to: &Connection<A::State>, length: usize) -> Result<(), RefusedReason> {
        if !to.is_open() {
            return Err(RefusedReason::NotOpen);
        }
        if to.is_full(length) {
            return Err(RefusedReason::QueueFull);
        }
        let pending = self.0.pending.borrow();
        if pending.is_full() || pending.owned(to.id().slot) as usize >= self.limits().pending_per_peer {
            return Err(RefusedReason::PendingFull);
        }
        let limits = self.limits();
        let full = self.0.kept_bytes.get() + length > limits.pending_bytes
            || to.kept_bytes.get() + length > limits.pending_bytes_per_peer;
        if full {
            return Err(RefusedReason::PendingFull);
        }
        Ok(())
    }

    /// Bytes of pending requests that are kept, all peers together.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.0.kept_bytes.get()
    }

    /// A request of this length is kept until its answer arrives.
    #[inline]
    fn hold_bytes(&self, to: &Connection<A::State>, length: usize) {
        self.0.kept_bytes.set(self.0.kept_bytes.get() + length);
        to.kept_bytes.set(to.kept_bytes.get() + length);
    }

    /// A request is not pending any more.
    #[inline]
    fn release_bytes(&self, of: &Connection<A::State>, waiting: &Waiting<A::Context>) {
        let Some(kept) = &waiting.kept else { return };
        let length = kept.message.as_bytes().len();
        for held in [&self.0.kept_bytes, &of.kept_bytes] {
            held.set(held.get().saturating_sub(length));
        }
    }

    /// Bytes of pending requests that are kept.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.0.kept_bytes.get()
    }

    fn by_host(peers: &AHashMap<Box<str>, usize>, host: &str) -> Option<usize> {
        peers.get(&*host.to_ascii_lowercase()).copied()
    }
}
