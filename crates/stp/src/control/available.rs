//! From the states of machines to what is available.

use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use smallvec::SmallVec;
use ss7_proto::asp::{AsId, AsState};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::Carrier;
use ss7_proto::sccp::{Management, ManagementType};

use super::{Control, Frame, Inner, Put, SUBSYSTEM_TEST, id};
use crate::cause::Cause;
use crate::path::sccp::management_unitdata;
use crate::state::{Few, Forward, HopState, Selections, State, Target};
use crate::tables::Destination;

impl Inner {
    /// The state that follows from those of the machines.
    pub(super) fn state(&self) -> State {
        let hops: Vec<HopState> = (0..self.tables.hops.len()).map(|hop| self.hop(hop)).collect();
        let destinations = self.tables.routes.destinations.iter();
        let destinations = destinations
            .map(|destination| self.takers(destination, &hops))
            .collect();
        let prohibited = self.prohibited.keys().map(|(code, ssn)| (code.0, *ssn)).collect();
        let links = 0..self.tables.links.len();
        let up = links.clone().map(|link| self.gateway.is_up(id(link))).collect();
        let admission = links.map(|link| self.admission(link)).collect();
        State {
            number: self.number,
            tables: self.tables.clone(),
            meters: self.meters.clone(),
            admission: Arc::new(admission),
            up: Arc::new(up),
            forward: Arc::new(Forward {
                hops,
                destinations,
                prohibited,
                held: self.moves.held(),
            }),
        }
    }

    /// Whether the peer of a link is active for a hop, by either machine.
    pub(super) fn is_active(&self, link: usize, hop: usize) -> bool {
        if let Some(is_up) = self.sets.is_up(hop, link, &self.tables) {
            return is_up;
        }
        let granted = self
            .gateway
            .server(AsId(hop))
            .is_some_and(|server| server.active().contains(&id(link)));
        let asp = self.asps.get(link).and_then(Option::as_ref);
        let context = self.tables.hops.get(hop).and_then(|hop| hop.context);
        granted || asp.is_some_and(|asp| asp.is_active_for(context))
    }

    fn admission(&self, link: usize) -> Few {
        let mine = self.tables.hops_of(link);
        let active = mine.filter(|(at, _)| self.is_active(link, *at));
        active.map(|(at, _)| at as u16).collect()
    }

    fn hop(&self, at: usize) -> HopState {
        let Some(hop) = self.tables.hops.get(at) else {
            return HopState::default();
        };
        let state = self.gateway.server(AsId(at)).map(|server| server.state());
        // An application server with fewer ASPs than it wants is not active yet.
        let serves = !hop.is_server || state == Some(AsState::Active);
        let up = hop
            .links
            .iter()
            .filter(|link| serves && self.is_active(**link, at));
        let carriers = self.sets.carriers(at);
        HopState {
            up: up.map(|link| *link as u16).collect(),
            pending: hop.is_server && state == Some(AsState::Pending)
                || carriers.iter().any(|one| matches!(one, Carrier::Held(_))),
            carriers,
            restarting: self.restarts.holds(at),
        }
    }

    /// The hops of the best priority that take messages; those that are pending only when there are no others.
    fn takers(&self, destination: &Destination, hops: &[HopState]) -> Few {
        let open = |via: &&crate::tables::Via| {
            let is_held = hops.get(via.hop).is_some_and(|hop| hop.restarting);
            !is_held && !self.barred.contains_key(&(via.hop, destination.cluster))
        };
        let best = |takes: fn(&HopState) -> bool| {
            let able = destination
                .via
                .iter()
                .filter(open)
                .filter(|via| hops.get(via.hop).is_some_and(takes));
            let first = able.clone().next().map(|via| via.priority);
            let same = able.filter(|via| Some(via.priority) == first);
            same.map(|via| via.hop as u16).collect::<Few>()
        };
        let active = best(|hop| !hop.up.is_empty());
        if active.is_empty() {
            best(|hop| hop.pending)
        } else {
            active
        }
    }

