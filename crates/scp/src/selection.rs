//! Selection of one producer among several candidates (TS 29.500 §6.5, §6.12; TS 29.510 §6.1.6.2.2).
//!
//! Pure: the caller provides the standing of each candidate and the randomness. Candidates are compared by
//! standing, then locality, then `priority`; among equals the draw is weighted by `capacity` and by what
//! `load` leaves of it.

use smallvec::SmallVec;

use routing::network::ServiceRef;

/// State of a candidate beyond its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it may be used at all: not yet tried, not ejected, not over a limit, allowed for the consumer.
    pub usable: bool,
    /// Whether it is selected only if no other is usable.
    pub last: bool,
    /// Distance by the preferences of the request, then by locality; 0 is best.
    pub distance: u32,
    /// Load it reported itself (LCI), where newer than its profile; 0 to 100.
    pub load: Option<u8>,
}

impl Standing {
    /// Usable, near, nothing reported.
    pub const PLAIN: Self = Self {
        usable: true,
        last: false,
        distance: 0,
        load: None,
    };
    /// Not selectable.
    pub const UNUSABLE: Self = Self {
        usable: false,
        last: false,
        distance: 0,
        load: None,
    };
}

/// Position of the chosen candidate; `None` when none is usable.
///
/// `standing` is asked once per candidate. `random` returns any number, and is asked if there are equals; equal numbers
/// choose equally.
pub fn choose<'a>(
    candidates: &'a [ServiceRef],
    standing: impl Fn(&'a ServiceRef) -> Standing,
    random: impl FnOnce() -> u64,
) -> Option<usize> {
    let mut best: Option<Rank> = None;
    // Those of the best rank, each with its weight.
    let mut equals: SmallVec<[(usize, u64); 16]> = SmallVec::new();
    for (position, candidate) in candidates.iter().enumerate() {
        let standing = standing(candidate);
        let Some(rank) = rank(candidate, standing) else {
            continue;
        };
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
            equals.clear();
        }
        if best == Some(rank) {
            equals.push((position, weight(candidate, standing)));
        }
    }
    if let [(only, _)] = &*equals {
        return Some(*only);
    }
    let total = equals.iter().map(|(_, weight)| weight).sum();
    let mut ticket = scale(random(), total);
    let drawn = equals.iter().find(|(_, weight)| {
        let is_drawn = ticket < *weight;
        ticket = ticket.wrapping_sub(*weight);
        is_drawn
    });
    drawn.or(equals.last()).map(|(position, _)| *position)
}

/// Whether it is a last resort, its distance, its priority.
type Rank = (bool, u32, u16);

/// Smaller is better.
fn rank(candidate: &ServiceRef, standing: Standing) -> Option<Rank> {
    let service = candidate.service();
    standing
        .usable
        .then_some((standing.last, standing.distance, service.priority))
}

/// At least 1: a producer at full load or without capacity is unlikely, not impossible, within the best priority.
fn weight(candidate: &ServiceRef, standing: Standing) -> u64 {
    let service = candidate.service();
    let load = u64::from(standing.load.unwrap_or(service.load).min(100));
    (u64::from(service.capacity) * (100 - load)).max(1)
}

/// `random` mapped evenly onto `0..total`.
fn scale(random: u64, total: u64) -> u64 {
    // The product of two 64-bit numbers fits 128 bits; its upper half is below `total`.
    ((u128::from(random) * u128::from(total)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use routing::network::{NfStatus, Producer};
    use serde_json::json;
    use std::sync::Arc;

    fn candidate(priority: u16, capacity: u16, load: u8, status: &str) -> ServiceRef {
        let producer = Producer::from_value(&json!({
            "nfInstanceId": format!("{priority}-{capacity}-{load}"), "nfType": "UDM", "nfStatus": status,
            "priority": priority, "capacity": capacity, "load": load, "ipv4Addresses": ["127.0.0.1"],
            "nfServices": [{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED"}]
        }));
        ServiceRef::new(Arc::new(producer.unwrap()), 0).unwrap()
    }

    /// Spreads `n` draws evenly over all numbers.
    fn shares(candidates: &[ServiceRef], standing: impl Fn(&ServiceRef) -> Standing, n: u64) -> Vec<u64> {
        let mut shares = vec![0; candidates.len()];
        for i in 0..n {
            let middle = i * (u64::MAX / n) + u64::MAX / n / 2;
            shares[choose(candidates, &standing, || middle).unwrap()] += 1;
        }
        shares
    }

    #[test]
    fn priority_first_then_capacity_left_by_load() {
        let candidates = [
            candidate(1, 100, 0, "REGISTERED"),
            candidate(1, 100, 50, "REGISTERED"),
            candidate(1, 50, 50, "REGISTERED"),
            candidate(2, 60_000, 0, "REGISTERED"),
        ];
        assert_eq!(
            shares(&candidates, |_| Standing::PLAIN, 7_000),
            [4_000, 2_000, 1_000, 0]
        );
    }

    #[test]
    fn near_before_priority_and_reported_load_counts() {
        let candidates = [
            candidate(5, 100, 0, "REGISTERED"),
            candidate(1, 100, 0, "REGISTERED"),
        ];
        let far_is_second = |c: &ServiceRef| Standing {
            distance: u32::from(c.service().priority == 1),
            ..Standing::PLAIN
        };
        assert_eq!(shares(&candidates, far_is_second, 100), [100, 0]);
        let same = [
            candidate(1, 100, 0, "REGISTERED"),
            candidate(1, 101, 0, "REGISTERED"),
        ];
        let reported = |c: &ServiceRef| Standing {
            load: (c.service().capacity == 100).then_some(100),
            ..Standing::PLAIN
        };
        assert_eq!(shares(&same, reported, 10_101)[0], 1);
    }

    #[test]
    fn suspended_only_when_nothing_else_is_usable() {
        let candidates = [candidate(1, 1, 0, "SUSPENDED"), candidate(9, 1, 0, "REGISTERED")];
        let by_status = |c: &ServiceRef| Standing {
            last: c.service().status != NfStatus::Registered,
            ..Standing::PLAIN
        };
        assert_eq!(choose(&candidates, by_status, || 0), Some(1));
        let only_first = |c: &ServiceRef| {
            if c.service().priority == 1 {
                by_status(c)
            } else {
                Standing::UNUSABLE
            }
        };
        assert_eq!(choose(&candidates, only_first, || 0), Some(0));
        assert_eq!(choose(&candidates, |_| Standing::UNUSABLE, || 0), None);
        assert_eq!(choose(&[], |_| Standing::PLAIN, || 0), None);
    }

    proptest! {
        #[test]
        fn a_usable_candidate_is_always_found(
            seeds in proptest::collection::vec((0u16..4, any::<u16>(), 0u8..=100, any::<bool>()), 1..12),
            random in any::<u64>(),
        ) {
            let candidates: Vec<_> = seeds.iter().map(|s| candidate(s.0, s.1, s.2, "REGISTERED")).collect();
            let usable = |c: &ServiceRef| {
                let at = candidates.iter().position(|x| std::ptr::eq(x, c)).unwrap();
                Standing { usable: seeds[at].3, ..Standing::PLAIN }
            };
            match choose(&candidates, usable, || random) {
                Some(at) => {
                    prop_assert!(seeds[at].3);
                    let best = seeds.iter().filter(|s| s.3).map(|s| s.0).min();
                    prop_assert_eq!(Some(seeds[at].0), best);
                }
                None => prop_assert!(seeds.iter().all(|s| !s.3)),
            }
        }
    }
}
