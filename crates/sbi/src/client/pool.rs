//! The connections to one origin, and the requests that are pending for one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use http2::Value;
use http2::name::HOST;
use sbi_proto::{Origin, Outbound, Response, Scheme};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::config::ClientConfig;
use super::connect::connect;
use super::connection::{Blamed, Connection, Exchange};
use super::error::{SendError, SendErrorKind};
use super::guard::Guard;
use crate::dns::Dns;
use crate::memory::Memory;
use crate::stats::count;
use crate::tls::ClientTls;

/// A peer that has not flooded for this multiple of the longest pause starts with the shortest pause again.
const FORGIVEN_AFTER: u32 = 10;

/// A connection with this many requests in flight is busy: the pool uses another one as well.
const BUSY: u32 = 32;

/// State of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Connections open now.
    pub connections: usize,
    /// Requests in flight now.
    pub in_progress: u64,
    /// Requests pending for a connection now.
    pub waiting: usize,
    /// Requests sent.
    pub sent: u64,
    /// Requests without a response.
    pub failed: u64,
    /// Requests whose deadline passed; also among the failed.
    pub timed_out: u64,
    /// Connections made.
    pub connected: u64,
    /// Connections that could not be made.
    pub connect_failures: u64,
    /// Connections closed because the peer sent too many frames, or more than the memory limit permits.
    pub flooded: u64,
    /// Why the last connection failed or was closed.
    pub last_failure: Option<String>,
}

/// What a pending request receives.
type Given = Result<Rc<Connection>, SendError>;

/// A place in the queue: the priority of the request, then a number that grows.
type Ticket = (u8, u64);

/// Connections to one origin.
pub(super) struct Pool {
    pub(super) origin: Origin,
    pub(super) config: Arc<ClientConfig>,
    pub(super) tls: Option<ClientTls>,
    /// Resolves the name of the origin; without it the system does.
    pub(super) names: Option<Dns>,
    pub(super) guard: Option<Guard>,
    /// Value of `:authority` in every request to it.
    authority: Result<HeaderValue, InvalidHeaderValue>,
    connections: RefCell<Vec<Rc<Connection>>>,
    connecting: Cell<u16>,
    /// No connection attempt before this time.
    not_before: Cell<Option<Instant>>,
    failures_in_a_row: Cell<u32>,
    /// Connections closed for a flood, one soon after the other, and the time of the last one.
    floods_in_a_row: Cell<u32>,
    last_flood: Cell<Option<Instant>>,
    /// Pending requests, most important first, then oldest.
    waiting: RefCell<BTreeMap<Ticket, oneshot::Sender<Given>>>,
    next_ticket: Cell<u64>,
    /// How many addresses the name has, and which of them the next connection begins with.
    addresses: Cell<usize>,
    /// When a connection could not be made last.
    unreachable_at: Cell<Option<Instant>>,
    next_address: Cell<usize>,
    /// Which of equally idle connections to several addresses is next.
    turn: Cell<usize>,
    stats: RefCell<PeerStats>,
    me: Weak<Pool>,
}

impl Pool {
    pub(super) fn new(
        origin: Origin,
        config: Arc<ClientConfig>,
        tls: Option<ClientTls>,
        names: Option<Dns>,
        guard: Option<Guard>,
    ) -> Rc<Self> {
        let authority = HeaderValue::from_str(origin.authority());
        Rc::new_cyclic(|me| Self {
            origin,
            config,
            tls,
            names,
            guard,
            authority,
            connections: RefCell::default(),
            connecting: Cell::new(0),
            not_before: Cell::new(None),
            failures_in_a_row: Cell::new(0),
            floods_in_a_row: Cell::new(0),
            last_flood: Cell::new(None),
            waiting: RefCell::default(),
            next_ticket: Cell::new(0),
            addresses: Cell::new(1),
            unreachable_at: Cell::new(None),
            turn: Cell::new(0),
            // Workers and processes begin with different ones.
            next_address: Cell::new(rand::random_range(0..1 << 16)),
            stats: RefCell::default(),
            me: me.clone(),
        })
    }

