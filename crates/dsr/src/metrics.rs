//! What is shown at `/metrics`.

use std::sync::Weak;

use telemetry::{Declaration, Registry, events};

use crate::config::Plan;
use crate::events::Event;
use crate::router::Gauges;
use crate::service::Shared;
use crate::watch::IndicatorRow;

telemetry::declare! {
    /// What goes up and down, and how long things take.
    pub(crate) GAUGES;
    gauge PEERS = "signalbox_dsr_peers" ["state"]: "Peers by state: available, degraded, unavailable.";
    gauge INDICATORS = "signalbox_dsr_indicator" ["number", "name", "about"]: "Indicators by the numbers of the benchmarking guide, averaged over indicators.interval, in the unit that signalbox dsr indicators tells.";
    gauge LEVEL = "signalbox_dsr_congestion_level" ["worker"]: "Congestion level of a message processor: 0 for none, 1 for the first of overload.levels.";
    gauge LOAD = "signalbox_dsr_load_ratio" ["worker"]: "Load of a message processor (dsr.Cpu), as a share of what it can have.";
    gauge PLANNED = "signalbox_dsr_profile_messages_per_second" ["profile"]: "What a message processor is planned for (overload.profile, overload.profileMps).";
    histogram HOLD = "signalbox_dsr_request_seconds" [] in SECONDS: "Time from a request to its answer, as the router sees it, all attempts together.";
    gauge PENDING = "signalbox_dsr_pending_requests" []: "Requests that wait for a peer's answer.";
}

/// Every metric of a router.
#[must_use]
pub fn declarations() -> Vec<Declaration> {
    GAUGES
        .iter()
        .copied()
        .chain(events::declarations::<Event>())
        .collect()
}

/// Shows a router for as long as it runs.
pub(crate) fn register(seen: &Weak<Shared>) -> Registry {
    let registry = Registry::new();
    let counted = seen.clone();
    events::observe(&registry, move |event: Event| {
        counted.upgrade().map_or(0, |shared| shared.count(event))
    });
    let each = seen.clone();
    registry.observe_all(&PEERS, move || {
        let Some(shared) = each.upgrade() else {
            return Vec::new();
        };
        let rows = crate::pages::peers(&shared);
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
        let rows = each.upgrade().map(|shared| shared.indicators.lock().clone());
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
            let gauges = each.upgrade().map(|shared| shared.gauges.clone());
            let workers = gauges.iter().flat_map(|gauges| gauges.iter()).enumerate();
            workers
                .map(|(worker, gauges)| (vec![worker.to_string()], value(gauges)))
                .collect()
        });
    }
    let each = seen.clone();
    registry.observe_all(&PLANNED, move || {
        let shared = each.upgrade();
        let plan = shared.and_then(|shared| shared.snapshot.borrow().config.overload.plan());
        let row = |plan: Plan| {
            (
                vec![plan.profile.unwrap_or("none").to_owned()],
                f64::from(plan.mps),
            )
        };
        plan.map(row).into_iter().collect()
    });
    let each = seen.clone();
    registry.observe(&PENDING, move || {
        let rows = each.upgrade().map(|shared| crate::pages::peers(&shared));
        rows.unwrap_or_default()
            .iter()
            .map(|row| f64::from(row.pending))
            .sum()
    });
    registry
}
