//! What a node's owner implements: the messages that come, the answers that do not, the peers that come and
//! go. A router implements it to pass messages on ([`Node::forward`]); the endpoint implements it for
//! those who want to send requests and answer them.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use diameter_proto::peer::{DownReason, Health};
use diameter_proto::{Fault, FrameError, Message, MessageMut};

use super::Node;
use crate::connection::Connection;
use crate::peer::PeerUp;

/// The owner of a node. Every call comes on the worker's thread, and no call is made while another of the
/// same node is under way, except from within the node's own methods.
///
/// Messages come framed, with a right version and length; their AVPs have not been looked at
/// ([`diameter_proto::Routing::scan`] does, and proves their frames).
pub trait Application: Sized + 'static {
    /// What is remembered for each request that was sent, until its answer comes.
    type Context: 'static;
    /// What is kept for each open connection.
    type State: 'static;

    /// A peer is about to be open; messages can be sent once this returns, and
    /// [`Application::peer_health`] says that they should. What is returned is at hand as
    /// [`Connection::state`].
    fn peer_up(
        &self,
        node: &Node<Self>,
        connection: &Rc<Connection<Self::State>>,
        peer: &PeerUp,
    ) -> Self::State;

    /// A peer is not open any more. Its unanswered requests follow, each through
    /// [`Application::unanswered`].
    fn peer_down(&self, node: &Node<Self>, connection: &Rc<Connection<Self::State>>, reason: DownReason);

    /// The watchdog changed its mind: requests should go to this peer ([`Health::Okay`]) or not.
    fn peer_health(&self, node: &Node<Self>, connection: &Rc<Connection<Self::State>>, health: Health) {
        let _ = (node, connection, health);
    }

    /// A request came. Nobody else answers it.
    fn request(&self, node: &Node<Self>, from: &Rc<Connection<Self::State>>, message: MessageMut);

    /// An answer came, to a request that was sent with this context.
    fn answer(
        &self,
        node: &Node<Self>,
        from: &Rc<Connection<Self::State>>,
        context: Self::Context,
        message: MessageMut,
    );

    /// As [`Application::answer`], with the request if it was sent with [`crate::Forward::keep`]: for those who
    /// send it elsewhere when they do not like the answer.
    #[inline]
    fn answer_to(
        &self,
        node: &Node<Self>,
        from: &Rc<Connection<Self::State>>,
        context: Self::Context,
        kept: Option<Kept>,
        message: MessageMut,
    ) {
        drop(kept);
        self.answer(node, from, context, message);
    }

    /// No answer came, and none will be delivered any more.
    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Self::Context, Self::State>);

    /// Whether a request whose peer is in doubt can be sent elsewhere. If so, [`Application::unanswered`] follows; if
    /// not, it goes on waiting for its answer.
    fn has_alternative(&self, context: &Self::Context, kept: Option<&Kept>) -> bool {
        let _ = (context, kept);
        false
    }

    /// A peer that lives nowhere yet has connected: the worker it should live on. None for this one.
    fn place(&self, node: &Node<Self>, host: &str) -> Option<usize> {
        let _ = (node, host);
        None
    }

    /// Something happened that is worth a count, a log line or an alarm.
    fn event(&self, node: &Node<Self>, event: NodeEvent<'_>) {
        let _ = node;
        tracing::debug!(?event, "diameter");
    }
}

/// What can happen to a node besides messages and peers.
#[derive(Clone, Copy, Debug)]
pub enum NodeEvent<'a> {
    /// A CER was refused; the answer said so.
    Refused {
        /// Who sent it.
        remote: SocketAddr,
        /// Why.
        fault: &'a Fault,
    },
    /// Somebody connected and began with something other than a CER.
    NoCer {
        /// Who.
        remote: SocketAddr,
    },
    /// The bytes of a connection are no messages (any more); it is closed.
    FrameError {
        /// Whose.
        remote: SocketAddr,
        /// What was wrong.
        error: &'a FrameError,
    },
    /// A connection was turned away because of the [`crate::Limits`] field of that name.
    LimitReached {
        /// Whose.
        remote: SocketAddr,
        /// Name of the limit.
        limit: &'static str,
    },
    /// A connection was cut off because it brought more messages of the base protocol, or answers to no request,
    /// than [`crate::Limits::base_rate`].
    Flooded {
        /// Whose.
        remote: SocketAddr,
    },
    /// A connection was cut off because it stood still in `handshake`, `read` or `write`.
    Stalled {
        /// Whose.
        remote: SocketAddr,
        /// In what.
        what: &'static str,
    },
    /// Connecting to a peer failed; it will be tried again.
    ConnectFailed {
        /// The peer.
        host: &'a str,
        /// Why.
        error: &'a io::Error,
    },
    /// A connection could not be accepted.
    AcceptFailed {
        /// Why.
        error: &'a io::Error,
    },
}

/// A request that will not be answered.
#[derive(Debug)]
pub struct Unanswered<C, S> {
    /// What was remembered.
    pub context: C,
    /// Where it was sent.
    pub connection: Rc<Connection<S>>,
    /// Why it is given up.
    pub why: UnansweredReason,
    /// The request, if it was sent with [`crate::Forward::keep`], for [`Node::forward_again`].
    pub kept: Option<Kept>,
}

/// Why a request is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnansweredReason {
    /// Its deadline passed.
    Timeout,
    /// The connection it was sent on is gone, or is in doubt and there is another way.
    ConnectionLost,
    /// The node stops, and its time to wait is over.
    Stopping,
}

/// A request that was kept to be sent once more.
#[derive(Clone, Debug)]
pub struct Kept {
    /// As it was sent, except for what was appended.
    pub(crate) message: Message,
    /// What was appended.
    pub(crate) appended: Option<Bytes>,
}

impl Kept {
    /// A request to be sent by [`Node::forward_kept`], with encoded AVPs to append. Its length field counts
    /// the message alone; whatever is appended is counted when it is sent.
    #[must_use]
    pub fn new(message: Message, appended: Bytes) -> Self {
        Self {
            message,
            appended: (!appended.is_empty()).then_some(appended),
        }
    }

    /// The request without what was appended; its length field may count that too.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// The encoded AVPs that are appended to it.
    #[must_use]
    pub fn appended(&self) -> &[u8] {
        self.appended.as_deref().unwrap_or_default()
    }

    /// Moves the request out of the buffer it was read into, which may be far larger, so that keeping the
    /// one does not keep the other.
    pub(crate) fn make_own(&mut self) {
        self.message = self.message.copied();
    }
}
