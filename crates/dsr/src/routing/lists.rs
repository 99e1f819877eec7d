//! Route lists: groups in order of preference, peers by weight.

use std::sync::Arc;

use crate::registry::{Hop, HopState, Hops};

/// Peers that share load.
#[derive(Debug)]
pub(crate) struct RouteGroup {
    /// Name.
    pub(crate) name: String,
    members: Vec<(Hops, u32)>,
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
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    /// Hops that were tried, by id.
    pub(crate) tried: &'a [u32],
    /// The hop the request came from: nothing is sent back.
    pub(crate) from: Option<u32>,
    /// Hops that may not be used, by id.
    pub(crate) barred: &'a [u32],
    /// Uniform over all of `u32`.
    pub(crate) dice: u32,
}

impl Choice<'_> {
    /// Whether that hop may be used at all.
    #[must_use]
    pub(crate) fn permits(&self, hop: &Hop) -> bool {
        self.from != Some(hop.id) && !self.tried.contains(&hop.id) && !self.barred.contains(&hop.id)
    }
}

impl RouteGroup {
    /// A group of peers with their weights.
    #[must_use]
    pub(crate) fn new(name: String, members: Vec<(Hops, u32)>) -> Self {
        Self { name, members }
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
                Arc::new(RouteGroup::new(format!("g{g}"), members.collect()))
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
                barred: &[],
                dice,
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
}
