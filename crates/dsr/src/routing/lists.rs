//! Route lists: groups in order of preference, peers by weight.

use std::sync::Arc;

use crate::registry::{Hop, HopState, Hops};

/// Peers that share load.
#[derive(Debug)]
pub(crate) struct RouteGroup {
    /// Name.
    pub(crate) name: String,
    members: Vec<(Hops, u32)>,
    /// Whether the Session-Id selects the peer.
    by_session: bool,
}

/// Groups, the preferred first.
#[derive(Debug)]
pub(crate) struct RouteList {
    /// Name.
    pub(crate) name: String,
    groups: Vec<Arc<RouteGroup>>,
    minimum: u64,
    across: bool,
}

/// Input of the choice of a hop.
#[derive(Debug, Default)]
pub(crate) struct Choice<'a> {
    /// Hops that were tried, by id.
    pub(crate) tried: &'a [u32],
    /// The hop the request came from: nothing is sent back.
    pub(crate) from: Option<u32>,
    /// Hops that may not be used, by id.
    pub(crate) barred: &'a [u32],
    /// Uniform over all of `u32`.
    pub(crate) dice: u32,
    /// The Session-Id of the request.
    pub(crate) session: Option<&'a [u8]>,
    /// The Destination-Host of the request.
    pub(crate) host: Option<&'a [u8]>,
}

impl Choice<'_> {
    /// Whether that hop may be used at all.
    #[must_use]
    pub(crate) fn permits(&self, hop: &Hop) -> bool {
        self.from != Some(hop.id) && !self.tried.contains(&hop.id) && !self.barred.contains(&hop.id)
    }
}

impl RouteGroup {
    /// A group of peers with their weights; `by_session`: the Session-Id selects among them.
    #[must_use]
    pub(crate) fn new(name: String, members: Vec<(Hops, u32)>, by_session: bool) -> Self {
        Self {
            name,
            members,
            by_session,
        }
    }

    /// The peer in this state that the session stays with: the one that its client names, else the one with the highest
    /// score of this Session-Id (rendezvous hashing, each peer's part in proportion to its weight).
    fn choose_by_session(&self, state: HopState, session: &[u8], choice: &Choice<'_>) -> Option<&Arc<Hop>> {
        let usable = |hop: &&Arc<Hop>| hop.usable() == state && choice.permits(hop);
        let each = self
            .members
            .iter()
            .filter_map(|(hops, weight)| Some((hops.iter().find(usable)?, *weight)));
        let named = |hop: &Hop| {
            choice
                .host
                .is_some_and(|host| hop.host.as_bytes().eq_ignore_ascii_case(host))
        };
        if let Some((hop, _)) = each.clone().find(|(hop, _)| named(hop)) {
            return Some(hop);
        }
        let session = hash(session.iter().copied());
        let scored = each.map(|(hop, weight)| {
            let host = hash(hop.host.bytes().map(|byte| byte.to_ascii_lowercase()));
            (hop, score(mix(session ^ host), weight))
        });
        let best = scored.max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.map(|(hop, _)| hop)
    }

    /// The weight of members with a hop in this state or better.
    fn capacity(&self, state: HopState) -> u64 {
        let there = |hops: &Hops| hops.iter().any(|hop| hop.usable() >= state);
        self.members
            .iter()
            .filter(|(hops, _)| there(hops))
            .map(|(_, weight)| u64::from(*weight))
            .sum()
    }

    /// A hop in this state, by weight.
    fn choose(&self, state: HopState, choice: &Choice<'_>) -> Option<&Arc<Hop>> {
        if self.by_session
            && let Some(session) = choice.session
        {
            return self.choose_by_session(state, session, choice);
        }
        let usable = |hop: &Hop| hop.usable() == state && choice.permits(hop);
        // A peer that reports its load gets less, the more loaded it is (RFC 8583 §6).
        let weight = |(hops, weight): &(Hops, u32)| match hops.iter().find(|hop| usable(hop)) {
            Some(hop) => u128::from(*weight) * u128::from(hop.load_weight()),
            None => 0,
        };
        let total: u128 = self.members.iter().map(weight).sum();
        if total == 0 {
            return None;
        }
        let mut point = (u128::from(choice.dice) * total) >> 32;
        let (hops, _) = self
            .members
            .iter()
            .find(|member| match point.checked_sub(weight(member)) {
                Some(rest) => {
                    point = rest;
                    false
                }
                None => true,
            })?;
        // Of several connections with one peer, each in turn.
        let count = hops.iter().filter(|hop| usable(hop)).count();
        let turn = choice.dice as usize % count.max(1);
        hops.iter().filter(|hop| usable(hop)).nth(turn)
    }

