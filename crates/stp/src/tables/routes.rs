//! Routes by destination point code (Q.704 §2.3.2).

use std::cmp::Reverse;

use ahash::AHashMap;
use settings::Faults;
use ss7_proto::{Plan, PointCode};

use super::{Cluster, Hop, Points};
use crate::config::Config;

/// No destination.
const NONE: u32 = u32::MAX;

/// A hop with its priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Via {
    pub(crate) priority: u8,
    pub(crate) hop: usize,
}

/// A point code or cluster, and the routes to it, the preferred ones first.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) cluster: Cluster,
    pub(crate) via: Vec<Via>,
}

/// All destinations.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) destinations: Vec<Destination>,
    /// By point code, where the plan has few: ITU's 16,384, Japan's 65,536.
    flat: Vec<u32>,
    places: AHashMap<Cluster, u32>,
    /// A bit for each number of wild bits that occurs.
    widths: u32,
}

impl Routes {
    pub(super) fn compile(config: &Config, points: &Points, hops: &[Hop], faults: &mut Faults) -> Self {
        let mut routes = Self::default();
        for (hop, server) in config.application_servers.iter().enumerate() {
            for (number, text) in server.point_codes.iter().enumerate() {
                let key = format!("applicationServers[{hop}].pointCodes[{number}]");
                routes.add(points, text, Via { priority: 0, hop }, &key, faults);
            }
        }
        for (set, settings) in config.link_sets.iter().enumerate() {
            if let Some(text) = &settings.point_code {
                let key = format!("linkSets[{set}].pointCode");
                let hop = config.application_servers.len() + set;
                routes.add(points, text, Via { priority: 0, hop }, &key, faults);
            }
        }
        for (index, route) in config.routes.iter().enumerate() {
            let Some(hop) = hops.iter().position(|hop| hop.name == route.via) else {
                faults.at(format!("routes[{index}].via")).say(
                    "names neither an application server nor a link set",
                    "the name of one",
                );
                continue;
            };
            let via = Via {
                priority: route.priority,
                hop,
            };
            routes.add(
                points,
                &route.destination,
                via,
                &format!("routes[{index}].destination"),
                faults,
            );
        }
        for destination in &mut routes.destinations {
            destination.via.sort_by_key(|via| via.priority);
        }
        routes.index(points.plan);
        routes
    }

    fn add(&mut self, points: &Points, text: &str, via: Via, key: &str, faults: &mut Faults) {
        let cluster = match Cluster::parse(points.plan, text) {
            Ok(cluster) => cluster,
            Err(error) => {
                return faults
                    .at(key)
                    .say(error, "a point code, or a cluster such as 3-48-0/3");
            }
        };
        if cluster.wild == 0 && points.are(cluster.code) {
            return faults
                .at(key)
                .say("is a point code of this STP", "that of another node");
        }
        let next = self.destinations.len();
        let place = *self.places.entry(cluster).or_insert(next as u32);
        match self.destinations.get_mut(place as usize) {
            Some(known) if known.via.iter().any(|other| other.hop == via.hop) => faults.at(key).say(
                "has a route by the same application server or link set",
                "one of the two routes",
            ),
            Some(known) => known.via.push(via),
            None => {
                self.widths |= 1 << cluster.wild;
                self.destinations.push(Destination {
                    cluster,
                    via: vec![via],
                });
            }
        }
    }

    /// Fills the array of a plan with few point codes.
    fn index(&mut self, plan: Plan) {
        if plan.bits() > 16 {
            return;
        }
        let mut order: Vec<(Cluster, u32)> = self.places.iter().map(|(one, at)| (*one, *at)).collect();
        // The widest first, so that narrower ones replace it.
        order.sort_by_key(|(cluster, _)| Reverse(cluster.wild));
        let mut flat = vec![NONE; 1 << plan.bits()];
        for (cluster, at) in order {
            let first = cluster.code.0 as usize;
            let last = first + (1_usize << cluster.wild);
            if let Some(part) = flat.get_mut(first..last) {
                part.fill(at);
            }
        }
        self.flat = flat;
    }

    /// The destination that a point code belongs to.
    pub(crate) fn find(&self, code: PointCode) -> Option<usize> {
        if !self.flat.is_empty() {
            let at = *self.flat.get(code.0 as usize)?;
            return (at != NONE).then_some(at as usize);
        }
        self.around(Cluster { code, wild: 0 })
    }

    /// The narrowest destination that has a whole cluster.
    pub(crate) fn around(&self, cluster: Cluster) -> Option<usize> {
        let known = cluster
            .around()
            .filter(|wider| self.widths >> wider.wild & 1 == 1);
        let at = known.filter_map(|wider| self.places.get(&wider)).next()?;
        Some(*at as usize)
    }

    /// Whether a cluster is a destination.
    pub(crate) fn has(&self, cluster: Cluster) -> bool {
        self.places.contains_key(&cluster)
    }
}
