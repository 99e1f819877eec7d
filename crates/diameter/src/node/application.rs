//! The interface of a node's owner: incoming messages, failed requests, peers that connect and disconnect. A router
//! implements it to forward messages ([`Node::forward`]); the endpoint implements it to send requests of its own.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use diameter_proto::peer::{DownReason, Health};
use diameter_proto::{Fault, FrameError, Message, MessageMut};

use super::Node;
use crate::connection::Connection;
use crate::peer::PeerUp;

/// The owner of a node. Every call is made on the worker's thread, and no call is made during another one of the same
/// node, except from within the node's own methods.
///
/// Messages are framed, with a valid version and length; their AVPs are not parsed yet
/// ([`diameter_proto::Routing::scan`] does, and checks their frames).
pub trait Application: Sized + 'static {
    /// The context of each request, stored until its answer arrives.
    type Context: 'static;
    /// The application's state for each open connection.
    type State: 'static;

    /// A peer is about to be open; messages can be sent once this returns, and [`Application::peer_health`] reports
    /// that they should. The return value is available as [`Connection::state`].
    fn peer_up(
        &self,
        node: &Node<Self>,
        connection: &Rc<Connection<Self::State>>,
        peer: &PeerUp,
    ) -> Self::State;

    /// A peer is not open any more. Its unanswered requests follow, each through
    /// [`Application::unanswered`].
    fn peer_down(&self, node: &Node<Self>, connection: &Rc<Connection<Self::State>>, reason: DownReason);

    /// The status of the watchdog has changed: requests should go to this peer ([`Health::Okay`]) or not.
    fn peer_health(&self, node: &Node<Self>, connection: &Rc<Connection<Self::State>>, health: Health) {
        let _ = (node, connection, health);
    }

    /// A request has arrived. Only the application answers it.
    fn request(&self, node: &Node<Self>, from: &Rc<Connection<Self::State>>, message: MessageMut);

    /// An answer has arrived, to a request that was sent with this context.
    fn answer(
        &self,
        node: &Node<Self>,
        from: &Rc<Connection<Self::State>>,
        context: Self::Context,
        message: MessageMut,
    );

    /// As [`Application::answer`], with the request if it was sent with [`crate::Forward::keep`]: for applications that
    /// retry it elsewhere, depending on the answer.
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

    /// The request has failed; no answer to it will be delivered any more.
    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Self::Context, Self::State>);

    /// Whether a request whose peer is suspect can be sent elsewhere. If so, [`Application::unanswered`] follows; if
    /// not, the request stays pending.
    fn has_alternative(&self, context: &Self::Context, kept: Option<&Kept>) -> bool {
        let _ = (context, kept);
        false
    }

    /// Whether the application owes this peer answers to requests, as its DPR arrives.
    fn awaits_answers(&self, connection: &Connection<Self::State>) -> bool {
        let _ = connection;
        false
    }

    /// A peer without an owner has connected: the worker that should own it. None for this one.
    fn place(&self, node: &Node<Self>, host: &str) -> Option<usize> {
        let _ = (node, host);
        None
    }

    /// An event that deserves a counter, a log line or an alarm.
    fn event(&self, node: &Node<Self>, event: NodeEvent<'_>) {
        let _ = node;
        tracing::debug!(?event, "diameter");
    }
}

/// Events of a node besides messages and peers.
#[derive(Clone, Copy, Debug)]
pub enum NodeEvent<'a> {
    /// A CER was refused, with an answer.
    Refused {
        /// Who sent it.
        remote: SocketAddr,
        /// Its Origin-Host; empty where it has none.
        host: &'a str,
        /// Why.
        fault: &'a Fault,
    },
    /// A connection began with a message other than a CER.
    NoCer {
        /// Who.
        remote: SocketAddr,
    },
    /// The bytes of a connection are not Diameter messages (any more); it is closed.
    FrameError {
        /// Whose.
        remote: SocketAddr,
        /// The peer, if it is known.
        host: Option<&'a str>,
        /// What was wrong.
        error: &'a FrameError,
    },
    /// The TLS handshake of a connection failed.
    HandshakeFailed {
        /// Whose.
        remote: SocketAddr,
        /// The peer, if this node has connected to it.
        host: Option<&'a str>,
        /// Why.
        error: &'a io::Error,
    },
    /// A connection was refused because of the [`crate::Limits`] field of that name.
    LimitReached {
        /// Whose.
        remote: SocketAddr,
        /// Name of the limit.
        limit: &'static str,
    },
    /// A connection was closed because it brought more messages of the base protocol, or answers without a request,
    /// than [`crate::Limits::base_rate`].
    Flooded {
        /// Whose.
        remote: SocketAddr,
    },
    /// A connection was closed because it made no progress in `handshake`, `read` or `write`.
    Stalled {
        /// Whose.
        remote: SocketAddr,
        /// The peer, if it is known.
        host: Option<&'a str>,
        /// The step.
        what: &'static str,
    },
    /// Connecting to a peer failed; it will be tried again.
    ConnectFailed {
        /// The peer.
        host: &'a str,
        /// Why.
        error: &'a io::Error,
    },
    /// A panic of this application; the connection whose message or event it handled is closed.
    Panicked {
        /// Whose, if it was about one connection.
        remote: Option<SocketAddr>,
    },
    /// A front end sent no valid PROXY header: the address of its client is unknown, so the connection is closed.
    NoProxyHeader {
        /// The front end.
        remote: SocketAddr,
        /// What was wrong.
        error: &'a io::Error,
    },
    /// A peer has left out what nothing depends on; it is admitted.
    Tolerated {
        /// The peer.
        host: &'a str,
        /// What is missing.
        what: &'static str,
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
    /// Its context.
    pub context: C,
    /// The connection it was sent on.
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
    /// The connection it was sent on is closed, or suspect and the request can be sent elsewhere.
    ConnectionLost,
    /// The node stops, and its grace period is over.
    Stopping,
}

/// A kept request, for another try.
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

    /// Copies the request out of its read buffer, which may be far larger, so that a kept request does not keep the
    /// buffer.
    pub(crate) fn make_own(&mut self) {
        self.message = self.message.copied();
    }
}
