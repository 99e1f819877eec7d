//! Metrics at `/metrics`.

use std::sync::Weak;

use telemetry::{Alert, Declaration, Registry, When, events};

use crate::config::Plan;
use crate::events::Event;
use crate::hosting;
use crate::measures::Transaction;
use crate::router::Gauges;
use crate::rows::{ApplicationRow, IndicatorRow, PeerRow, ThrottleRow};
use crate::shared::Dsr;

telemetry::declare! {
    /// Gauges and histograms.
    pub(crate) GAUGES;
    gauge PEERS = "signalbox_dsr_peers" ["state"]: "Peers by state: available, degraded, unavailable.";
    gauge INDICATORS = "signalbox_dsr_indicator" ["number", "name", "about"]: "Indicators by the numbers of the benchmarking guide, averaged over indicators.interval, in the unit that signalbox dsr indicators shows.";
    gauge LEVEL = "signalbox_dsr_congestion_level" ["worker"]: "Congestion level of a message processor: 0 for none, 1 for the first of overload.levels.";
    gauge LOAD = "signalbox_dsr_load_ratio" ["worker"]: "Load of a message processor (dsr.Cpu), as a share of its capacity.";
    gauge PLANNED = "signalbox_dsr_profile_messages_per_second" ["profile"]: "What a message processor is planned for (overload.profile, overload.profileMps).";
    histogram HOLD = "signalbox_dsr_request_seconds" [] in SECONDS: "Time from a request to its answer, as the router sees it, all attempts together.",
        alert Alert::minor(When::QuantileAbove(1.0), 10, "Find the servers that answer late (`signalbox dsr peers`), and check the load of the router (`signalbox dsr indicators`).");
    counter INCIDENTS = "signalbox_dsr_connection_incidents_total" ["reason"]: "Connections that were refused, cut off or could not be made, by reason: unknownPeer, ownName, duplicate, electionLost, certificate, noCommonApplication, noCommonSecurity, tooBusy, invalidCer (a CER was refused); noCer, http, tlsInClear, noDiameter, tooLong (other bytes came); silent, readStall, writeStall; tls, connect, accept, proxyHeader, baseRate, tolerated, panic, answerMismatch (an answer is not that of its request), and the names of bounds in limits.";
    counter TRANSACTIONS = "signalbox_dsr_transactions_total" ["application", "command", "vendor", "result"]: "Transactions by application, command and result: a Result-Code, or with a vendor an Experimental-Result-Code.";
    counter MEASURED = "signalbox_dsr_measured_requests_total" ["kind", "name"]: "Requests that met a named rule, route list, throttle group or trace point, or a throttle group without room.";
    counter PEER_MESSAGES = "signalbox_dsr_peer_messages_total" ["peer", "node", "direction"]: "Messages of each peer.";
    counter PEER_REQUESTS = "signalbox_dsr_peer_requests_total" ["peer", "node", "direction"]: "Requests of each peer.";
    counter PEER_TIMEOUTS = "signalbox_dsr_peer_timeouts_total" ["peer", "node"]: "Requests that each peer did not answer in time.";
    counter FINDINGS = "signalbox_dsr_security_findings_total" ["application", "partner", "measure", "outcome"]: "Messages that a measure of an application inside the router found to be wrong, by partner, measure and outcome: detected (it went on), dropped, answered, excepted.";
    gauge APPLICATION_ENTRIES = "signalbox_dsr_application_entries" ["application", "table"]: "Entries of each table of an application inside the router.";
    gauge APPLICATION_BYTES = "signalbox_dsr_application_bytes" ["application", "table"]: "Memory that the entries of each table of an application take.";
    gauge PARKED = "signalbox_dsr_parked" []: "Transactions that are parked for applications inside the router.";
    gauge THROTTLE_DEMAND = "signalbox_dsr_throttle_group_demand_requests_per_second" ["group"]: "Requests per second that would go to the peers of a throttle group, refused ones included.";
    gauge THROTTLE_SHARE = "signalbox_dsr_throttle_group_share_ratio" ["group"]: "Part of the rate of a throttle group that this router has.";
    gauge TRACED = "signalbox_dsr_cached_trace_messages" []: "Traced messages that are cached to be searched (trace.cachedMessages, trace.cachedBytes).";
    gauge PENDING = "signalbox_dsr_pending_requests" []: "Requests that are pending at a peer.";
}