    /// Counts the outcome of a request.
    pub(super) fn count(&self, outcome: &Result<Response, SendError>) {
        let mut stats = self.stats.borrow_mut();
        stats.sent += 1;
        if let Err(error) = outcome {
            stats.failed += 1;
            stats.timed_out += u64::from(error.kind == SendErrorKind::Timeout);
            if error.kind == SendErrorKind::OverRate {
                Memory::of_worker().stats(|stats| count(&stats.requests_over_connection_rate));
            }
        }
    }

    /// Sends a request, once a connection has room for it.
    pub(super) async fn begin(
        &self,
        request: &mut Outbound,
        deadline: Instant,
        priority: u8,
    ) -> Result<Exchange, SendError> {
        self.address(request)?;
        loop {
            let connection = match self.pick()? {
                Some(connection) => connection,
                None => {
                    let (given, _place) = self.wait(priority)?;
                    match timeout_at(deadline.into(), given).await {
                        Ok(Ok(found)) => found?,
                        // The pool was dropped while the request was pending.
                        Ok(Err(_)) => return Err(SendError::not_sent(SendErrorKind::Overflow)),
                        Err(_) => return Err(SendError::not_sent(SendErrorKind::Timeout)),
                    }
                }
            };
            // A connection that has no room any longer: try another one.
            if let Some(exchange) = connection.begin(request, deadline) {
                return Ok(exchange);
            }
        }
    }

    /// Writes this origin's scheme and authority into the request. The Host of a relayed request would name another
    /// server than `:authority` does (RFC 9113 §8.3.1).
    fn address(&self, request: &mut Outbound) -> Result<(), SendError> {
        const HTTP: Value<'static> = Value::from_static("http");
        const HTTPS: Value<'static> = Value::from_static("https");
        let scheme = match self.origin.scheme() {
            Scheme::Http => HTTP,
            Scheme::Https => HTTPS,
        };
        let unsendable = |error: &InvalidHeaderValue| SendErrorKind::Unsendable(error.to_string());
        let authority = self.authority.as_ref();
        let authority = authority.map_err(|error| SendError::not_sent(unsendable(error)))?;
        let head = &mut request.head;
        head.set_origin(scheme, authority.into());
        head.fields.remove(HOST);
        Ok(())
    }

    /// Returns a connection with room: one that is in use already, until it is busy, so that a few requests leave in
    /// one system call and their answers arrive in one. Starts further connections where the settings permit them.
    ///
    /// # Errors
    /// When every connection is at its rate, and no other may be made.
    fn pick(&self) -> Result<Option<Rc<Connection>>, SendError> {
        self.connections
            .borrow_mut()
            .retain(|connection| connection.is_usable());
        let connections = self.connections.borrow();
        let with_room = || connections.iter().filter(|one| one.has_room());
        if self.addresses.get() > 1 {
            // Several addresses share the requests.
            let best = with_room().min_by_key(|one| one.in_progress()).cloned();
            if connections.len() < self.addresses.get() {
                self.connect_another(connections.len());
            }
            let turn = self.turn.get();
            let idlest = best.as_ref().map(|best| best.in_progress());
            let mut equal = with_room()
                .filter(|one| Some(one.in_progress()) == idlest)
                .cycle();
            return match best {
                None if self.is_at_rate() => Err(SendError::not_sent(SendErrorKind::OverRate)),
                None => Ok(None),
                Some(best) => {
                    self.turn.set(turn.wrapping_add(1));
                    Ok(equal.nth(turn % connections.len().max(1)).cloned().or(Some(best)))
                }
            };
        }
        let best = with_room()
            .find(|one| one.in_progress() < BUSY)
            .or_else(|| with_room().min_by_key(|one| one.in_progress()))
            .cloned();
        if best.as_ref().is_none_or(|best| best.in_progress() > 0) {
            self.connect_another(connections.len());
        }
        match best {
            None if self.is_at_rate() => Err(SendError::not_sent(SendErrorKind::OverRate)),
            best => Ok(best),
        }
    }

    /// Puts the addresses of the name into the order for the next connection.
    pub(super) fn spread(&self, addresses: &mut [std::net::SocketAddr]) {
        self.addresses.set(addresses.len());
        if addresses.len() > 1 {
            let first = self.next_address.get();
            self.next_address.set(first.wrapping_add(1));
            addresses.rotate_left(first % addresses.len());
        }
    }

