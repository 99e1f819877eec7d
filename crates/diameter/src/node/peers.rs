//! The peers of a node: each a machine of `diameter-proto`, which takes inputs and returns actions. The actions go into
//! one queue and are executed in order, also when they cause actions of other machines.

use std::rc::Rc;

use ahash::AHashMap;
use diameter_proto::MessageMut;
use diameter_proto::known;
use diameter_proto::peer::{Health, Input, Machine, Output, PeerSettings, Side, State};
use slab::Slab;
use tokio::task::JoinHandle;

use super::{Application, NodeEvent};
use super::{Node, Verdict};
use crate::config::PeerConfig;
use crate::connection::{Connection, ConnectionId, Ending, Totals};
use crate::peer::{PeerId, PeerUp};

/// State of a peer.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its id.
    pub id: PeerId,
    /// Its DiameterIdentity.
    pub host: String,
    /// State of its machine, by RFC 6733 §5.6.
    pub state: State,
    /// The status of the watchdog.
    pub health: Health,
    /// The open connection.
    pub connection: Option<ConnectionId>,
    /// Whether it is one of the configured ones.
    pub configured: bool,
    /// Figures since it was added.
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
    pub(super) id: PeerId,
    pub(super) host: Box<str>,
    /// None for a dynamic peer.
    pub(super) config: Option<Rc<PeerConfig>>,
    /// The rule under which a dynamic peer counts.
    pub(super) rule: Option<usize>,
    pub(super) machine: Machine,
    pub(super) initiator: Option<ConnectionId>,
    pub(super) responder: Option<ConnectionId>,
    pub(super) open: Option<ConnectionId>,
    pub(super) connecting: Option<JoinHandle<()>>,
    /// The `Up` to report once TLS is up.
    pub(super) unsecured: Option<PeerUp>,
    /// To be removed when closed.
    removed: bool,
    /// Figures of connections that ended.
    pub(super) totals: Totals,
}

impl PeerSlot {
    /// Its settings; none for a dynamic peer and for one that is being removed.
    pub(super) fn lasting(&self) -> Option<&PeerConfig> {
        self.config.as_deref().filter(|_| !self.removed)
    }

    pub(super) fn side(&mut self, side: Side) -> &mut Option<ConnectionId> {
        match side {
            Side::Initiator => &mut self.initiator,
            Side::Responder => &mut self.responder,
        }
    }
}