    /// What is queued for hops that are no longer pending leaves, or is dropped.
    pub(super) fn release(&mut self, control: &Control, before: &State, next: &State) {
        let mut others = Vec::new();
        for (hop, queue) in self.pending.iter_mut().enumerate() {
            if queue.is_empty() {
                continue;
            }
            for frame in std::mem::take(queue) {
                match next.target(hop, frame.sls, 1) {
                    Some(Target::Pending) => queue.push_back(frame),
                    // A changeback that has not taken place: what was sent before it may be in the queue yet.
                    Some(target) if next.resumes(before, hop, frame.sls) => {
                        if let Put::Stale(frame) = control.post(next, &target, frame) {
                            queue.push_back(frame);
                        }
                    }
                    Some(target) if frame.is_m2pa() => control.forward(&target, frame),
                    Some(target) => {
                        control.post(next, &target, frame);
                    }
                    None if frame.is_m2pa() => others.push(frame),
                    None => next.meters.dropped(Cause::Recovery),
                }
            }
        }
        for frame in others {
            control.keep_within(self, next, frame);
        }
    }

    /// Queues a message for a hop that is pending.
    pub(super) fn wait(&mut self, hop: usize, frame: Frame) {
        let most = self.most_pending;
        match self.pending.get_mut(hop) {
            Some(queue) if queue.len() < most => queue.push_back(frame),
            _ => self.meters.dropped(Cause::Recovery),
        }
    }

    /// Tests prohibited subsystems whose test is due (Q.714 §5.3.4).
    pub(super) fn test_subsystems(&mut self, now: Instant) {
        let tables = self.tables.clone();
        self.prohibited
            .retain(|(code, ssn), _| tables.translations.has_member(*code, *ssn));
        let due: SmallVec<[_; 8]> = self
            .prohibited
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(key, _)| *key)
            .collect();
        if due.is_empty() {
            return;
        }
        let state = self.state();
        for (code, ssn) in due {
            self.prohibited.insert((code, ssn), now + SUBSYSTEM_TEST);
            let test = Management {
                management_type: ManagementType::Sst,
                ssn,
                point_code: code,
                multiplicity: 0,
                congestion_level: 0,
            };
            let octets = management_unitdata(test, code, &tables);
            let Some(send) = crate::path::own(&state, code, ServiceIndicator::SCCP, &octets) else {
                continue;
            };
            let links = match send.target {
                Target::Link(link) => Few::from_iter([link]),
                Target::Each(links) => links,
                // It is tested again.
                Target::Pending | Target::Held => continue,
            };
            let each = links.iter().map(|link| (usize::from(*link), send.octets.clone()));
            self.sends.extend(each);
        }
    }
}

