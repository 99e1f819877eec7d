//! Connections of peers as they open and close.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ahash::{AHashMap, AHashSet};
use arc_swap::{ArcSwap, Cache};
use bytes::Bytes;
use diameter::proto::AvpWriter;
use diameter::proto::known::disconnect_cause;
use diameter::proto::overload::doic::{LOSS, SupportedFeatures};
use diameter::proto::peer::{DownReason, Health};
use diameter::{Connection, ConnectionId, Node, NodeEvent, PeerUp};

use super::{Core, Origin, Router};
use crate::events::Event;
use crate::gate::Gate;
use crate::incidents::Incident;
use crate::load_report::LastReported;
use crate::obedience::Obedience;
use crate::registry::{ByHost, Hop, HopState, Hops};
use crate::snapshot::Profile;

/// What is kept for each open connection.
#[derive(Debug)]
pub(crate) struct Link {
    hop: Arc<Hop>,
    profile: RefCell<Rc<Profile>>,
    gate: RefCell<Gate>,
    /// Requests on this connection, as long as answers to requests of an earlier connection may come.
    successor: RefCell<Option<Successor>>,
    /// Version of our load that was reported on it.
    last_reported: LastReported,
    /// What its client does about our overload reports.
    obedience: RefCell<Obedience>,
    /// The Route-Record of its requests, with what asks servers for overload reports.
    asking: OnceCell<Bytes>,
    /// Its requests that are not answered, and when the last one came.
    in_flight: Cell<u32>,
    last_request: Cell<Option<Instant>>,
}

/// A connection of a peer that was connected before, for as long as answers to its earlier requests may come.
/// Hop-by-Hop Identifiers are unique on one connection alone (RFC 6733 §3): a peer that starts over
/// must not match the answer to an old request with a new one.
#[derive(Debug)]
struct Successor {
    until: Instant,
    asked: AHashSet<u32>,
}

/// Requests of an successor that are remembered; with more under way it gets no earlier answers.
const MAX_ASKED: usize = 16_384;

impl Link {
    /// The hop it is a connection of.
    #[inline]
    #[must_use]
    pub(crate) fn hop(&self) -> &Arc<Hop> {
        &self.hop
    }

    /// How its requests are treated.
    #[inline]
    #[must_use]
    pub(crate) fn profile(&self) -> Rc<Profile> {
        self.profile.borrow().clone()
    }

    /// What is appended to its requests where we ask for overload reports (RFC 7683 §5.1.1).
    pub(super) fn asking(&self, route_record: &Bytes) -> &Bytes {
        self.asking.get_or_init(|| {
            let mut out = AvpWriter::with_capacity(route_record.len() + 32);
            out.append_encoded(route_record);
            SupportedFeatures { vector: LOSS }.write(&mut out);
            out.into_bytes()
        })
    }

    /// A request came on it.
    #[inline]
    pub(super) fn asked(&self, hop_by_hop: u32, now: Instant) {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.last_request.set(Some(now));
        let mut successor = self.successor.borrow_mut();
        let Some(known) = &mut *successor else { return };
        if now >= known.until {
            *successor = None;
        } else if known.asked.len() <= MAX_ASKED {
            known.asked.insert(hop_by_hop);
        }
    }

    /// A request of it was dropped: it gets no answer.
    pub(super) fn dropped(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    /// Whether the router owes it answers. Some requests never get one by the configuration: none is owed when the last
    /// request is older than its `lifetime`.
    fn awaits_answers(&self, now: Instant, lifetime: Duration) -> bool {
        let is_recent = |last: Instant| now.saturating_duration_since(last) < lifetime;
        self.in_flight.get() > 0 && self.last_request.get().is_some_and(is_recent)
    }

    /// An answer goes out on it.
    #[inline]
    pub(super) fn answered(&self, hop_by_hop: u32) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        if let Some(known) = &mut *self.successor.borrow_mut() {
            known.asked.remove(&hop_by_hop);
        }
    }

    /// Whether the answer to a request of an earlier connection may go out on this one.
    fn takes(&self, hop_by_hop: u32) -> bool {
        self.successor
            .borrow()
            .as_ref()
            .is_some_and(|known| known.asked.len() <= MAX_ASKED && !known.asked.contains(&hop_by_hop))
    }

    /// Version of our load that was reported on it.
    pub(super) const fn last_reported(&self) -> &LastReported {
        &self.last_reported
    }

    /// What its client does about our overload reports.
    #[inline]
    pub(super) const fn obedience(&self) -> &RefCell<Obedience> {
        &self.obedience
    }

    /// The bounds on its requests.
    #[inline]
    pub(super) fn gate(&self) -> &RefCell<Gate> {
        &self.gate
    }
}

/// The open connections of a worker by hop, and peers whose connections ended.
#[derive(Default)]
pub(crate) struct Links {
    by_hop: Vec<Option<(u8, Rc<Connection<Link>>)>>,
    /// Peers of connections that ended lately: answers for them may still come.
    departed: AHashMap<(u8, ConnectionId), Departed>,
    departures: VecDeque<(Instant, u8, ConnectionId)>,
}

