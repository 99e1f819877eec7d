//! The peers of a node: each a machine of `diameter-proto`, which is told what happens and says what is to be
//! done. What it says is put into one queue and done in order, also when doing it makes other machines speak.

use std::rc::Rc;

use ahash::AHashMap;
use diameter_proto::known;
use diameter_proto::peer::{
    Capabilities, DownReason, Health, Input, Machine, Output, PeerSettings, Side, State,
};
use diameter_proto::{CommandFlags, Fault, MessageBuilder, MessageMut, ResultCode, encode_one};
use slab::Slab;
use tokio::task::JoinHandle;

use super::{Node, Verdict};
use crate::application::{Application, NodeEvent, PeerUp, Unanswered, UnansweredReason};
use crate::config::{PeerConfig, Security};
use crate::connection::{Connection, ConnectionId, Ending, Totals};

/// Names a peer of a node. A configured peer keeps its id from `add_peer` to `remove_peer`, whatever happens
/// to its connections; a dynamic one as long as it is connected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId {
    slot: u32,
    generation: u32,
}

/// A peer as it stands.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its id.
    pub id: PeerId,
    /// Its DiameterIdentity.
    pub host: String,
    /// State of its machine, by RFC 6733 §5.6.
    pub state: State,
    /// What the watchdog thinks.
    pub health: Health,
    /// The open connection.
    pub connection: Option<ConnectionId>,
    /// Whether it is one of the configured ones.
    pub configured: bool,
    /// Figures since it became known.
    pub totals: Totals,
}

/// Why a peer could not be added.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddPeerError {
    /// There is one of that name.
    #[error("peer `{0}` is there already")]
    Exists(String),
    /// It is our own name.
    #[error("`{0}` is this node's own name")]
    Ourselves(String),
    /// Another worker has it.
    #[error("peer `{0}` belongs to worker {1}")]
    Elsewhere(String, usize),
}

#[derive(Debug, Default)]
pub(crate) struct Peers {
    pub(super) slots: Slab<PeerSlot>,
    pub(super) by_host: AHashMap<Box<str>, usize>,
    generation: u32,
}

#[derive(Debug)]
pub(crate) struct PeerSlot {
    id: PeerId,
    host: Box<str>,
    /// None for a dynamic peer.
    pub(super) config: Option<Rc<PeerConfig>>,
    /// The rule that let a dynamic peer in.
    rule: usize,
    pub(super) machine: Machine,
    initiator: Option<ConnectionId>,
    responder: Option<ConnectionId>,
    open: Option<ConnectionId>,
    pub(super) connecting: Option<JoinHandle<()>>,
    /// What is to be announced once TLS is up.
    unsecured: Option<PeerUp>,
    /// To be forgotten when closed.
    removed: bool,
    /// Figures of connections that ended.
    totals: Totals,
}

impl PeerSlot {
    fn side(&mut self, side: Side) -> &mut Option<ConnectionId> {
        match side {
            Side::Initiator => &mut self.initiator,
            Side::Responder => &mut self.responder,
        }
    }
}

/// Something a machine wants done.
#[derive(Debug)]
pub(crate) struct Order<S> {
    key: usize,
    output: Output,
    /// The connection a CER came on, for the outputs that are about it.
    incoming: Option<Rc<Connection<S>>>,
}

impl<A: Application> Node<A> {
    /// Adds a peer. With addresses, we connect at once and go on trying; without, we wait for it.
    ///
    /// # Errors
    /// When there is one of that name, here or on another worker.
    pub fn add_peer(&self, config: PeerConfig) -> Result<PeerId, AddPeerError> {
        if config.host.eq_ignore_ascii_case(&self.local().origin.host) {
            return Err(AddPeerError::Ourselves(config.host));
        }
        let initiate = !config.addresses.is_empty();
        let mut settings = config.settings.clone();
        settings.host = Some(config.host.clone());
        settings.initiate = initiate;
        let known = Self::by_host(&self.0.peers.borrow().by_host, &config.host);
        let key = match known {
            Some(key) => self.adopt(key, config, settings)?,
            None => {
                if let Some((directory, worker)) = &self.0.directory {
                    let home = directory.claim(&config.host, *worker);
                    if home != *worker {
                        return Err(AddPeerError::Elsewhere(config.host, home));
                    }
                }
                let host = config.host.clone();
                self.new_slot(&host, Some(Rc::new(config)), 0, settings)
            }
        };
        if initiate {
            self.drive(key, Input::Start, None);
        }
        Ok(self.0.peers.borrow().slots[key].id)
    }