impl State {
    /// Whether nothing differs from another state.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let same = |one: &HopState, other: &HopState| {
            (&one.up, one.pending, one.restarting) == (&other.up, other.pending, other.restarting)
                && one.carriers == other.carriers
        };
        Arc::ptr_eq(&self.tables, &other.tables)
            && self.admission == other.admission
            && self.up == other.up
            && self.forward.destinations == other.forward.destinations
            && self.forward.prohibited == other.forward.prohibited
            && self.forward.held == other.forward.held
            && self
                .forward
                .hops
                .iter()
                .zip(&other.forward.hops)
                .all(|(one, other)| same(one, other))
    }

    /// This state without links that were not active before: they are admitted, and get nothing yet. A hop whose first link
    /// becomes active is pending: acknowledgements leave in this state, and peers may send at once what other peers get to know.
    pub(super) fn without_new(&self, before: &Self) -> Self {
        let hops: Vec<HopState> = self
            .forward
            .hops
            .iter()
            .enumerate()
            .map(|(at, hop)| {
                let former = before.forward.hops.get(at);
                let was = |link: &&u16| former.is_some_and(|hop| hop.up.contains(link));
                let up: Few = hop.up.iter().filter(was).copied().collect();
                // What comes meanwhile is queued, and leaves with the rest.
                let pending = hop.pending || up.is_empty() && !hop.up.is_empty();
                HopState {
                    up,
                    pending,
                    carriers: hop.carriers_before(former),
                    restarting: hop.restarting,
                }
            })
            .collect();
        let takes = |hop: &u16| {
            hops.get(usize::from(*hop))
                .is_some_and(|hop| !hop.up.is_empty() || hop.pending)
        };
        let destinations = self.forward.destinations.iter();
        let destinations = destinations
            .map(|all| all.iter().filter(|hop| takes(hop)).copied().collect())
            .collect();
        Self {
            forward: Arc::new(Forward {
                destinations,
                prohibited: self.forward.prohibited.clone(),
                held: self.held_yet(before),
                hops,
            }),
            ..self.clone()
        }
    }

    /// What was held before leaves first: until it has, messages behind it are held.
    fn held_yet(&self, before: &Self) -> AHashMap<usize, Selections> {
        let former = &before.forward.held;
        if !former.is_empty() && !Arc::ptr_eq(&self.tables, &before.tables) {
            // Their destinations have other numbers, or are parts of others.
            let all = 0..self.forward.destinations.len();
            return all.map(|at| (at, Selections::ALL)).collect();
        }
        let mut held = self.forward.held.clone();
        for (at, selections) in former {
            held.entry(*at).or_default().extend(selections);
        }
        held
    }
}

impl HopState {
    /// Carriers while what has failed before is diverted: link selections that have another carrier are held.
    fn carriers_before(&self, former: Option<&Self>) -> Vec<Carrier> {
        let carriers = self.carriers.iter().enumerate();
        let held = carriers.map(|(at, carrier)| {
            let is_same = former.is_some_and(|former| former.carriers.get(at) == Some(carrier));
            match *carrier {
                Carrier::Link(link) if !is_same => Carrier::Held(link),
                carrier => carrier,
            }
        });
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use ss7_proto::PointCode;
    use ss7_proto::m3ua::{Builder, Message, MessageType};
    use telemetry::{Alarms, Registry};

    use super::*;
    use crate::config::{ApplicationServer, Config, Link};
    use crate::tables::Tables;

    /// What peers send while an acknowledgement leaves is held, and leaves behind it.
    #[test]
    fn a_hop_whose_link_becomes_active_is_pending_first() {
        let peer = SocketAddr::from(([127, 0, 0, 2], 2905));
        let mut config = Config::default();
        config.point_codes.own = "1".to_owned();
        config.links = vec![Link {
            name: "a".to_owned(),
            peer: vec![peer.ip()],
            ..Link::default()
        }];
        config.application_servers = vec![ApplicationServer {
            name: "one".to_owned(),
            links: vec!["a".to_owned()],
            point_codes: vec!["2".to_owned()],
            ..ApplicationServer::default()
        }];
        let tables = Arc::new(Tables::load(&config).unwrap());
        let registry = Registry::new();
        let control = Control::new(&config, tables, &registry, &Alarms::new(&registry));
        control.associated(0, peer);
        let receive = |kind| {
            let mut octets = Vec::new();
            Builder::new(kind, &mut octets).finish();
            control.received(0, 0, &Message::parse(&octets).unwrap());
            control.state.load_full()
        };
        let before = receive(MessageType::Aspup);
        let next = receive(MessageType::Aspac);
        assert_eq!(next.target(0, 0, 1), Some(Target::Link(0)));
        let between = next.without_new(&before);
        assert_eq!(between.target(0, 0, 1), Some(Target::Pending));
        assert!(between.is_reachable(PointCode(2)) && !before.is_reachable(PointCode(2)));
    }
}
