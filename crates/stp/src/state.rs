//! What is available: an immutable snapshot, which the control side replaces and workers read.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use ss7_proto::PointCode;
use ss7_proto::m3ua::{Fault, TrafficMode};
use ss7_proto::mtp3::Carrier;

use crate::metrics::Meters;
use crate::tables::{Cluster, Tables};

/// A few numbers of links or hops.
pub(crate) type Few = SmallVec<[u16; 4]>;

/// The tables, with what is available of them.
#[derive(Clone)]
pub(crate) struct State {
    /// The number of the state among all: queues of links of M2PA refuse what was decided by an older one than they need.
    pub(crate) number: u64,
    pub(crate) tables: Arc<Tables>,
    pub(crate) meters: Arc<Meters>,
    /// Of each link the hops for which its peer is active: DATA is taken from it.
    pub(crate) admission: Arc<Vec<Few>>,
    /// Of each link whether its peer is up as an ASP: routing keys are taken from it.
    pub(crate) up: Arc<Vec<bool>>,
    pub(crate) forward: Arc<Forward>,
}

/// Where messages can go.
#[derive(Default)]
pub(crate) struct Forward {
    pub(crate) hops: Vec<HopState>,
    /// Of each destination the hops that take its messages now; none: it is unreachable.
    pub(crate) destinations: Vec<Few>,
    /// Subsystems that are prohibited at their nodes (SSP).
    pub(crate) prohibited: AHashSet<(u32, u8)>,
    /// By destination, the link selections whose messages are held: they move from one link set to another.
    pub(crate) held: AHashMap<usize, Selections>,
}

/// A set of link selections.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Selections([u64; 4]);

impl Selections {
    /// All of them.
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn insert(&mut self, sls: u8) {
        if let Some(word) = self.0.get_mut(usize::from(sls >> 6)) {
            *word |= 1 << (sls & 63);
        }
    }

    pub(crate) fn contains(&self, sls: u8) -> bool {
        let word = self.0.get(usize::from(sls >> 6)).copied();
        word.unwrap_or_default() >> (sls & 63) & 1 != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one |= other;
        }
    }
}

/// What takes the messages of a hop.
#[derive(Clone, Default)]
pub(crate) struct HopState {
    /// Links whose peers are active.
    pub(crate) up: Few,
    /// Whether messages are queued: the last ASP became inactive less than T(r) ago.
    pub(crate) pending: bool,
    /// By link selection, where the links are of M2PA: the position of the link.
    pub(crate) carriers: Vec<Carrier>,
    /// Whether no traffic is routed to it yet: this STP or the adjacent node restarts.
    pub(crate) restarting: bool,
}

/// Which links take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Link(u16),
    Each(Few),
    /// The control side queues it.
    Pending,
    /// The control side holds it while it moves from one link set to another.
    Held,
}

/// The hop of received DATA.
pub(crate) enum Admitted {
    Hop(usize),
    /// The peer is not active for the routing context.
    Inactive,
    /// The link has no such routing context.
    Foreign,
    /// The peer is active for several, and names none.
    Ambiguous,
}

/// What routing contexts name on a link.
#[derive(Default)]
pub(crate) struct Concerned {
    /// Hops for which the peer is active.
    pub(crate) hops: Few,
    /// Contexts for which it is not.
    pub(crate) inactive: Vec<u32>,
    /// Contexts that the link does not have.
    pub(crate) foreign: Vec<u32>,
}

