//! What neighbours and gateways report of destinations (TFP, TFR, TFA; DUNA, DAVA, DRST), together: each change of states costs as
//! much as there are destinations, and a node may report all of its own, one by one.

use std::time::{Duration, Instant};

use ahash::AHashMap;
use ss7_proto::mtp3::Management;

use super::links::to_peer;
use super::{Control, Inner};
use crate::tables::Cluster;

/// After a report further ones are collected for this time.
const COLLECTION: Duration = Duration::from_millis(50);
/// T10: interval of tests of a destination that a neighbour has called prohibited (Q.704 §13.5, §16.8; 30 s to 60 s).
const ROUTE_TEST: Duration = Duration::from_secs(30);
/// Tests that are sent at once: the queue of a link has room for other management.
const MOST_TESTS: usize = 256;
/// Reports that are collected; further ones have effect at once.
const MOST: usize = 65_536;

/// Reports that have no effect yet, in their order.
#[derive(Default)]
pub(super) struct Transfers {
    reports: Vec<Report>,
    /// Until when they are collected.
    until: Option<Instant>,
}

/// What the node behind a hop says of a destination.
pub(super) struct Report {
    pub(super) hop: usize,
    pub(super) cluster: Cluster,
    pub(super) prohibits: bool,
}

impl Transfers {
    pub(super) fn wake(&self) -> Option<Instant> {
        self.until.filter(|_| !self.reports.is_empty())
    }

    /// Drops those of hops that do not report any more.
    pub(super) fn retain(&mut self, reports: impl Fn(usize) -> bool) {
        self.reports.retain(|report| reports(report.hop));
    }
}

impl Control {
    /// An adjacent node cannot reach a destination, or can again (Q.704 §13.2, §13.3).
    pub(super) fn transfer(&self, link: usize, cluster: Cluster, prohibits: bool, now: Instant) {
        let hop = self.inner.lock().tables.set_of(link);
        let report = hop.map(|hop| Report {
            hop,
            cluster,
            prohibits,
        });
        self.report(report, now);
    }

    /// The first report has effect at once, those behind it after the time of collection.
    pub(super) fn report(&self, reports: impl IntoIterator<Item = Report>, now: Instant) {
        let mut inner = self.inner.lock();
        inner.transfers.reports.extend(reports);
        let is_collected = inner.transfers.until.is_some_and(|until| until > now);
        let count = inner.transfers.reports.len();
        if count == 0 || is_collected && count < MOST {
            return;
        }
        inner.transfers.until = Some(now + COLLECTION);
        drop(inner);
        self.change(|inner| inner.apply_transfers(now));
    }
}

impl Inner {
    pub(super) fn tick_transfers(&mut self, now: Instant) {
        if self.transfers.wake().is_some_and(|until| until <= now) {
            self.transfers.until = Some(now + COLLECTION);
            self.apply_transfers(now);
        }
        self.test_routes(now);
    }

    /// Tests destinations that neighbours have called prohibited: the TFA may have been lost.
    fn test_routes(&mut self, now: Instant) {
        let due = self
            .barred
            .iter_mut()
            .filter(|(_, at)| at.is_some_and(|at| at <= now));
        let tested: Vec<(usize, Cluster)> = due
            .take(MOST_TESTS)
            .map(|(key, at)| {
                *at = Some(now + ROUTE_TEST);
                *key
            })
            .collect();
        if tested.is_empty() {
            return;
        }
        let state = self.state();
        let tests = tested.into_iter().filter_map(|(hop, cluster)| {
            let test = match cluster.wild {
                0 => Management::RouteSetTest(cluster.code),
                // TCP has closed it, with the cluster that it is in.
                _ => Management::ClusterTest(Cluster::of_ansi(cluster.code).code),
            };
            to_peer(&state, Some(hop), test)
        });
        self.sends.extend(tests);
    }