    /// A dynamic peer becomes a configured one, its connection untouched.
    fn adopt(&self, key: usize, config: PeerConfig, settings: PeerSettings) -> Result<usize, AddPeerError> {
        let mut peers = self.0.peers.borrow_mut();
        match peers.slots.get_mut(key) {
            Some(slot) if slot.config.is_none() => {
                slot.machine.configure(settings);
                slot.config = Some(Rc::new(config));
                Ok(key)
            }
            _ => Err(AddPeerError::Exists(config.host)),
        }
    }

    fn new_slot(
        &self,
        host: &str,
        config: Option<Rc<PeerConfig>>,
        rule: usize,
        settings: PeerSettings,
    ) -> usize {
        let machine = Machine::new(self.local().clone(), settings, self.random());
        let mut peers = self.0.peers.borrow_mut();
        peers.generation = peers.generation.wrapping_add(1);
        let generation = peers.generation;
        let entry = peers.slots.vacant_entry();
        let key = entry.key();
        entry.insert(PeerSlot {
            id: PeerId {
                slot: key as u32,
                generation,
            },
            host: host.into(),
            config,
            rule,
            machine,
            initiator: None,
            responder: None,
            open: None,
            connecting: None,
            unsecured: None,
            removed: false,
            totals: Totals::default(),
        });
        peers.by_host.insert(host.to_ascii_lowercase().into(), key);
        key
    }

    /// Disconnects from a peer (with a DPR of this cause, if it is open) and forgets it.
    pub fn remove_peer(&self, id: PeerId, cause: i32) {
        if let Some(key) = self.key(id) {
            self.0.peers.borrow_mut().slots[key].removed = true;
            self.drive(key, Input::Stop(cause), None);
        }
    }

    /// Disconnects from a peer and does not connect again until [`Node::connect`] or the peer does.
    pub fn disconnect(&self, id: PeerId, cause: i32) {
        if let Some(key) = self.key(id) {
            self.drive(key, Input::Stop(cause), None);
        }
    }

    /// Connects now, whatever the back-off says.
    pub fn connect(&self, id: PeerId) {
        if let Some(key) = self.key(id) {
            self.drive(key, Input::Start, None);
        }
    }

    fn key(&self, id: PeerId) -> Option<usize> {
        let peers = self.0.peers.borrow();
        peers
            .slots
            .get(id.slot as usize)
            .filter(|slot| slot.id == id)
            .map(|_| id.slot as usize)
    }

    /// The peer of that DiameterIdentity.
    #[must_use]
    pub fn peer(&self, host: &str) -> Option<PeerId> {
        let peers = self.0.peers.borrow();
        Self::by_host(&peers.by_host, host).map(|key| peers.slots[key].id)
    }

    /// The connection on which that peer is open.
    #[must_use]
    pub fn open_connection(&self, id: PeerId) -> Option<Rc<Connection<A::State>>> {
        let open = {
            let peers = self.0.peers.borrow();
            peers
                .slots
                .get(id.slot as usize)
                .filter(|slot| slot.id == id)?
                .open?
        };
        self.connection(open).filter(|connection| connection.is_open())
    }