impl Links {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Peer of a connection that has ended.
struct Departed {
    host: Box<str>,
    /// Its Origin-State-Id.
    state: Option<u32>,
    since: Instant,
}

/// How long the peer of an ended connection is kept.
const DEPARTED_TTL: Duration = Duration::from_secs(60);
/// Bound on ended connections that are kept.
const MAX_DEPARTED: usize = 4096;

/// A worker's view of the hops by name: one load per lookup, no count that other workers write.
pub(crate) struct ByHostCache(Cache<Arc<ArcSwap<ByHost>>, Arc<ByHost>>);

impl ByHostCache {
    pub(super) fn new(published: &Arc<ArcSwap<ByHost>>) -> Self {
        Self(Cache::new(published.clone()))
    }

    /// Every hop.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &Arc<Hop>> {
        self.0.load().hops()
    }

    /// The hops of that name, in any case.
    pub(super) fn find(&mut self, host: &[u8]) -> Option<&Hops> {
        self.0.load().find(host)
    }
}

/// Why a peer is not open any more.
fn words(why: DownReason) -> String {
    let cause = match why {
        DownReason::Lost => return "the connection broke".to_owned(),
        DownReason::Silent => return "watchdogs went unanswered".to_owned(),
        DownReason::WeSaid => return "the router disconnected".to_owned(),
        DownReason::Replaced => return "the peer has reconnected".to_owned(),
        DownReason::PeerSaid(cause) => cause,
    };
    match cause {
        disconnect_cause::REBOOTING => "the peer disconnected: REBOOTING".to_owned(),
        disconnect_cause::BUSY => "the peer disconnected: BUSY".to_owned(),
        disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU => {
            "the peer disconnected: DO_NOT_WANT_TO_TALK_TO_YOU".to_owned()
        }
        other => format!("the peer disconnected: Disconnect-Cause {other}"),
    }
}

impl Core {
    pub(super) fn peer_up(&self, node: u8, connection: &Rc<Connection<Link>>, peer: &PeerUp) -> Link {
        self.count(Event::PeerUp);
        let host = &peer.remote.origin.host;
        let hop = self.registry.claim(host, node, peer.configured, self.worker);
        hop.set_home(self.worker);
        hop.connected();
        // What wanted it has it: after the next DPR of the peer, only later requests count.
        hop.take_wanted();
        let mut links = self.links.borrow_mut();
        let place = hop.id as usize;
        if links.by_hop.len() <= place {
            links.by_hop.resize(place + 1, None);
        }
        links.by_hop[place] = Some((node, connection.clone()));
        let snapshot = self.snapshot();
        let profile = snapshot.profile_of(&peer.remote, connection.remote().ip(), peer.tls);
        let left = links.departed.iter().filter(|((at, _), _)| *at == node);
        let successor = left
            .filter(|(_, departed)| departed.host.eq_ignore_ascii_case(host))
            .map(|(_, departed)| departed.since + snapshot.lifetime)
            .max()
            .filter(|until| *until > self.now())
            .map(|_| Successor {
                until: self.now() + snapshot.lifetime,
                asked: AHashSet::new(),
            });
        self.gauges().connected(1);
        Link {
            hop,
            successor: RefCell::new(successor),
            last_reported: LastReported::default(),
            obedience: RefCell::default(),
            asking: OnceCell::new(),
            in_flight: Cell::new(0),
            last_request: Cell::new(None),
            gate: RefCell::new(Gate::new(profile.ingress)),
            profile: RefCell::new(Rc::new(Profile::clone(&profile))),
        }
    }

    /// Something happened to a connection before it belonged to a peer, or to an attempt of ours.
    #[cold]
    pub(super) fn on_event(&self, node: u8, event: &NodeEvent<'_>) {
        self.count(match event {
            NodeEvent::Panicked { .. } => Event::Panicked,
            NodeEvent::Tolerated { .. } => Event::CapabilitiesIncomplete,
            _ => Event::ConnectionRefused,
        });
        if matches!(event, NodeEvent::Flooded { .. }) {
            self.count(Event::Flooded);
        }
        let incident = Incident::of(event);
        if let Some(host) = &incident.host
            && !matches!(event, NodeEvent::Tolerated { .. })
            && let Some(hop) = self.hop_of(host, usize::from(node))
            && hop.state() == HopState::Down
        {
            let is_attempt = matches!(event, NodeEvent::ConnectFailed { .. });
            hop.failed(&incident.text, is_attempt, SystemTime::now());
        }
        self.tools.incidents.happened(&incident, self.now());
    }