/// Every metric of a router.
#[must_use]
pub fn declarations() -> Vec<Declaration> {
    GAUGES
        .iter()
        .copied()
        .chain(events::declarations::<Event>())
        .chain(hosting::declarations())
        .collect()
}

/// Shows connections that were refused or failed, by reason.
fn observe_incidents(registry: &Registry, seen: &Weak<Dsr>) {
    let each = seen.clone();
    registry.observe_all(&INCIDENTS, move || {
        let counts = each.upgrade().map(|dsr| dsr.tools.incidents.counts());
        let counts = counts.unwrap_or_default().into_iter();
        counts
            .map(|(reason, count)| (vec![reason.to_owned()], count as f64))
            .collect()
    });
}

/// Shows a router for as long as it runs.
pub(crate) fn observe(registry: &Registry, seen: &Weak<Dsr>) {
    observe_incidents(registry, seen);
    let each = seen.clone();
    registry.observe_all(&PEERS, move || {
        let Some(dsr) = each.upgrade() else {
            return Vec::new();
        };
        let rows = dsr.peers();
        ["available", "degraded", "unavailable"]
            .iter()
            .map(|state| {
                let count = rows.iter().filter(|row| row.state == *state).count();
                (vec![(*state).to_owned()], count as f64)
            })
            .collect()
    });
    let each = seen.clone();
    registry.observe_all(&INDICATORS, move || {
        let rows = each.upgrade().map(|dsr| dsr.indicators());
        let labels = |row: &IndicatorRow| vec![row.id.to_string(), row.name.to_owned(), row.instance.clone()];
        rows.iter()
            .flatten()
            .map(|row| (labels(row), row.value))
            .collect()
    });
    for (declaration, value) in [
        (&LEVEL, (|gauges| gauges.level() as f64) as fn(&Gauges) -> f64),
        (&LOAD, |gauges| gauges.cpu() / 100.0),
    ] {
        let each = seen.clone();
        registry.observe_all(declaration, move || {
            let gauges = each.upgrade().map(|dsr| dsr.tools.gauges.clone());
            let workers = gauges.iter().flat_map(|gauges| gauges.iter()).enumerate();
            workers
                .map(|(worker, gauges)| (vec![worker.to_string()], value(gauges)))
                .collect()
        });
    }
    let each = seen.clone();
    registry.observe_all(&PLANNED, move || {
        let dsr = each.upgrade();
        let plan = dsr.and_then(|dsr| dsr.live.load().config.overload.plan());
        let row = |plan: Plan| {
            (
                vec![plan.profile.unwrap_or("none").to_owned()],
                f64::from(plan.mps),
            )
        };
        plan.map(row).into_iter().collect()
    });
    let each = seen.clone();
    registry.observe(&PARKED, move || {
        let gauges = each.upgrade().map(|dsr| dsr.tools.gauges.clone());
        let parked = gauges.iter().flat_map(|gauges| gauges.iter()).map(Gauges::parked);
        parked.sum::<i64>() as f64
    });
    observe_throttles(registry, seen);
    observe_measures(registry, seen);
    observe_applications(registry, seen);
    let each = seen.clone();
    registry.observe(&TRACED, move || {
        each.upgrade().map_or(0.0, |dsr| dsr.traces.size().0 as f64)
    });
    let each = seen.clone();
    registry.observe(&PENDING, move || {
        let rows = each.upgrade().map(|dsr| dsr.peers());
        rows.unwrap_or_default()
            .iter()
            .map(|row| f64::from(row.pending))
            .sum()
    });
}

