//! Demand on egress throttle groups, of each worker and of siblings, and the part of a rate that each gets by it.
//! Each worker takes its parts once per second; no request waits for a lock.

use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::Mutex;

/// The part of a rate that does not follow demand: a router or worker without requests so far can begin at once.
const FLOOR: f64 = 0.2;
/// Time after which the demand of a sibling that was not reported again is unknown.
const FRESH: Duration = Duration::from_secs(5);

/// Demand of the workers of this router and of its siblings.
#[derive(Debug, Default)]
pub(crate) struct Demands {
    /// By group, the workers by position.
    workers: Mutex<AHashMap<Box<str>, Vec<Worker>>>,
    /// By the name of the sibling in lower case.
    siblings: Mutex<AHashMap<Box<str>, Reported>>,
}

/// What one worker has of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    /// Requests per second, refused ones included.
    demand: f64,
    /// Its part of the group's rate.
    share: f64,
}

/// What a sibling reported last.
#[derive(Debug)]
struct Reported {
    at: Instant,
    by_group: AHashMap<String, f64>,
}

/// What decides on the part of one worker.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    /// Name of the group.
    pub(crate) group: &'a str,
    /// Position of the worker.
    pub(crate) worker: usize,
    /// Its demand.
    pub(crate) demand: f64,
    /// Its part of the group's available peers, of those of this router.
    pub(crate) peers: f64,
    /// Siblings that have the group as well and are available.
    pub(crate) siblings: &'a [&'a str],
}

impl Demands {
    /// The part of a group's rate that a worker has from now on.
    pub(crate) fn share(&self, claim: &Claim<'_>, now: Instant) -> f64 {
        let mut workers = self.workers.lock();
        let of_group = workers.entry(claim.group.into()).or_default();
        if of_group.len() <= claim.worker {
            of_group.resize(claim.worker + 1, Worker::default());
        }
        of_group[claim.worker].demand = claim.demand;
        let own: f64 = of_group.iter().map(|worker| worker.demand).sum();
        let share = self.router_part(claim, own, now) * part(claim.peers, claim.demand, own);
        of_group[claim.worker].share = share;
        share
    }

    /// The part of this router: a sibling whose demand is unknown has an equal part.
    fn router_part(&self, claim: &Claim<'_>, own: f64, now: Instant) -> f64 {
        if claim.siblings.is_empty() {
            return 1.0;
        }
        let siblings = self.siblings.lock();
        let demand = |host: &&&str| {
            let reported = siblings.get(&*host.to_ascii_lowercase())?;
            let is_fresh = now.saturating_duration_since(reported.at) <= FRESH;
            is_fresh.then(|| reported.by_group.get(claim.group).copied().unwrap_or_default())
        };
        let known: Vec<f64> = claim.siblings.iter().filter_map(|host| demand(&host)).collect();
        let routers = 1.0 + claim.siblings.len() as f64;
        let follow = 1.0 + known.len() as f64;
        let all = own + known.iter().sum::<f64>();
        follow / routers * part(1.0 / follow, own, all)
    }

    /// Takes what a sibling reports: its demand by group. Values that cannot be count as none.
    pub(crate) fn report(&self, host: &str, demands: impl IntoIterator<Item = (String, f64)>, now: Instant) {
        let can_be = |demand: &f64| demand.is_finite() && *demand >= 0.0;
        let by_group = demands.into_iter().filter(|(_, demand)| can_be(demand)).collect();
        let reported = Reported { at: now, by_group };
        self.siblings
            .lock()
            .insert(host.to_ascii_lowercase().into(), reported);
    }

    /// Forgets groups and siblings that the configuration does not have any more.
    pub(crate) fn retain(&self, has_group: impl Fn(&str) -> bool, has_sibling: impl Fn(&str) -> bool) {
        self.workers.lock().retain(|group, _| has_group(group));
        self.siblings.lock().retain(|host, _| has_sibling(host));
    }

    /// Demand of this router on a group, and its part of the rate.
    pub(crate) fn of_group(&self, group: &str) -> (f64, f64) {
        let workers = self.workers.lock();
        let workers = workers.get(group).into_iter().flatten();
        workers.fold((0.0, 0.0), |(demand, share), worker| {
            (demand + worker.demand, share + worker.share)
        })
    }
}

/// A part that follows demand: `floor` of all where there is none, and of the [`FLOOR`] in any case.
fn part(floor: f64, mine: f64, all: f64) -> f64 {
    if floor <= 0.0 || all <= 0.0 {
        return floor;
    }
    FLOOR * floor + (1.0 - FLOOR) * (mine / all).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    fn claim<'a>(worker: usize, demand: f64, peers: f64, siblings: &'a [&'a str]) -> Claim<'a> {
        Claim {
            group: "hss",
            worker,
            demand,
            peers,
            siblings,
        }
    }

    #[test]
    fn workers_share_by_demand_and_all_parts_are_the_rate() {
        let (demands, now) = (Demands::default(), Instant::now());
        near(demands.share(&claim(0, 0.0, 0.5, &[]), now), 0.5);
        near(demands.share(&claim(1, 0.0, 0.5, &[]), now), 0.5);
        demands.share(&claim(0, 300.0, 0.5, &[]), now);
        demands.share(&claim(1, 100.0, 0.5, &[]), now);
        near(demands.share(&claim(0, 300.0, 0.5, &[]), now), 0.1 + 0.8 * 0.75);
        near(demands.share(&claim(1, 100.0, 0.5, &[]), now), 0.1 + 0.8 * 0.25);
        assert_eq!(demands.of_group("hss"), (400.0, 1.0));
        // A worker without an available peer has nothing.
        near(demands.share(&claim(1, 0.0, 0.0, &[]), now), 0.0);
    }

    #[test]
    fn siblings_share_by_demand_while_it_is_known() {
        let now = Instant::now();
        let (one, other) = (Demands::default(), Demands::default());
        let of = |demands: &Demands, demand: f64, sibling: &str, at: Instant| {
            demands.share(&claim(0, demand, 1.0, &[sibling]), at)
        };
        near(of(&one, 900.0, "b.example", now), 0.5);
        one.report("B.example", [("hss".to_owned(), 100.0)], now);
        other.report("a.example", [("hss".to_owned(), 900.0)], now);
        let (most, rest) = (
            of(&one, 900.0, "b.example", now),
            of(&other, 100.0, "a.example", now),
        );
        near(most, 0.1 + 0.8 * 0.9);
        near(most + rest, 1.0);
        // It is not reported any more, or cannot be.
        let later = now + FRESH + Duration::from_millis(1);
        near(of(&one, 900.0, "b.example", later), 0.5);
        one.report("b.example", [("hss".to_owned(), f64::NAN)], later);
        near(of(&one, 900.0, "b.example", later), 0.1 + 0.8);
        // One of two siblings is unknown: a third stays with it.
        let third = one.share(&claim(0, 900.0, 1.0, &["b.example", "c.example"]), later);
        near(third, 2.0 / 3.0 * (0.1 + 0.8));
        one.retain(|_| false, |_| false);
        assert_eq!(one.of_group("hss"), (0.0, 0.0));
    }
}
