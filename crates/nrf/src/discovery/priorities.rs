//! Priorities that an answer has in place of those registered, so that a consumer that selects by `priority` heeds the
//! preferred locality: profiles that do not match it get a lower priority than those that do (TS 29.510 table
//! 6.2.3.2.3.1-1, `preferred-locality`). One map serves profiles and services alike, so that the order among the
//! profiles of one distance, and among services, stays.

use std::collections::{BTreeMap, BTreeSet};

use ::discovery::{Nearness, Preferences};

use super::answer::Chosen;

/// How the priorities of an answer change, by profile.
pub(super) struct Altered {
    tiers: Vec<Tier>,
    /// The tier of each profile of the answer.
    of: Vec<usize>,
}

/// New priorities by those registered, of profiles that are equally far from the preferred locality.
#[derive(Default)]
pub(super) struct Tier(BTreeMap<u16, u16>);

impl Altered {
    /// `None` when the priorities may stay as they are.
    pub(super) fn of(chosen: &[Chosen], wanted: &Preferences, near: Nearness<'_>) -> Option<Self> {
        let distances: Vec<Vec<u32>> = chosen
            .iter()
            .map(|one| wanted.tier(&one.entry.profile, near))
            .collect();
        let distinct: BTreeSet<&Vec<u32>> = distances.iter().collect();
        if distinct.len() < 2 {
            return None;
        }
        let place: BTreeMap<&Vec<u32>, usize> = distinct.into_iter().zip(0..).collect();
        let of: Vec<usize> = distances
            .iter()
            .filter_map(|one| place.get(one).copied())
            .collect();
        let registered: BTreeSet<(usize, u16)> = of
            .iter()
            .zip(chosen)
            .flat_map(|(tier, one)| priorities(one).map(|priority| (*tier, priority)))
            .collect();
        let mut tiers = Vec::new();
        tiers.resize_with(place.len(), Tier::default);
        let values = lowered(registered.iter().map(|(_, priority)| *priority).collect());
        for ((tier, before), after) in registered.into_iter().zip(values) {
            if let Some(tier) = tiers.get_mut(tier) {
                tier.0.insert(before, after);
            }
        }
        let altered = Self { tiers, of };
        let changes = |(tier, one): (&Tier, &Chosen)| tier.changes(one);
        let changed = altered.each().zip(chosen).any(changes);
        changed.then_some(altered)
    }

    /// The priorities of a profile, by its position in the answer.
    pub(super) fn tier(&self, profile: usize) -> Option<&Tier> {
        self.tiers.get(*self.of.get(profile)?)
    }

    fn each(&self) -> impl Iterator<Item = &Tier> {
        self.of.iter().filter_map(|tier| self.tiers.get(*tier))
    }
}

impl Tier {
    /// The priority of a profile, where it is another than that registered.
    pub(super) fn of_profile(&self, registered: Option<u16>) -> Option<u16> {
        let altered = self.0.get(&registered.unwrap_or(u16::MAX)).copied();
        altered.filter(|altered| registered != Some(*altered))
    }

    /// The priority of a service likewise; one without a priority has that of its profile.
    pub(super) fn of_service(&self, registered: Option<u16>) -> Option<u16> {
        self.of_profile(Some(registered?))
    }

    fn changes(&self, one: &Chosen) -> bool {
        let mut services = one.shown();
        self.of_profile(one.entry.profile.priority).is_some()
            || services.any(|(_, service)| self.of_service(service.priority).is_some())
    }
}

/// The priorities that a consumer sees: those of the services, and that of the profile where it counts. A profile
/// without one comes last.
fn priorities(one: &Chosen) -> impl Iterator<Item = u16> {
    let own = one.entry.profile.priority;
    let counts = one.services == 0 || one.shown().any(|(_, service)| service.priority.is_none());
    let profile = own.or(counts.then_some(u16::MAX));
    profile
        .into_iter()
        .chain(one.shown().filter_map(|(_, service)| service.priority))
}

/// Raises values (a lower priority is a larger value) as little as possible, so that each is above the one before it.
/// Where the range ends, those before it give way.
fn lowered(mut values: Vec<u16>) -> Vec<u16> {
    let mut least = Some(0);
    for value in &mut values {
        *value = least.map_or(u16::MAX, |least| least.max(*value));
        least = value.checked_add(1);
    }
    let mut most = u16::MAX;
    for value in values.iter_mut().rev() {
        *value = most.min(*value);
        most = value.saturating_sub(1);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::lowered;

    #[test]
    fn values_rise_as_little_as_possible() {
        assert_eq!(lowered(vec![1, 5, 1, 3, 9]), [1, 5, 6, 7, 9]);
        assert_eq!(lowered(vec![1, 5, 7]), [1, 5, 7]);
        assert_eq!(
            lowered(vec![10, 65_535, 10, 65_535]),
            [10, 65_533, 65_534, 65_535]
        );
        assert_eq!(lowered(vec![0; 3]), [0, 1, 2]);
        assert_eq!(lowered(Vec::new()), [0; 0]);
    }
}
