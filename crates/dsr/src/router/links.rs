//! Peers that come and go.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use arc_swap::{ArcSwap, Cache};
use diameter::proto::peer::{DownReason, Health};
use diameter::{Connection, ConnectionId, Node, PeerUp};

use super::{Core, Origin, Router};
use crate::events::Event;
use crate::gate::Gate;
use crate::registry::{ByHost, Hop, HopState, Hops};
use crate::routing::find_lower;
use crate::snapshot::Profile;

/// What is kept for each open connection.
#[derive(Debug)]
pub struct Link {
    hop: Arc<Hop>,
    profile: RefCell<Rc<Profile>>,
    gate: RefCell<Gate>,
}

impl Link {
    /// The hop it is a connection of.
    #[inline]
    #[must_use]
    pub fn hop(&self) -> &Arc<Hop> {
        &self.hop
    }

    /// How its requests are treated.
    #[inline]
    #[must_use]
    pub fn profile(&self) -> Rc<Profile> {
        self.profile.borrow().clone()
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
    /// Who was behind connections that ended lately: their answers may still come.
    departed: AHashMap<(u8, ConnectionId), Box<str>>,
    departures: VecDeque<(Instant, u8, ConnectionId)>,
}

impl Links {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// How long it is remembered who was behind a connection.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many ended connections are remembered.
const MOST_DEPARTED: usize = 4096;

/// A worker's view of the hops by name: one load per look, no count that others write.
pub(crate) struct ByHostCache(Cache<Arc<ArcSwap<ByHost>>, Arc<ByHost>>);

impl ByHostCache {
    pub(super) fn new(published: &Arc<ArcSwap<ByHost>>) -> Self {
        Self(Cache::new(published.clone()))
    }

    /// Every hop.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &Arc<Hop>> {
        self.0.load().values().flatten()
    }

    /// The hops of that name, in any case.
    pub(super) fn find(&mut self, host: &[u8]) -> Option<&Hops> {
        find_lower(self.0.load(), host)
    }
}

impl Core {
    pub(super) fn peer_up(&self, node: u8, connection: &Rc<Connection<Link>>, peer: &PeerUp) -> Link {
        self.count(Event::PeerUp);
        let host = &peer.remote.origin.host;
        let hop = self.registry.claim(host, node, peer.configured, self.worker);
        hop.set_home(self.worker);
        let mut links = self.links.borrow_mut();
        let place = hop.id as usize;
        if links.by_hop.len() <= place {
            links.by_hop.resize(place + 1, None);
        }
        links.by_hop[place] = Some((node, connection.clone()));
        let profile = self.snapshot().profile(host);
        self.gauges().connected(1);
        Link {
            hop,
            gate: RefCell::new(Gate::new(profile.ingress)),
            profile: RefCell::new(Rc::new(Profile::clone(&profile))),
        }
    }

    pub(super) fn peer_down(&self, connection: &Rc<Connection<Link>>, _: DownReason) {
        self.count(Event::PeerDown);
        self.gauges().connected(-1);
        let Some(link) = connection.state() else { return };
        let mut links = self.links.borrow_mut();
        let node = link.hop.node;
        let now = self.now();
        links
            .departed
            .insert((node, connection.id()), link.hop.host.clone());
        links.departures.push_back((now, node, connection.id()));
        while links.departures.len() > MOST_DEPARTED
            || links
                .departures
                .front()
                .is_some_and(|(since, ..)| now.saturating_duration_since(*since) > REMEMBERED)
        {
            if let Some((_, node, id)) = links.departures.pop_front() {
                links.departed.remove(&(node, id));
            }
        }
        // A peer that connected anew has taken the place already.
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

    pub(super) fn peer_health(&self, connection: &Rc<Connection<Link>>, health: Health) {
        let Some(link) = connection.state() else { return };
        link.hop.set_state(match health {
            Health::Okay => HopState::Available,
            Health::Down => HopState::Down,
            _ => HopState::Degraded,
        });
    }

    /// Profiles follow the configuration.
    pub(super) fn refresh_links(&self) {
        let snapshot = self.snapshot();
        for (_, connection) in self.links.borrow().by_hop.iter().flatten() {
            if let Some(link) = connection.state() {
                let profile = Profile::clone(&snapshot.profile(&link.hop.host));
                let mut gate = link.gate.borrow_mut();
                if gate.settings() != profile.ingress {
                    *gate = Gate::new(profile.ingress);
                }
                *link.profile.borrow_mut() = Rc::new(profile);
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

    /// The connection that a peer has now, whose connection at the time of its request is gone.
    #[cold]
    pub(super) fn follow(&self, node: &Node<Router>, origin: Origin) -> Option<Rc<Connection<Link>>> {
        let links = self.links.borrow();
        let host = links.departed.get(&(origin.node, origin.connection))?;
        let connection = node.open_connection(node.peer(host)?)?;
        self.count(Event::AnswerFollowed);
        Some(connection)
    }
}