    /// Whether every connection has sent what its rate allows now, and no other is or may be made.
    pub(super) fn is_at_rate(&self) -> bool {
        if self.config.max_request_rate == 0 || self.connecting.get() > 0 {
            return false;
        }
        let connections = self.connections.borrow();
        let usable = || connections.iter().filter(|one| one.is_usable());
        let present = usable().count();
        present > 0 && usable().all(|one| one.rate_room() == 0) && !self.may_connect(present)
    }

    /// Whether another connection may be made beside those that are present.
    fn may_connect(&self, present: usize) -> bool {
        let wanted = usize::from(self.config.connections_per_origin.max(1));
        let rests = |until: Instant| Instant::now() < until && !self.has_moved();
        present < wanted && !self.not_before.get().is_some_and(rests)
    }

    /// Whether the name leads to other addresses than when no connection could be made.
    fn has_moved(&self) -> bool {
        let moved = self.names.as_ref().zip(self.unreachable_at.get());
        moved.is_some_and(|(names, failed)| names.moved(self.origin.host()).is_some_and(|at| at > failed))
    }

    fn connect_another(&self, present: usize) {
        // One attempt at a time, so that a restarted peer does not get all connections at once.
        if self.connecting.get() > 0 || !self.may_connect(present) {
            return;
        }
        let Some(pool) = self.me.upgrade() else { return };
        self.connecting.set(1);
        tokio::task::spawn_local(async move {
            let made = connect(&pool).await;
            pool.connecting.set(0);
            match made {
                Ok(connection) => pool.connected(connection),
                Err(why) => pool.connect_failed(why),
            }
        });
    }

    fn connected(&self, connection: Rc<Connection>) {
        // A peer that floods accepts connections: the pause after a flood ends only with time, not with a successful
        // attempt.
        if self.floods_in_a_row.get() == 0 {
            self.not_before.set(None);
        }
        self.failures_in_a_row.set(0);
        self.stats.borrow_mut().connected += 1;
        self.connections.borrow_mut().push(connection);
        self.serve_waiting();
    }

    fn connect_failed(&self, why: String) {
        tracing::debug!(origin = %self.origin, %why, "failed to connect");
        let failures = self.failures_in_a_row.get();
        self.failures_in_a_row.set(failures.saturating_add(1));
        self.unreachable_at.set(Some(Instant::now()));
        self.pause(failures);
        {
            let mut stats = self.stats.borrow_mut();
            stats.connect_failures += 1;
            stats.last_failure = Some(why);
        }
        self.give_up_hopeless();
    }

    /// A connection was closed for what the peer sent: the next attempt is delayed, so that a peer that only floods
    /// costs little.
    pub(super) fn blamed(&self, blamed: Blamed) {
        let now = Instant::now();
        let calm = self.config.backoff_max.duration().saturating_mul(FORGIVEN_AFTER);
        let before = self.last_flood.replace(Some(now));
        if before.is_none_or(|at| now.saturating_duration_since(at) > calm) {
            self.floods_in_a_row.set(0);
        }
        let floods = self.floods_in_a_row.get();
        self.floods_in_a_row.set(floods.saturating_add(1));
        if floods == 0 {
            tracing::warn!(origin = %self.origin, why = blamed.what(), "closed connection: peer exceeded a rate limit");
        }
        self.pause(floods);
        let mut stats = self.stats.borrow_mut();
        stats.flooded += 1;
        stats.last_failure = Some(format!("the peer sent {}", blamed.what()));
    }

    /// Starts a pause without connection attempts; `failures` attempts failed before.
    fn pause(&self, failures: u32) {
        let min = self.config.backoff_min.duration();
        let pause = min
            .saturating_mul(1 << failures.min(16))
            .min(self.config.backoff_max.duration());
        // A random share between half and all of the pause, so that clients that lost a peer together do not reconnect
        // together.
        let pause = pause.mul_f64(0.5 + rand::random::<f64>() / 2.0);
        let until = Instant::now() + pause;
        let later = self.not_before.get().map_or(until, |at| at.max(until));
        self.not_before.set(Some(later));
    }