    /// Every hop of the group.
    pub(crate) fn hops(&self) -> impl Iterator<Item = &Arc<Hop>> {
        self.members.iter().flat_map(|(hops, _)| hops)
    }
}

/// A hash that is the same in every router and every run (FNV-1a).
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Spreads the bits of a hash over all of `u64` (the finalizer of SplitMix64).
const fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// The score of a peer of this weight: with the logarithm, the highest score is each one's in proportion to its weight.
fn score(hash: u64, weight: u32) -> f64 {
    // Strictly between 0 and 1.
    let part = ((hash >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    f64::from(weight) / -part.ln()
}

impl RouteList {
    /// A list of groups, the preferred first. A group is used when hops of weight `minimum` are available in
    /// it; `across`: whether what failed in one group is tried in the others.
    #[must_use]
    pub(crate) fn new(name: String, groups: Vec<Arc<RouteGroup>>, minimum: u32, across: bool) -> Self {
        Self {
            name,
            groups,
            minimum: u64::from(minimum.max(1)),
            across,
        }
    }

    /// The groups, the preferred first.
    #[must_use]
    pub(crate) fn groups(&self) -> &[Arc<RouteGroup>] {
        &self.groups
    }

    /// The group that is used: the first with enough available, else the one with the most.
    #[must_use]
    pub(crate) fn active(&self) -> Option<usize> {
        let mut most = (0, None);
        for (index, group) in self.groups.iter().enumerate() {
            let capacity = group.capacity(HopState::Available);
            if capacity >= self.minimum {
                return Some(index);
            }
            if capacity > most.0 {
                most = (capacity, Some(index));
            }
        }
        most.1
    }

    /// The next hop: of the active group, else of the others in order; available hops before suspect ones.
    #[must_use]
    pub(crate) fn choose(&self, choice: &Choice<'_>) -> Option<&Arc<Hop>> {
        let active = self.active();
        // A request that failed in one group stays in it, unless `across` permits others, also when that makes another
        // one active.
        let open = |group: &RouteGroup| {
            self.across || choice.tried.is_empty() || group.hops().any(|hop| choice.tried.contains(&hop.id))
        };
        let choose = |at: usize, state| {
            let group = self.groups.get(at).filter(|group| open(group))?;
            group.choose(state, choice)
        };
        for state in [HopState::Available, HopState::Degraded] {
            if let Some(hop) = active.and_then(|at| choose(at, state)) {
                return Some(hop);
            }
            let mut others = (0..self.groups.len()).filter(|at| Some(*at) != active);
            if let Some(hop) = others.find_map(|at| choose(at, state)) {
                return Some(hop);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    struct World {
        hops: Vec<Arc<Hop>>,
        list: RouteList,
    }

    /// Groups of peers `a0 a1 …` with these weights.
    fn world(weights: &[&[u32]], minimum: u32, across: bool) -> World {
        let registry = Registry::default();
        let mut hops = Vec::new();
        let groups = weights
            .iter()
            .enumerate()
            .map(|(g, weights)| {
                let members = weights.iter().enumerate().map(|(n, weight)| {
                    let hop = registry.claim(&format!("{g}{n}"), 0, true, 0);
                    hop.set_state(HopState::Available);
                    hops.push(hop.clone());
                    (Hops::from_iter([hop]), *weight)
                });
                Arc::new(RouteGroup::new(format!("g{g}"), members.collect(), false))
            })
            .collect();
        let list = RouteList::new("l".to_owned(), groups, minimum, across);
        World { hops, list }
    }

    fn spread(list: &RouteList, tried: &[u32], from: Option<u32>) -> Vec<(u32, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        for n in 0..1000u32 {
            let dice = n.wrapping_mul(0x9e37_79b9);
            if let Some(hop) = list.choose(&Choice {
                tried,
                from,
                dice,
                ..Choice::default()
            }) {
                *counts.entry(hop.id).or_insert(0) += 1;
            }
        }
        counts.into_iter().collect()
    }

    #[test]
    fn load_follows_weights_and_only_the_first_group_that_can() {
        let World { hops, list } = world(&[&[3, 1], &[1]], 1, true);
        let counts = spread(&list, &[], None);
        assert_eq!(counts.len(), 2);
        assert!((740..760).contains(&counts[0].1), "{counts:?}");
        // Two of four are left, but three are wanted: the second group has even less, so this one stays.
        hops[0].set_state(HopState::Down);
        assert_eq!(spread(&list, &[], None), [(1, 1000)]);
        hops[1].set_state(HopState::Down);
        assert_eq!(spread(&list, &[], None), [(2, 1000)]);
        // A suspect hop is better than none.
        hops[2].set_state(HopState::Down);
        hops[1].set_state(HopState::Degraded);
        assert_eq!(spread(&list, &[], None), [(1, 1000)]);
        hops[1].set_state(HopState::Down);
        assert_eq!(spread(&list, &[], None), []);
    }

    #[test]
    fn a_group_needs_its_minimum_or_the_most() {
        let World { hops, list } = world(&[&[1, 1, 1], &[2, 2]], 3, true);
        assert_eq!(list.active(), Some(0));
        hops[0].set_state(HopState::Degraded);
        assert_eq!(list.active(), Some(1));
        hops[3].set_state(HopState::Down);
        assert_eq!(list.active(), Some(0), "2 against 2: the preferred one");
    }

    #[test]
    fn a_hop_is_tried_once_and_never_the_sender() {
        let World { list, .. } = world(&[&[1, 1], &[1]], 1, true);
        assert_eq!(spread(&list, &[0], None), [(1, 1000)]);
        assert_eq!(spread(&list, &[0], Some(1)), [(2, 1000)]);
        assert_eq!(spread(&list, &[0, 1, 2], None), []);
        let World { list, .. } = world(&[&[1, 1], &[1]], 1, false);
        assert_eq!(spread(&list, &[0, 1], None), []);
    }

    #[test]
    fn a_session_stays_with_its_peer_and_only_those_of_a_lost_peer_move() {
        let registry = Registry::default();
        let weights = [("a", 1), ("b", 1), ("c", 2)];
        let members = weights.map(|(host, weight)| {
            let hop = registry.claim(host, 0, true, 0);
            hop.set_state(HopState::Available);
            (Hops::from_iter([hop]), weight)
        });
        let group = RouteGroup::new("g".to_owned(), members.to_vec(), true);
        let list = RouteList::new("l".to_owned(), vec![Arc::new(group)], 1, true);
        let of = |session: u32, host: Option<&[u8]>| {
            let session = format!("pgw.example;1;{session}").into_bytes();
            let choice = Choice {
                dice: session.len() as u32,
                session: Some(&session),
                host,
                ..Choice::default()
            };
            list.choose(&choice).unwrap().host.clone()
        };
        let before: Vec<_> = (0..4000).map(|session| of(session, None)).collect();
        let count = |host: &str| before.iter().filter(|chosen| &***chosen == host).count();
        assert!((900..1100).contains(&count("a")), "{}", count("a"));
        assert!((1880..2120).contains(&count("c")), "{}", count("c"));
        assert_eq!(&*of(7, Some(b"B")), "b", "the client names it");
        assert_eq!(of(7, Some(b"elsewhere")), before[7]);
        members[1].0[0].set_state(HopState::Down);
        for (session, before) in before.iter().enumerate() {
            let now = of(session as u32, None);
            assert!(now == *before || &**before == "b");
        }
        assert_ne!(&*of(7, Some(b"b")), "b", "it is lost");
        members[1].0[0].set_state(HopState::Available);
        assert!((0..4000).all(|session| of(session, None) == before[session as usize]));
    }
}