    /// Closes and opens routes by what was reported: the last report about a destination, or about a mask around it, counts. One
    /// about a part of a cluster says nothing of the cluster.
    pub(super) fn apply_transfers(&mut self, now: Instant) {
        let reports = std::mem::take(&mut self.transfers.reports).into_iter();
        let last: AHashMap<(usize, Cluster), (usize, bool)> = reports
            .enumerate()
            .map(|(number, report)| ((report.hop, report.cluster), (number, report.prohibits)))
            .collect();
        if last.is_empty() {
            return;
        }
        for destination in &self.tables.routes.destinations {
            for via in &destination.via {
                let adjacent = self.tables.hops.get(via.hop).and_then(|hop| hop.adjacent);
                // The links of this STP lead to the node itself, whatever it says of itself or of its cluster.
                if adjacent.is_some_and(|code| destination.cluster == Cluster::new(code, 0)) {
                    continue;
                }
                let around = destination.cluster.around();
                let reported = around.filter_map(|cluster| last.get(&(via.hop, cluster)));
                let key = (via.hop, destination.cluster);
                match reported.max() {
                    None => {}
                    Some((_, true)) => {
                        let first = adjacent.map(|_| now + ROUTE_TEST);
                        self.barred.entry(key).or_insert(first);
                    }
                    Some((_, false)) => {
                        self.barred.remove(&key);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;
    use std::net::SocketAddr;
    use std::sync::Arc;

    use settings::Period;
    use ss7_proto::m2pa::HEADER_LEN;
    use ss7_proto::{Plan, PointCode};
    use telemetry::{Alarms, Registry};

    use super::super::Remains;
    use super::*;
    use crate::config::{Config, Link, LinkSet, NumberingPlan, Role, Route};
    use crate::path::read_msu;
    use crate::tables::Tables;

    const DESTINATIONS: u32 = 600;
    const FIRST: u32 = 100;

    /// An STP of ITU with a neighbour that leads to many destinations.
    fn control() -> Control {
        let routes = (FIRST..FIRST + DESTINATIONS).map(|code| code.to_string());
        control_in(NumberingPlan::Itu, "2", routes)
    }

    /// An STP with a neighbour that leads to destinations, and is there.
    fn control_in(
        plan: NumberingPlan,
        neighbour: &str,
        destinations: impl Iterator<Item = String>,
    ) -> Control {
        let control = started(plan, neighbour, destinations);
        control.associated(0, SocketAddr::from(([127, 0, 0, 2], 3_565)));
        bring_up(&control);
        control
    }

    /// An STP with a neighbour, which is not there yet, that leads to destinations.
    pub(in super::super) fn started(
        plan: NumberingPlan,
        neighbour: &str,
        destinations: impl Iterator<Item = String>,
    ) -> Control {
        let mut config = Config::default();
        config.point_codes.plan = plan;
        config.point_codes.own = "1".to_owned();
        config.mtp.t21 = Period::default();
        config.links = vec![Link {
            name: "a".to_owned(),
            role: Role::M2pa,
            peer: vec![[127, 0, 0, 2].into()],
            ..Link::default()
        }];
        config.link_sets = vec![LinkSet {
            name: "neighbour".to_owned(),
            links: vec!["a".to_owned()],
            point_code: Some(neighbour.to_owned()),
            ..LinkSet::default()
        }];
        let route = |destination| Route {
            destination,
            via: "neighbour".to_owned(),
            priority: 0,
        };
        config.routes = destinations.map(route).collect();
        let registry = Registry::new();
        let tables = Arc::new(Tables::load(&config).unwrap());
        Control::new(&config, tables, &registry, &Alarms::new(&registry))
    }

    /// The link to the neighbour is in service, and has passed its test.
    pub(in super::super) fn bring_up(control: &Control) {
        control.in_service(0);
        control.restored(0);
    }

    pub(in super::super) fn fail(control: &Control) {
        let remains = Remains {
            accepted: 0,
            sent: VecDeque::new(),
            unsent: Vec::new(),
        };
        control.failed(0, remains);
    }

    fn reachable(control: &Control) -> usize {
        let state = control.state.load();
        let all = FIRST..FIRST + DESTINATIONS;
        all.filter(|code| state.is_reachable(PointCode(*code))).count()
    }

    /// The messages of network management in the queue of the link.
    fn queued(control: &Control, plan: Plan) -> Vec<Management> {
        let mut receiver = control.mailboxes[0].take().unwrap();
        let frames = std::iter::from_fn(|| receiver.try_recv().ok());
        let messages = frames.filter_map(|frame| {
            let msu = read_msu(&frame.octets[HEADER_LEN + 1..], plan).unwrap();
            Management::read(msu.user_data, plan)
        });
        let messages = messages.collect();
        control.mailboxes[0].give_back(receiver);
        messages
    }

    /// TCP closes the way to each destination in the cluster but the neighbour, and has no effect on one that is wider. RST tests point
    /// codes, RCP what is wider.
    #[test]
    fn parts_of_a_prohibited_cluster_are_tested() {
        let destinations = ["5-20-2", "5-20-16/4", "5-20-0/8", "5-0-0/16", "6-0-1"];
        let control = control_in(
            NumberingPlan::Ansi,
            "5-20-1",
            destinations.map(str::to_owned).into_iter(),
        );
        let reachable = || {
            let state = control.state.load();
            [0x05_1401, 0x05_1402, 0x05_1411, 0x05_1499, 0x05_1501, 0x06_0001]
                .map(|code| u8::from(state.is_reachable(PointCode(code))))
        };
        let report = |message| control.network_management(0, 0, message);
        let far = Instant::now() + Duration::from_secs(3_600);
        // The member of a message about a cluster does not count.
        report(Management::ClusterProhibited(PointCode(0x05_1407)));
        assert_eq!(reachable(), [1, 0, 0, 0, 1, 1]);
        queued(&control, Plan::Ansi);
        control.tick(far);
        let mut tests = queued(&control, Plan::Ansi);
        tests.sort_by_key(|test| format!("{test:?}"));
        let of_cluster = Management::ClusterTest(PointCode(0x05_1400));
        let of_code = Management::RouteSetTest(PointCode(0x05_1402));
        assert_eq!(tests, [of_cluster, of_cluster, of_code]);
        report(Management::ClusterAllowed(PointCode(0x05_1400)));
        control.tick(far + ROUTE_TEST);
        assert_eq!(reachable(), [1; 6]);
        assert_eq!(queued(&control, Plan::Ansi), []);
    }

    #[test]
    fn a_neighbour_that_prohibits_all_destinations_causes_few_changes() {
        let control = control();
        assert_eq!(reachable(&control), DESTINATIONS as usize);
        let far = Instant::now() + Duration::from_secs(3_600);
        let report = |code, message: fn(PointCode) -> Management| {
            control.network_management(0, 0, message(PointCode(code)));
        };
        // The first has effect at once.
        report(FIRST, Management::TransferProhibited);
        assert_eq!(reachable(&control), DESTINATIONS as usize - 1);
        control.inner.lock().transfers.until = Some(far);
        let before = control.inner.lock().number;
        for code in FIRST..FIRST + DESTINATIONS {
            report(code, Management::TransferProhibited);
        }
        report(FIRST + 1, Management::TransferAllowed);
        assert_eq!(control.inner.lock().transfers.wake(), Some(far));
        control.tick(far);
        assert_eq!(reachable(&control), 1);
        assert_eq!(control.inner.lock().number, before + 1);
        // Each is tested after T10, some at a time.
        let tests = |at: Instant| {
            control.tick(at);
            let sent = queued(&control, Plan::Itu).into_iter();
            sent.filter(|message| matches!(message, Management::RouteSetTest(_)))
                .count()
        };
        assert_eq!(
            tests(far + ROUTE_TEST - Duration::from_secs(1)),
            1,
            "the first one"
        );
        let mut count = 0;
        loop {
            match tests(far + ROUTE_TEST) {
                0 => break,
                some => count += some,
            }
        }
        assert_eq!(count, DESTINATIONS as usize - 1);
        // What was reported before all links have failed is of no use behind it.
        report(FIRST + 1, Management::TransferProhibited);
        fail(&control);
        bring_up(&control);
        control.tick(far + COLLECTION);
        assert_eq!(reachable(&control), DESTINATIONS as usize);
    }
}