    /// Fails the pending requests if no connection can be made, or if the existing connections have used up their rate:
    /// no event would wake the requests later.
    fn give_up_hopeless(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let hope = self.connecting.get() > 0 || self.connections.borrow().iter().any(|c| c.is_usable());
        let error = match hope {
            true if !self.is_at_rate() => return,
            true => SendError::not_sent(SendErrorKind::OverRate),
            false => self.unreachable(),
        };
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for (_, waiter) in waiting {
            // The sender of this request has given up, so it needs no answer.
            let _ = waiter.send(Err(error.clone()));
        }
    }

    /// The reason why there is no connection and none is being made.
    fn unreachable(&self) -> SendError {
        let why = self.stats.borrow().last_failure.clone();
        SendError::not_sent(SendErrorKind::Connect(why.unwrap_or_else(|| {
            "the connection was lost; the pause before the next attempt has not ended".to_owned()
        })))
    }

    /// Queues for a connection, as long as the place is kept.
    fn wait(&self, priority: u8) -> Result<(oneshot::Receiver<Given>, Place<'_>), SendError> {
        let none_coming = self.connecting.get() == 0 && self.connections.borrow().is_empty();
        if none_coming {
            return Err(self.unreachable());
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= self.config.max_waiting as usize {
            return Err(SendError::not_sent(SendErrorKind::Overflow));
        }
        let number = self.next_ticket.get();
        self.next_ticket.set(number + 1);
        let (sender, receiver) = oneshot::channel();
        let ticket = (priority, number);
        waiting.insert(ticket, sender);
        Ok((receiver, Place { pool: self, ticket }))
    }

    /// Assigns connections with room to pending requests.
    pub(super) fn serve_waiting(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let mut given: Vec<(Rc<Connection>, u32)> = Vec::new();
        loop {
            let connections = self.connections.borrow();
            let promised = |connection: &Rc<Connection>| {
                given
                    .iter()
                    .find(|(c, _)| Rc::ptr_eq(c, connection))
                    .map_or(0, |(_, n)| *n)
            };
            let best = connections
                .iter()
                .filter(|c| c.is_usable() && c.has_room_for(promised(c) + 1))
                .min_by_key(|c| c.in_progress() + promised(c))
                .cloned();
            let Some(connection) = best else { break };
            let Some((_, waiter)) = self.waiting.borrow_mut().pop_first() else {
                return;
            };
            if waiter.send(Ok(connection.clone())).is_ok() {
                match given.iter_mut().find(|(c, _)| Rc::ptr_eq(c, &connection)) {
                    Some((_, n)) => *n += 1,
                    None => given.push((connection, 1)),
                }
            }
        }
        if self.config.max_request_rate > 0 && !self.waiting.borrow().is_empty() {
            let present = self.connections.borrow().len();
            self.connect_another(present);
            self.give_up_hopeless();
        }
    }

    /// A connection has ended: pending requests get another one.
    pub(super) fn lost(&self) {
        let present = {
            let mut connections = self.connections.borrow_mut();
            connections.retain(|connection| connection.is_usable());
            connections.len()
        };
        if !self.waiting.borrow().is_empty() {
            self.connect_another(present);
            self.give_up_hopeless();
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.connections.borrow().is_empty() && self.connecting.get() == 0 && self.waiting.borrow().is_empty()
    }

    pub(super) fn stats(&self) -> PeerStats {
        let connections = self.connections.borrow();
        PeerStats {
            connections: connections.len(),
            in_progress: connections.iter().map(|c| u64::from(c.in_progress())).sum(),
            waiting: self.waiting.borrow().len(),
            ..self.stats.borrow().clone()
        }
    }
}

/// A place in the queue for a connection. One that is given up is free at once: looking for such places when the queue is
/// full would cost each further request a look at all of them.
struct Place<'a> {
    pool: &'a Pool,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pool.waiting.borrow_mut().remove(&self.ticket);
    }
}

impl Drop for Pool {
    /// The client was dropped: requests in flight finish, then its connections close.
    fn drop(&mut self) {
        for connection in self.connections.take() {
            connection.retire();
        }
    }
}