fn observe_throttles(registry: &Registry, seen: &Weak<Dsr>) {
    for (declaration, value) in [
        (&THROTTLE_DEMAND, (|row| row.demand) as fn(&ThrottleRow) -> f64),
        (&THROTTLE_SHARE, |row| row.share),
    ] {
        let each = seen.clone();
        registry.observe_all(declaration, move || {
            let rows = each.upgrade().map(|dsr| dsr.throttles()).unwrap_or_default();
            rows.iter()
                .map(|row| (vec![row.name.clone()], value(row)))
                .collect()
        });
    }
}

/// Peers that are shown one by one at most; configured ones come first.
const MAX_PEERS: usize = 1000;

fn observe_measures(registry: &Registry, seen: &Weak<Dsr>) {
    let each = seen.clone();
    registry.observe_all(&TRANSACTIONS, move || {
        let measures = each.upgrade().map(|dsr| dsr.measures()).unwrap_or_default();
        let labels = |of: &Transaction| {
            [of.application, of.command, of.vendor, of.result]
                .map(|label| label.to_string())
                .to_vec()
        };
        let transactions = measures.transactions.iter();
        transactions
            .map(|(of, count)| (labels(of), *count as f64))
            .collect()
    });
    let each = seen.clone();
    registry.observe_all(&MEASURED, move || {
        let measures = each.upgrade().map(|dsr| dsr.measures()).unwrap_or_default();
        let named = measures.named.into_iter().filter(|(_, count)| *count > 0);
        named
            .map(|((subject, name), count)| (vec![subject.as_str().to_owned(), name.into()], count as f64))
            .collect()
    });
    let directions = [
        (
            &PEER_MESSAGES,
            (|row| [row.messages_in, row.messages_out]) as fn(&PeerRow) -> [u64; 2],
        ),
        (&PEER_REQUESTS, |row| [row.requests_in, row.requests_out]),
    ];
    for (declaration, values) in directions {
        let each = seen.clone();
        registry.observe_all(declaration, move || {
            let rows = shown_peers(&each).into_iter();
            rows.flat_map(|row| {
                let sides = ["in", "out"].into_iter().zip(values(&row));
                let labels =
                    move |side: &str| vec![row.host.clone(), row.local_node.clone(), side.to_owned()];
                sides.map(move |(side, count)| (labels(side), count as f64))
            })
            .collect()
        });
    }
    let each = seen.clone();
    registry.observe_all(&PEER_TIMEOUTS, move || {
        let rows = shown_peers(&each).into_iter();
        rows.map(|row| (vec![row.host, row.local_node], row.timeouts as f64))
            .collect()
    });
}

fn observe_applications(registry: &Registry, seen: &Weak<Dsr>) {
    for (declaration, value) in [
        (
            &APPLICATION_ENTRIES,
            (|row| row.entries) as fn(&ApplicationRow) -> usize,
        ),
        (&APPLICATION_BYTES, |row| row.bytes),
    ] {
        let each = seen.clone();
        registry.observe_all(declaration, move || {
            let rows = each.upgrade().map(|dsr| dsr.applications()).unwrap_or_default();
            let labels = |row: &ApplicationRow| vec![row.name.clone(), row.table.to_owned()];
            rows.iter().map(|row| (labels(row), value(row) as f64)).collect()
        });
    }
    let each = seen.clone();
    registry.observe_all(&FINDINGS, move || {
        let rows = each.upgrade().map(|dsr| dsr.findings()).unwrap_or_default();
        let row = |(name, found): (String, dsr_app::Finding)| {
            let labels = vec![
                name,
                found.partner,
                found.measure.to_owned(),
                found.outcome.to_owned(),
            ];
            (labels, found.count as f64)
        };
        rows.into_iter().map(row).collect()
    });
}

fn shown_peers(seen: &Weak<Dsr>) -> Vec<PeerRow> {
    let mut rows = seen.upgrade().map(|dsr| dsr.peers()).unwrap_or_default();
    rows.sort_by_key(|row| !row.configured);
    rows.truncate(MAX_PEERS);
    rows
}
