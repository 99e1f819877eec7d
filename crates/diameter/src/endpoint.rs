//! Sends requests and answers them: a client and server in one, as Diameter nodes are.
//!
//! An [`Endpoint`] is a [`Node`] whose owner passes every request to a [`Service`] and every answer to the caller that
//! awaits it. Requests go to a peer by name, or to an available peer that serves the application (RFC 6733 §6.1), and
//! may go to another one, with the T flag, when the connection breaks.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use diameter_proto::peer::{DownReason, Health};
use diameter_proto::{Fault, Message, MessageBuilder, MessageMut, ResultCode, Routing};
use tokio::sync::oneshot;

use crate::config::NodeConfig;
use crate::connection::Connection;
use crate::directory::Seat;
use crate::node::{Application, Forward, Node, RefusedReason, Unanswered, UnansweredReason};
use crate::peer::PeerUp;
use crate::spans;

/// What answers requests.
pub trait Service: 'static {
    /// Answers a request. Polled once where the request was read; it becomes a task of its own only if it is not ready
    /// then.
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = MessageMut> + 'static;
}

/// A service that refuses every request: for clients.
#[derive(Debug)]
pub struct ClientOnly;

impl Service for ClientOnly {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        request.refuse(&Fault::new(
            ResultCode::COMMAND_UNSUPPORTED,
            "this node answers no requests",
        ))
    }
}

/// A request to be answered.
#[derive(Debug)]
pub struct Request {
    /// The message. Its top-level AVPs are framed right and its flags fit together.
    pub message: Message,
    /// The connection on which it arrived.
    pub from: Rc<Connection<()>>,
    origin: Rc<diameter_proto::Origin>,
}

impl Request {
    /// An answer with this result, Origin-Host, Origin-Realm and the request's Proxy-Info, to be completed and finished.
    #[must_use]
    pub fn answer(&self, code: ResultCode) -> MessageBuilder {
        let mut builder = MessageBuilder::answer(&self.message);
        builder.result(code, &self.origin);
        builder.copy_proxies(&self.message);
        builder
    }

    /// The whole answer that refuses the request.
    #[must_use]
    pub fn refuse(&self, fault: &Fault) -> MessageMut {
        MessageBuilder::error_answer(&self.message, &self.origin, fault)
    }
}

/// The peer that a request is for.
#[derive(Clone, Copy, Debug)]
pub enum To<'a> {
    /// The peer of this DiameterIdentity.
    Peer(&'a str),
    /// The peer that the Destination-Host names if there is one, else any available peer that serves the
    /// application: first those of the Destination-Realm, then relays; in turn among equals.
    Routed,
}

/// Timeout and retry of a request.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    /// Timeout of the answer, all tries together.
    pub deadline: Duration,
    /// Whether to send it once more elsewhere, with the T flag, when the connection breaks before the answer has
    /// arrived. The receiver recognises duplicates by End-to-End Identifier and Origin-Host (RFC 6733 §3).
    pub failover: bool,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            failover: true,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// No available peer serves the application, or the named one is not available.
    #[error("no peer is available for this request")]
    NoPeer,
    /// It could not be sent.
    #[error("the request could not be sent: {0}")]
    Refused(RefusedReason),
    /// The deadline passed. The peer may have processed it.
    #[error("no answer came in time")]
    Timeout,
    /// The connection broke. The peer may have processed it.
    #[error("the connection broke before the answer came")]
    ConnectionLost,
}

impl RequestError {
    /// Whether another try is safe in any case, because nothing was sent.
    #[must_use]
    pub const fn is_unsent(self) -> bool {
        matches!(self, Self::NoPeer | Self::Refused(_))
    }
}

/// An endpoint. Cheap to clone; all clones are the same.
pub struct Endpoint<S: Service>(Node<Owner<S>>);

impl<S: Service> Clone for Endpoint<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The receiver of one answer.
#[derive(Debug)]
pub struct Awaited {
    done: oneshot::Sender<Result<Message, RequestError>>,
    deadline: Instant,
    failover: bool,
    application: u32,
    realm: Option<Box<[u8]>>,
}

/// The node's owner: between the node and the service.
pub struct Owner<S> {
    service: Rc<S>,
    origin: Rc<diameter_proto::Origin>,
    available: RefCell<Vec<Rc<Connection<()>>>>,
    next: Cell<usize>,
    /// Requests the service has not answered yet.
    calls: Cell<usize>,
    max_calls: usize,
    changed: Rc<tokio::sync::Notify>,
}