/// An action of a machine.
#[derive(Debug)]
pub(crate) struct Order<S> {
    pub(super) key: usize,
    pub(super) output: Output,
    /// The connection on which a CER arrived, for the outputs that refer to it.
    pub(super) incoming: Option<Rc<Connection<S>>>,
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
        let initiate = !config.addresses.is_empty() || config.lookup.is_some();
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
                self.new_slot(&host, Some(Rc::new(config)), settings)
            }
        };
        if initiate {
            self.drive(key, Input::Start, None);
        }
        Ok(self.0.peers.borrow().slots[key].id)
    }

    /// Turns a dynamic peer into a configured one, its connection untouched; a peer that is being removed must be
    /// closed first.
    fn adopt(&self, key: usize, config: PeerConfig, settings: PeerSettings) -> Result<usize, AddPeerError> {
        let mut peers = self.0.peers.borrow_mut();
        match peers.slots.get_mut(key) {
            Some(slot) if slot.config.is_none() && slot.machine.state() != State::Closing => {
                slot.machine.configure(settings);
                slot.config = Some(Rc::new(config));
                slot.rule = None;
                slot.removed = false;
                Ok(key)
            }
            _ => Err(AddPeerError::Exists(config.host)),
        }
    }

    pub(super) fn new_slot(
        &self,
        host: &str,
        config: Option<Rc<PeerConfig>>,
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
            rule: None,
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

    /// Disconnects from a peer (with a DPR of this cause, if it is open) and removes it.
    pub fn remove_peer(&self, id: PeerId, cause: i32) {
        if let Some(key) = self.key(id) {
            self.0.peers.borrow_mut().slots[key].removed = true;
            self.drive(key, Input::Stop(cause), None);
        }
    }

    /// Changes the timers and the policy of a configured peer; its connection stays.
    pub fn configure_peer(&self, id: PeerId, settings: PeerSettings) {
        self.with_slot(id.slot as usize, |slot| {
            if slot.id == id {
                let known = slot.machine.settings();
                let settings = PeerSettings {
                    host: known.host.clone(),
                    initiate: known.initiate,
                    ..settings
                };
                slot.machine.configure(settings.clone());
                if let Some(config) = &mut slot.config {
                    Rc::make_mut(config).settings = settings;
                }
            }
        });
    }

    /// Connects to peers that sent a DPR with BUSY or DO_NOT_WANT_TO_TALK_TO_YOU (RFC 6733 §5.4), where `wanted` says
    /// that a request for them is pending, or after their longest pause where there is `traffic` at all.
    pub fn wake_idle(&self, traffic: bool, mut wanted: impl FnMut(&str) -> bool) {
        let now = self.now();
        let idle: Vec<usize> = {
            let peers = self.0.peers.borrow();
            let mut due = |slot: &PeerSlot| slot.machine.wakes(now, traffic, || wanted(&slot.host));
            let slots = peers.slots.iter().filter(|(_, slot)| slot.lasting().is_some());
            slots.filter(|(_, slot)| due(slot)).map(|(key, _)| key).collect()
        };
        for key in idle {
            self.drive(key, Input::Start, None);
        }
    }

    /// Disconnects from a peer and does not reconnect until [`Node::connect`] or the peer does.
    pub fn disconnect(&self, id: PeerId, cause: i32) {
        if let Some(key) = self.key(id) {
            self.drive(key, Input::Stop(cause), None);
        }
    }

    /// Connects now, whatever the back-off.
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

    // ---- inputs -----------------------------------------------------------------------------------------

    /// Passes an input to a machine and executes its actions.
    pub(super) fn drive(&self, key: usize, input: Input<'_>, incoming: Option<&Rc<Connection<A::State>>>) {
        let now = self.now();
        let failure = {
            let mut peers = self.0.peers.borrow_mut();
            let Some(slot) = peers.slots.get_mut(key) else {
                return;
            };
            slot.machine.handle(now, input);
            Self::collect(&self.0.outputs, key, slot, incoming);
            slot.machine
                .take_failure()
                .map(|fault| (slot.host.clone(), fault))
        };
        if let Some((host, fault)) = failure {
            let (host, error) = (&*host, &std::io::Error::other(fault.to_string()));
            self.app().event(self, NodeEvent::ConnectFailed { host, error });
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
            let key = order.key;
            if self.contained(None, || self.execute(order)).is_none() {
                self.abandon(key);
            }
        }
        self.0.draining.set(false);
    }

    /// Messages were read from a peer: restarts its watchdog. Called once per read, not per message.
    #[inline]
    pub(crate) fn heard(
        &self,
        connection: &Rc<Connection<A::State>>,
        now: std::time::Instant,
        messages: u64,
    ) {
        self.0.pace.read(messages, now);
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

    /// Handles a message of the base protocol, or any message before the peer is open.
    #[cold]
    pub(super) fn received_base(&self, from: &Rc<Connection<A::State>>, message: MessageMut) -> Verdict {
        match from.binding.get() {
            Some((key, side)) => {
                if message.command() == known::command::DISCONNECT_PEER && message.is_request() {
                    let in_flight = self.0.pending.borrow().owned(from.id().slot) > 0
                        || (from.peer().is_some() && self.app().awaits_answers(from));
                    self.with_slot(key, |slot| slot.machine.set_in_flight(in_flight));
                }
                self.drive(key, Input::Received(side, message.view()), None);
                Verdict::Handled
            }
            None if is_cer(&message) => self.received_cer(from, message),
            // The connection was replaced; further base messages on it have no meaning.
            None if from.peer().is_some() => Verdict::Handled,
            None => {
                // A connection that does not begin with a CER is closed (RFC 6733 §5.6: the event is R-Conn-CER).
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

    /// Removes a dynamic or removed peer once its machine is closed and has no more actions.
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

    pub(super) fn with_slot<T>(&self, key: usize, then: impl FnOnce(&mut PeerSlot) -> T) -> Option<T> {
        self.0.peers.borrow_mut().slots.get_mut(key).map(then)
    }

    /// A connection that belonged to a peer broke.
    pub(super) fn peer_lost(&self, key: usize, side: Side) {
        self.with_slot(key, |slot| *slot.side(side) = None);
        self.drive(key, Input::Disconnected(side), None);
    }

    /// Our connection attempt to a peer has succeeded; the connection belongs to the peer from now on.
    pub(super) fn peer_connected(&self, key: usize, connection: &Rc<Connection<A::State>>) {
        connection.binding.set(Some((key, Side::Initiator)));
        let offers_tls = self.offers_tls(connection);
        self.with_slot(key, |slot| {
            slot.initiator = Some(connection.id());
            slot.machine.offer_tls(Side::Initiator, offers_tls);
        });
        self.drive(
            key,
            Input::Connected {
                local: connection.local().ip(),
            },
            None,
        );
    }
}

/// RFC 6733 §5.3.1: command 257 of application 0.
fn is_cer(message: &MessageMut) -> bool {
    message.is_request()
        && message.command() == known::command::CAPABILITIES_EXCHANGE
        && message.application() == known::application::COMMON
}
