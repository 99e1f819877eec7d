//! What is available: an immutable snapshot, which the control side replaces and workers read.

use std::sync::Arc;

use ahash::AHashSet;
use smallvec::SmallVec;
use ss7_proto::PointCode;
use ss7_proto::m3ua::TrafficMode;

use crate::metrics::Meters;
use crate::tables::Tables;

/// A few numbers of links or hops.
pub(crate) type Few = SmallVec<[u16; 4]>;

/// The tables, with what is available of them.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) tables: Arc<Tables>,
    pub(crate) meters: Arc<Meters>,
    /// Of each link the hops for which its peer is active: DATA is taken from it.
    pub(crate) admission: Arc<Vec<Few>>,
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
}

/// What takes the messages of a hop.
#[derive(Clone, Default)]
pub(crate) struct HopState {
    /// Links whose peers are active.
    pub(crate) up: Few,
    /// Whether messages are queued: the last ASP became inactive less than T(r) ago.
    pub(crate) pending: bool,
}

/// Which links take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Link(u16),
    Each(Few),
    /// The control side queues it.
    Pending,
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

    /// The links of a hop that take a message. `shared` hops have shared the link selections before.
    pub(crate) fn target(&self, hop: usize, sls: u8, shared: usize) -> Option<Target> {
        let state = self.forward.hops.get(hop)?;
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

    /// Whether a message for a point code would be sent.
    pub(crate) fn is_reachable(&self, code: PointCode) -> bool {
        let destination = self.tables.routes.find(code);
        let hops = destination.and_then(|at| self.forward.destinations.get(at));
        hops.is_some_and(|hops| !hops.is_empty())
    }

    /// Whether a subsystem is prohibited at its node.
    pub(crate) fn is_prohibited(&self, code: PointCode, subsystem: u8) -> bool {
        !self.forward.prohibited.is_empty() && self.forward.prohibited.contains(&(code.0, subsystem))
    }
}