    /// Every peer.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        let peers = self.0.peers.borrow();
        let status = |slot: &PeerSlot| PeerStatus {
            id: slot.id,
            host: slot.host.to_string(),
            state: slot.machine.state(),
            health: slot.machine.health(),
            connection: slot.open,
            configured: slot.config.is_some(),
            totals: self.totals(slot),
        };
        peers.slots.iter().map(|(_, slot)| status(slot)).collect()
    }

    fn totals(&self, slot: &PeerSlot) -> Totals {
        let mut totals = slot.totals;
        if let Some(connection) = slot.open.and_then(|id| self.connection(id)) {
            totals.add(connection.figures());
        }
        totals
    }

    // ---- told -------------------------------------------------------------------------------------------

    /// Tells a machine what happened and does what it wants done.
    pub(super) fn drive(&self, key: usize, input: Input<'_>, incoming: Option<&Rc<Connection<A::State>>>) {
        let now = self.now();
        {
            let mut peers = self.0.peers.borrow_mut();
            let Some(slot) = peers.slots.get_mut(key) else {
                return;
            };
            slot.machine.handle(now, input);
            Self::collect(&self.0.outputs, key, slot, incoming);
        }
        self.obey();
        self.forget_if_done(key);
    }

    fn collect(
        outputs: &std::cell::RefCell<std::collections::VecDeque<Order<A::State>>>,
        key: usize,
        slot: &mut PeerSlot,
        incoming: Option<&Rc<Connection<A::State>>>,
    ) {
        let mut outputs = outputs.borrow_mut();
        while let Some(output) = slot.machine.output() {
            outputs.push_back(Order {
                key,
                output,
                incoming: incoming.cloned(),
            });
        }
    }

    fn obey(&self) {
        if self.0.draining.replace(true) {
            return;
        }
        loop {
            let next = self.0.outputs.borrow_mut().pop_front();
            let Some(order) = next else { break };
            self.execute(order);
        }
        self.0.draining.set(false);
    }

    /// So many messages were read from a peer: its watchdog may rest. Once per read, not per message.
    #[inline]
    pub(crate) fn heard(
        &self,
        connection: &Rc<Connection<A::State>>,
        now: std::time::Instant,
        messages: u64,
    ) {
        self.0.pace.read(messages);
        let Some((key, _)) = connection.binding.get() else {
            return;
        };
        {
            let mut peers = self.0.peers.borrow_mut();
            let Some(slot) = peers.slots.get_mut(key) else {
                return;
            };
            slot.machine.traffic(now);
            if connection.health() == Health::Okay {
                return;
            }
            Self::collect(&self.0.outputs, key, slot, None);
        }
        self.obey();
    }

    /// A message of the base protocol, or any before the peer is open.
    #[cold]
    pub(super) fn received_base(&self, from: &Rc<Connection<A::State>>, message: MessageMut) -> Verdict {
        match from.binding.get() {
            Some((key, side)) => {
                self.drive(key, Input::Received(side, message.view()), None);
                Verdict::Handled
            }
            None if message.command() == known::command::CAPABILITIES_EXCHANGE && message.is_request() => {
                self.received_cer(from, message)
            }
            None => {
                // Whoever does not begin with a CER is no peer (RFC 6733 §5.6: the event is R-Conn-CER).
                self.app().event(
                    self,
                    NodeEvent::NoCer {
                        remote: from.remote(),
                    },
                );
                from.end(Ending::Now);
                Verdict::Handled
            }
        }
    }

    fn received_cer(&self, from: &Rc<Connection<A::State>>, cer: MessageMut) -> Verdict {
        let admitted = Capabilities::read(&cer).and_then(|remote| {
            let key = self.admit(from, &remote)?;
            Ok((key, remote))
        });
        match admitted {
            Ok((Admission::Here(key), remote)) => {
                let same_address = self.is_at(key, from);
                let local = from.local().ip();
                let input = Input::ConnectedBy {
                    cer: cer.view(),
                    remote,
                    local,
                    same_address,
                };
                self.drive(key, input, Some(from));
                Verdict::Handled
            }
            Ok((Admission::Elsewhere(worker), _)) => Verdict::Elsewhere(worker, cer),
            Err(fault) => {
                self.app().event(
                    self,
                    NodeEvent::Refused {
                        remote: from.remote(),
                        fault: &fault,
                    },
                );
                from.enqueue_base(self.refusal(&cer, &fault));
                from.end(Ending::AfterFlush);
                Verdict::Handled
            }
        }
    }

    fn refusal(&self, cer: &MessageMut, fault: &Fault) -> MessageMut {
        let mut answer = MessageBuilder::error_answer(cer, &self.local().origin, fault);
        let flags = if fault.code.is_protocol_error() {
            CommandFlags::ERROR
        } else {
            CommandFlags::default()
        };
        answer.set_flags(flags);
        answer
    }

    fn is_at(&self, key: usize, from: &Connection<A::State>) -> bool {
        let open = self.0.peers.borrow().slots[key].open;
        open.and_then(|id| self.connection(id))
            .is_some_and(|open| open.remote().ip() == from.remote().ip())
    }

    /// Who is this, may they connect, and where do they live?
    fn admit(&self, from: &Rc<Connection<A::State>>, remote: &Capabilities) -> Result<Admission, Fault> {
        let host = &remote.origin.host;
        let known = Self::by_host(&self.0.peers.borrow().by_host, host);
        if known.is_none()
            && let Some((directory, worker)) = &self.0.directory
        {
            let home = directory.claim(host, *worker);
            if home != *worker {
                return Ok(Admission::Elsewhere(home));
            }
        }
        let outcome = self.admit_here(from, remote, known);
        if known.is_none() && outcome.is_err() {
            self.release(host);
        }
        outcome.map(Admission::Here)
    }

    fn admit_here(
        &self,
        from: &Rc<Connection<A::State>>,
        remote: &Capabilities,
        known: Option<usize>,
    ) -> Result<usize, Fault> {
        let host = &remote.origin.host;
        let tls = self.is_tls(from);
        self.check_certificate(from, host)?;
        if self.0.stopping.get() {
            return Err(Fault::new(ResultCode::TOO_BUSY, "this node is stopping"));
        }
        if let Some(key) = known {
            let peers = self.0.peers.borrow();
            let wants_tls = peers.slots[key]
                .config
                .as_ref()
                .is_some_and(|config| matches!(config.security, Security::Tls(_)));
            if wants_tls && !tls {
                return Err(Fault::new(
                    ResultCode::NO_COMMON_SECURITY,
                    format!("{host} has to come over TLS"),
                ));
            }
            return Ok(key);
        }
        let unknown = || {
            Fault::new(
                ResultCode::UNKNOWN_PEER,
                format!("{host} is not a peer of this node"),
            )
        };
        let address = from.remote().ip();
        let (index, rule) = self
            .0
            .config
            .dynamic
            .iter()
            .enumerate()
            .find(|(_, rule)| rule.admits(&remote.origin.realm, address, tls))
            .ok_or_else(unknown)?;
        let taken = {
            let peers = self.0.peers.borrow();
            peers
                .slots
                .iter()
                .filter(|(_, slot)| slot.config.is_none() && slot.rule == index)
                .count()
        };
        if taken >= rule.max {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                format!("{taken} dynamic peers are connected, the most this rule allows"),
            ));
        }
        let settings = PeerSettings {
            host: Some(host.clone()),
            initiate: false,
            ..rule.settings.clone()
        };
        Ok(self.new_slot(host, None, index, settings))
    }

    fn release(&self, host: &str) {
        if let Some((directory, worker)) = &self.0.directory {
            directory.release(host, *worker);
        }
    }

    /// A dynamic or removed peer is forgotten when its machine is closed and has nothing more to do.
    fn forget_if_done(&self, key: usize) {
        let forgotten = {
            let mut peers = self.0.peers.borrow_mut();
            let Some(slot) = peers.slots.get(key) else { return };
            let done = slot.machine.state() == State::Closed && slot.open.is_none();
            if !done || !(slot.removed || slot.config.is_none()) {
                return;
            }
            let slot = peers.slots.remove(key);
            peers.by_host.remove(&*slot.host.to_ascii_lowercase());
            slot
        };
        self.release(&forgotten.host);
    }

    // ---- done -------------------------------------------------------------------------------------------

    fn execute(&self, order: Order<A::State>) {
        let Order {
            key,
            output,
            incoming,
        } = order;
        match output {
            Output::Connect => self.spawn_connect(key),
            Output::Accept => {
                if let Some(connection) = incoming {
                    connection.binding.set(Some((key, Side::Responder)));
                    self.with_slot(key, |slot| slot.responder = Some(connection.id()));
                    self.handshake_done();
                }
            }
            Output::Reject(answer) => {
                if let Some(connection) = incoming {
                    connection.enqueue_base(answer);
                    connection.end(Ending::AfterFlush);
                }
            }
            Output::Send(side, message) => {
                let id = self.with_slot(key, |slot| *slot.side(side)).flatten();
                if let Some(connection) = id.and_then(|id| self.connection(id)) {
                    connection.enqueue_base(message);
                }
            }
            Output::Close(side) => self.close(key, side),
            Output::Up {
                side,
                remote,
                common,
                secure,
            } => {
                let configured = self
                    .with_slot(key, |slot| slot.config.is_some())
                    .unwrap_or_default();
                let id = self.with_slot(key, |slot| *slot.side(side)).flatten();
                let Some(connection) = id.and_then(|id| self.connection(id)) else {
                    return;
                };
                let tls = self.is_tls(&connection);
                let Some(id) = self.with_slot(key, |slot| {
                    slot.open = Some(connection.id());
                    slot.id
                }) else {
                    return;
                };
                let up = PeerUp {
                    id,
                    remote,
                    common,
                    configured,
                    tls,
                };
                if secure && !tls {
                    self.with_slot(key, |slot| slot.unsecured = Some(up));
                    connection.secure.set(true);
                    connection.wake();
                } else {
                    self.announce(&connection, up);
                }
            }
            Output::Health(health) => {
                let id = self.with_slot(key, |slot| slot.open).flatten();
                if let Some(connection) = id.and_then(|id| self.connection(id)) {
                    connection.health.set(health);
                    if connection.is_open() {
                        self.app().peer_health(self, &connection, health);
                    }
                }
            }
            Output::Down(reason) => {
                let id = self.with_slot(key, |slot| {
                    slot.unsecured = None;
                    slot.open.take()
                });
                if let Some(connection) = id.flatten().and_then(|id| self.connection(id)) {
                    self.down(&connection, reason);
                }
            }
        }
    }

    pub(super) fn with_slot<T>(&self, key: usize, then: impl FnOnce(&mut PeerSlot) -> T) -> Option<T> {
        self.0.peers.borrow_mut().slots.get_mut(key).map(then)
    }

    fn announce(&self, connection: &Rc<Connection<A::State>>, up: PeerUp) {
        tracing::info!(peer = up.remote.origin.host, remote = %connection.remote(), tls = up.tls, "peer is open");
        let state = self.app().peer_up(self, connection, &up);
        let route_record = encode_one(known::ROUTE_RECORD, &up.remote.origin.host);
        connection.establish(up, route_record, state);
        connection.open.set(true);
    }

    /// TLS is up on a connection whose peer waited for that to be announced.
    pub(super) fn announce_secured(&self, connection: &Rc<Connection<A::State>>) {
        let Some((key, _)) = connection.binding.get() else {
            return;
        };
        let up = self.with_slot(key, |slot| slot.unsecured.take()).flatten();
        if let Some(up) = up {
            self.announce(connection, PeerUp { tls: true, ..up });
            self.app().peer_health(self, connection, connection.health());
        }
    }

    fn close(&self, key: usize, side: Side) {
        let (id, connecting) = self
            .with_slot(key, |slot| {
                let connecting = if side == Side::Initiator {
                    slot.connecting.take()
                } else {
                    None
                };
                (slot.side(side).take(), connecting)
            })
            .unwrap_or_default();
        if let Some(task) = connecting {
            task.abort();
        }
        if let Some(connection) = id.and_then(|id| self.connection(id)) {
            connection.binding.set(None);
            connection.end(Ending::AfterFlush);
        }
    }

    fn down(&self, connection: &Rc<Connection<A::State>>, reason: DownReason) {
        connection.open.set(false);
        connection.health.set(Health::Down);
        if let Some(up) = connection.peer() {
            tracing::info!(peer = up.remote.origin.host, ?reason, "peer is down");
            self.app().peer_down(self, connection, reason);
        }
        if let Some(id) = connection.peer().map(|up| up.id) {
            self.with_slot(id.slot as usize, |slot| {
                if slot.id == id {
                    slot.totals.add(connection.figures());
                }
            });
        }
        self.give_up_pending(connection);
    }

    /// Whatever waits for an answer of this connection waits in vain.
    pub(super) fn give_up_pending(&self, connection: &Rc<Connection<A::State>>) {
        loop {
            let waiting = self.0.pending.borrow_mut().take_any(connection.id().slot);
            let Some(waiting) = waiting else { return };
            self.app().unanswered(
                self,
                Unanswered {
                    context: waiting.context,
                    connection: connection.clone(),
                    why: UnansweredReason::ConnectionLost,
                    kept: waiting.kept,
                },
            );
        }
    }

    /// A connection that belonged to a peer broke.
    pub(super) fn peer_lost(&self, key: usize, side: Side) {
        self.with_slot(key, |slot| *slot.side(side) = None);
        self.drive(key, Input::Disconnected(side), None);
    }

    /// Our connection to a peer is there; it belongs to the peer from now on.
    pub(super) fn peer_connected(&self, key: usize, connection: &Rc<Connection<A::State>>) {
        connection.binding.set(Some((key, Side::Initiator)));
        self.with_slot(key, |slot| slot.initiator = Some(connection.id()));
        self.drive(
            key,
            Input::Connected {
                local: connection.local().ip(),
            },
            None,
        );
    }
}

enum Admission {
    Here(usize),
    Elsewhere(usize),
}