/// Requests that a service works on at once. Further requests are refused with `DIAMETER_TOO_BUSY`.
pub const MAX_CALLS: usize = 10_000;

impl<S: Service> Endpoint<S> {
    /// An endpoint on this worker, with at most [`MAX_CALLS`] calls at once. As [`Node::new`].
    #[must_use]
    pub fn new(config: NodeConfig, service: S, seat: Option<Seat>, seed: u64) -> Self {
        Self::with_max_calls(config, service, seat, seed, MAX_CALLS)
    }

    /// An endpoint whose service works on at most `max_calls` requests at once.
    #[must_use]
    pub fn with_max_calls(
        config: NodeConfig,
        service: S,
        seat: Option<Seat>,
        seed: u64,
        max_calls: usize,
    ) -> Self {
        let owner = Owner {
            service: Rc::new(service),
            origin: Rc::new(config.local.origin.clone()),
            available: RefCell::default(),
            next: Cell::new(0),
            calls: Cell::new(0),
            max_calls,
            changed: Rc::default(),
        };
        Self(Node::new(config, owner, seat, seed))
    }

    /// The node: to listen, add peers, see connections, stop.
    #[must_use]
    pub const fn node(&self) -> &Node<Owner<S>> {
        &self.0
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &Rc<S> {
        &self.0.app().service
    }

    /// Waits until the peer of this name is available.
    pub async fn available(&self, host: &str) {
        loop {
            let changed = self.0.app().changed.clone();
            let changed = changed.notified();
            if self.0.app().named(host).is_some() {
                return;
            }
            changed.await;
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When there is no answer. An answer that refuses the request is an answer.
    pub async fn request(
        &self,
        to: To<'_>,
        message: MessageMut,
        options: SendOptions,
    ) -> Result<Message, RequestError> {
        let (done, answer) = oneshot::channel();
        let now = self.0.refresh();
        let owner = self.0.app();
        let (connection, realm) = {
            let routing = Routing::scan(&message, b"").unwrap_or_default();
            let found = match to {
                To::Peer(host) => owner.named(host),
                To::Routed => {
                    let host = routing
                        .destination_host
                        .and_then(|host| std::str::from_utf8(host).ok());
                    host.and_then(|host| owner.named(host))
                        .or_else(|| owner.routed(message.application(), routing.destination_realm))
                }
            };
            (
                found.ok_or(RequestError::NoPeer)?,
                routing.destination_realm.map(Into::into),
            )
        };
        let deadline = now + options.deadline;
        let application = message.application();
        let failover = options.failover && matches!(to, To::Routed);
        let awaited = Awaited {
            done,
            deadline,
            failover,
            application,
            realm,
        };
        let mut message = message;
        if message.end_to_end() == 0 {
            message.set_end_to_end(self.0.end_to_end());
        }
        let span = spans::sent(&message);
        static NOTHING: bytes::Bytes = bytes::Bytes::new();
        let how = Forward {
            deadline,
            append: &NOTHING,
            keep: failover,
        };
        let answer = match self.0.forward(&connection, message, how, awaited) {
            // The sender is dropped only with the node.
            Ok(()) => answer.await.unwrap_or(Err(RequestError::ConnectionLost)),
            Err(refused) => Err(RequestError::Refused(refused.why)),
        };
        if let Some(span) = span {
            spans::answered(span, &answer);
        }
        answer
    }
}

impl<S: Service> Owner<S> {
    fn named(&self, host: &str) -> Option<Rc<Connection<()>>> {
        let available = self.available.borrow();
        let is = |connection: &&Rc<Connection<()>>| {
            connection
                .peer()
                .is_some_and(|up| up.remote.origin.host.eq_ignore_ascii_case(host))
        };
        available.iter().find(is).cloned()
    }

    fn routed(&self, application: u32, realm: Option<&[u8]>) -> Option<Rc<Connection<()>>> {
        let available = self.available.borrow();
        let turn = self.next.get();
        self.next.set(turn.wrapping_add(1));
        let serves = |connection: &Rc<Connection<()>>| {
            connection.peer().is_some_and(|up| up.remote.serves(application))
        };
        let in_realm = |connection: &Rc<Connection<()>>| match realm {
            None => true,
            Some(realm) => connection
                .peer()
                .is_some_and(|up| up.remote.origin.realm.as_bytes().eq_ignore_ascii_case(realm)),
        };
        let is_relay =
            |connection: &Rc<Connection<()>>| connection.peer().is_some_and(|up| up.remote.is_relay());
        let pick = |fits: &dyn Fn(&Rc<Connection<()>>) -> bool| {
            let count = available.iter().filter(|connection| fits(connection)).count();
            let nth = if count == 0 { 0 } else { turn % count };
            available
                .iter()
                .filter(|connection| fits(connection))
                .nth(nth)
                .cloned()
        };
        pick(&|connection| serves(connection) && in_realm(connection))
            .or_else(|| pick(&|connection| is_relay(connection)))
    }

    fn reply(&self, node: &Node<Self>, to: &Connection<()>, hop_by_hop: u32, answer: MessageMut) {
        // A peer that is disconnected or reads nothing gets no answer, as if the network had lost it.
        let _ = node.answer(to, answer, hop_by_hop);
    }
}

impl<S: Service> Application for Owner<S> {
    type Context = Awaited;
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: &PeerUp) {}

    fn peer_down(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, _: DownReason) {
        self.available
            .borrow_mut()
            .retain(|other| other.id() != connection.id());
        self.changed.notify_waiters();
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, health: Health) {
        let mut available = self.available.borrow_mut();
        available.retain(|other| other.id() != connection.id());
        if health == Health::Okay {
            available.push(connection.clone());
        }
        drop(available);
        self.changed.notify_waiters();
    }

    fn request(&self, node: &Node<Self>, from: &Rc<Connection<()>>, message: MessageMut) {
        let hop_by_hop = message.hop_by_hop();
        let request = Request {
            message: message.freeze(),
            from: from.clone(),
            origin: self.origin.clone(),
        };
        if let Err(fault) = self.check(node, &request) {
            return self.reply(node, from, hop_by_hop, request.refuse(&fault));
        }
        let span = spans::received(&request.message);
        let mut call: Pin<Box<dyn Future<Output = MessageMut>>> =
            Box::pin(self.service.clone().call(request));
        if let Some(span) = span {
            call = Box::pin(spans::served(span, call));
        }
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => self.reply(node, from, hop_by_hop, answer),
            Poll::Pending => {
                let (counted, from) = (Counted::new(node.clone()), from.clone());
                tokio::task::spawn_local(async move {
                    let answer = call.await;
                    let node = &counted.0;
                    node.app().reply(node, &from, hop_by_hop, answer);
                });
            }
        }
    }

    fn answer(&self, _: &Node<Self>, _: &Rc<Connection<()>>, awaited: Awaited, message: MessageMut) {
        // The send fails only when the caller has dropped the future, so no receiver is left.
        let _ = awaited.done.send(Ok(message.freeze()));
    }

    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Awaited, ()>) {
        let Unanswered {
            context: mut awaited,
            why,
            kept,
            ..
        } = lost;
        let error = match why {
            UnansweredReason::Timeout => RequestError::Timeout,
            UnansweredReason::ConnectionLost | UnansweredReason::Stopping => RequestError::ConnectionLost,
        };
        if why == UnansweredReason::ConnectionLost
            && std::mem::take(&mut awaited.failover)
            && let Some(kept) = kept
            && let Some(other) = self.routed(awaited.application, awaited.realm.as_deref())
        {
            let deadline = awaited.deadline;
            if let Err((_, _, awaited)) = node.forward_again(&other, kept, deadline, awaited) {
                let _ = awaited.done.send(Err(error));
            }
            return;
        }
        let _ = awaited.done.send(Err(error));
    }
}

/// A request that the service works on; it counts until this is dropped, also when the service panics.
struct Counted<S: Service>(Node<Owner<S>>);

impl<S: Service> Counted<S> {
    fn new(node: Node<Owner<S>>) -> Self {
        let calls = &node.app().calls;
        calls.set(calls.get() + 1);
        Self(node)
    }
}

impl<S: Service> Drop for Counted<S> {
    fn drop(&mut self) {
        let calls = &self.0.app().calls;
        calls.set(calls.get().saturating_sub(1));
    }
}

impl<S: Service> Owner<S> {
    /// Checks that every request must pass before the service gets it.
    fn check(&self, node: &Node<Self>, request: &Request) -> Result<(), Fault> {
        request.message.check_flags()?;
        request.message.check_frames()?;
        let application = request.message.application();
        if !node.local().serves(application) {
            return Err(Fault::new(
                ResultCode::APPLICATION_UNSUPPORTED,
                format!("application {application} is not served here"),
            ));
        }
        if self.calls.get() >= self.max_calls {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                "too many requests are in progress",
            ));
        }
        Ok(())
    }
}