impl State {
    /// The hop that DATA of a link belong to.
    pub(crate) fn admit(&self, link: usize, context: Option<u32>) -> Admitted {
        let active = self.admission.get(link).map_or(&[][..], |hops| hops.as_slice());
        let hop = |at: &u16| self.tables.hops.get(usize::from(*at));
        // A peer that was given no routing context sends none, and one that need not may.
        let fits = |at: &&u16| {
            hop(at).is_some_and(|hop| hop.context.is_none() || context.is_none() || hop.context == context)
        };
        let mut fitting = active.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(one), None) => Admitted::Hop(usize::from(*one)),
            (Some(_), Some(_)) => Admitted::Ambiguous,
            (None, _) => {
                let mut mine = self.tables.hops.iter().filter(|hop| hop.links.contains(&link));
                let known = |hop: &crate::tables::Hop| {
                    hop.context.is_none() || context.is_none() || hop.context == context
                };
                if mine.any(known) {
                    Admitted::Inactive
                } else {
                    Admitted::Foreign
                }
            }
        }
    }

    /// Refuses a network that is not the configured one (RFC 4666 §3.8.1).
    pub(crate) fn network(&self, appearance: Option<u32>) -> Result<(), Fault> {
        match (self.tables.network_appearance, appearance) {
            (ours, Some(theirs)) if ours != Some(theirs) => Err(Fault::network(theirs)),
            _ => Ok(()),
        }
    }

    /// What the routing contexts of a message of SSNM name; without any, all that the peer is active for.
    pub(crate) fn concerned(&self, link: usize, contexts: &[u32]) -> Concerned {
        let active = self.admission.get(link).map_or(&[][..], |hops| hops.as_slice());
        let context = |at: usize| self.tables.hops.get(at).and_then(|hop| hop.context);
        let mut concerned = Concerned::default();
        if contexts.is_empty() {
            concerned.hops.extend_from_slice(active);
            return concerned;
        }
        // Of a link set without a context each one that its peer uses.
        let fits = |at: usize, wanted: u32| context(at).is_none_or(|context| context == wanted);
        for wanted in contexts {
            let mut mine = self.tables.hops.iter().enumerate();
            let is_active = |at: &&u16| fits(usize::from(**at), *wanted);
            if let Some(at) = active.iter().find(is_active) {
                if !concerned.hops.contains(at) {
                    concerned.hops.push(*at);
                }
            } else if mine.any(|(at, hop)| hop.links.contains(&link) && fits(at, *wanted)) {
                concerned.inactive.push(*wanted);
            } else {
                concerned.foreign.push(*wanted);
            }
        }
        concerned
    }

    /// Whether messages of a hop for a destination would return to where they came from: the hop serves it, or a link of its link
    /// set does.
    pub(crate) fn is_behind(&self, hop: usize, code: PointCode) -> bool {
        let tables = &self.tables;
        let destination = tables.routes.find(code);
        let Some(destination) = destination.and_then(|at| tables.routes.destinations.get(at)) else {
            return false;
        };
        let links = tables.hops.get(hop).map_or(&[][..], |hop| hop.links.as_slice());
        destination.via.iter().any(|via| {
            let other = tables.hops.get(via.hop);
            let peer = other
                .is_some_and(|other| !other.is_server && links.iter().any(|one| other.links.contains(one)));
            via.hop == hop || peer
        })
    }

    /// The hop for a message, among those of its destination by link selection; never the link set that it came by.
    pub(crate) fn choose(&self, destination: usize, sls: u8, from: Option<usize>) -> Option<usize> {
        let hops = self.forward.destinations.get(destination)?;
        let back = from.filter(|from| self.tables.hops.get(*from).is_some_and(|hop| !hop.is_server));
        let returns = |hop: &&u16| Some(usize::from(**hop)) == back;
        if !hops.iter().any(|hop| returns(&hop)) {
            let at = usize::from(sls).checked_rem(hops.len())?;
            return hops.get(at).map(|hop| usize::from(*hop));
        }
        let others: Few = hops.iter().filter(|hop| !returns(hop)).copied().collect();
        let at = usize::from(sls).checked_rem(others.len())?;
        others.get(at).map(|hop| usize::from(*hop))
    }

    /// Whether messages of a link selection are held, which move from one link set to another.
    pub(crate) fn is_held(&self, destination: usize, sls: u8) -> bool {
        let held = &self.forward.held;
        !held.is_empty() && held.get(&destination).is_some_and(|held| held.contains(sls))
    }

    /// The links of a hop that take a message. `shared` hops have shared the link selections before.
    pub(crate) fn target(&self, hop: usize, sls: u8, shared: usize) -> Option<Target> {
        let state = self.forward.hops.get(hop)?;
        if let Some(last) = state.carriers.len().checked_sub(1) {
            // Their number is a power of two.
            return match state.carriers.get(usize::from(sls) & last)? {
                Carrier::None => None,
                Carrier::Held(_) => Some(Target::Pending),
                Carrier::Link(at) => {
                    let link = self.tables.hops.get(hop)?.links.get(*at)?;
                    Some(Target::Link(*link as u16))
                }
            };
        }
        let mode = self.tables.hops.get(hop)?.mode;
        if state.up.is_empty() {
            return state.pending.then_some(Target::Pending);
        }
        if mode == TrafficMode::Broadcast {
            return Some(Target::Each(state.up.clone()));
        }
        // Other bits than those that chose the hop: otherwise half of the links would get nothing.
        let at = (usize::from(sls) / shared.max(1)).checked_rem(state.up.len())?;
        state.up.get(at).map(|link| Target::Link(*link))
    }

    /// Whether a link that carries a link selection has carried it before it was held: its queue may have some of the messages.
    pub(crate) fn resumes(&self, before: &Self, hop: usize, sls: u8) -> bool {
        let carrier = |state: &Self| {
            let carriers = &state.forward.hops.get(hop)?.carriers;
            let last = carriers.len().checked_sub(1)?;
            carriers.get(usize::from(sls) & last).copied()
        };
        matches!((carrier(before), carrier(self)), (Some(Carrier::Held(from)), Some(Carrier::Link(to))) if from == to)
    }

    /// Whether a message for a point code would be sent.
    pub(crate) fn is_reachable(&self, code: PointCode) -> bool {
        let destination = self.tables.routes.find(code);
        let hops = destination.and_then(|at| self.forward.destinations.get(at));
        hops.is_some_and(|hops| !hops.is_empty())
    }

    /// Whether the narrowest destination that has a whole cluster can be reached.
    pub(crate) fn reaches(&self, cluster: Cluster) -> bool {
        let destination = self.tables.routes.around(cluster);
        let hops = destination.and_then(|at| self.forward.destinations.get(at));
        hops.is_some_and(|hops| !hops.is_empty())
    }

    /// Whether a subsystem is prohibited at its node.
    pub(crate) fn is_prohibited(&self, code: PointCode, subsystem: u8) -> bool {
        !self.forward.prohibited.is_empty() && self.forward.prohibited.contains(&(code.0, subsystem))
    }
}