    pub(super) fn peer_down(&self, connection: &Rc<Connection<Link>>, why: DownReason) {
        self.count(Event::PeerDown);
        self.gauges().connected(-1);
        let Some(link) = connection.state() else { return };
        if why != DownReason::Replaced {
            link.hop.failed(&words(why), false, SystemTime::now());
        }
        let mut links = self.links.borrow_mut();
        let node = link.hop.node;
        let now = self.now();
        let departed = Departed {
            host: link.hop.host.clone(),
            state: connection.peer().and_then(|up| up.remote.origin_state_id),
            since: now,
        };
        links.departed.insert((node, connection.id()), departed);
        links.departures.push_back((now, node, connection.id()));
        while links.departures.len() > MAX_DEPARTED
            || links
                .departures
                .front()
                .is_some_and(|(since, ..)| now.saturating_duration_since(*since) > DEPARTED_TTL)
        {
            if let Some((_, node, id)) = links.departures.pop_front() {
                links.departed.remove(&(node, id));
            }
        }
        // A peer that has reconnected holds the place already.
        let place = links.by_hop.get_mut(link.hop.id as usize);
        if let Some(place) = place
            && place
                .as_ref()
                .is_some_and(|(_, current)| current.id() == connection.id())
        {
            *place = None;
            link.hop.set_state(HopState::Down);
            if !link.hop.is_configured() {
                self.registry.release(&link.hop);
            }
        }
    }

    /// Whether requests of a peer are with servers (RFC 6733 §5.4).
    pub(super) fn awaits_answers(&self, connection: &Connection<Link>) -> bool {
        let lifetime = self.snapshot.borrow().lifetime;
        let link = connection.state();
        link.is_some_and(|link| link.awaits_answers(self.now(), lifetime))
    }

    pub(super) fn peer_health(&self, connection: &Rc<Connection<Link>>, health: Health) {
        let Some(link) = connection.state() else { return };
        link.hop.set_state(match health {
            Health::Okay => HopState::Available,
            Health::Down => HopState::Down,
            _ => HopState::Degraded,
        });
    }

    /// Takes profiles from a new configuration.
    pub(super) fn refresh_links(&self) {
        let snapshot = self.snapshot();
        for (_, connection) in self.links.borrow().by_hop.iter().flatten() {
            if let Some(link) = connection.state() {
                let Some(peer) = connection.peer() else { continue };
                let address = connection.remote().ip();
                let profile = Profile::clone(&snapshot.profile_of(&peer.remote, address, peer.tls));
                let mut gate = link.gate.borrow_mut();
                if gate.settings() != profile.ingress {
                    *gate = Gate::new(profile.ingress);
                }
                *link.profile.borrow_mut() = Rc::new(profile);
            }
        }
    }

    /// Every hop that has a connection here.
    pub(super) fn each_hop(&self, mut look: impl FnMut(&Hop)) {
        for (_, connection) in self.links.borrow().by_hop.iter().flatten() {
            if let Some(link) = connection.state() {
                look(&link.hop);
            }
        }
    }

    /// The open connection of a hop that serves this application.
    #[inline]
    pub(super) fn link(&self, hop: u32, application: u32) -> Option<(Node<Router>, Rc<Connection<Link>>)> {
        let links = self.links.borrow();
        let (node, connection) = links.by_hop.get(hop as usize)?.as_ref()?;
        let serves = connection.peer().is_some_and(|up| up.remote.serves(application));
        if !connection.is_open() || !serves {
            return None;
        }
        let node = self.nodes.borrow().get(usize::from(*node)).cloned()?;
        Some((node, connection.clone()))
    }

    /// How requests of a hop that lives here are treated now.
    #[cold]
    pub(super) fn profile_of(&self, hop: u32) -> Option<Rc<Profile>> {
        let links = self.links.borrow();
        let (_, connection) = links.by_hop.get(hop as usize)?.as_ref()?;
        Some(connection.state()?.profile())
    }

    /// The connection that a peer has now, whose connection at the time of its request is gone. None when it
    /// has restarted since (RFC 6733 §8.16), or has used the identifier for another request meanwhile.
    #[cold]
    pub(super) fn follow(&self, node: &Node<Router>, origin: Origin) -> Option<Rc<Connection<Link>>> {
        let links = self.links.borrow();
        let departed = links.departed.get(&(origin.node, origin.connection))?;
        let connection = node.open_connection(node.peer(&departed.host)?)?;
        let same_run = connection.peer()?.remote.origin_state_id == departed.state;
        if !same_run || !connection.state()?.takes(origin.hop_by_hop) {
            self.count(Event::AnswerAmbiguous);
            return None;
        }
        self.count(Event::AnswerFollowed);
        Some(connection)
    }

    /// Whether the client of a request of this worker has a connection: that of the request, or a later one.
    pub(super) fn has_client(&self, origin: Origin) -> bool {
        let node = self.nodes.borrow().get(usize::from(origin.node)).cloned();
        let Some(node) = node else { return false };
        let connection = node.connection(origin.connection);
        if connection.is_some_and(|connection| connection.is_open()) {
            return true;
        }
        let links = self.links.borrow();
        let departed = links.departed.get(&(origin.node, origin.connection));
        let peer = departed.and_then(|departed| node.peer(&departed.host));
        peer.and_then(|peer| node.open_connection(peer)).is_some()
    }
}
