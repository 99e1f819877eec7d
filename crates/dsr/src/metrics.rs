//! What is shown at `/metrics`.

use std::sync::Weak;

use telemetry::metrics::Kind;
use telemetry::{Declaration, Registry};

use crate::events::Event;
use crate::service::Shared;

telemetry::declare! {
    /// What goes up and down.
    GAUGES;
    gauge PEERS = "signalbox_dsr_peers" ["state"]: "Peers by state: available, degraded, unavailable.";
    gauge PENDING = "signalbox_dsr_pending_requests" []: "Requests that wait for a peer's answer.";
}

/// Every metric of a router.
#[must_use]
pub fn declarations() -> Vec<Declaration> {
    let events = Event::ALL.iter().map(|event| declaration(*event));
    GAUGES.iter().copied().chain(events).collect()
}

fn declaration(event: Event) -> Declaration {
    Declaration {
        name: event.metric(),
        kind: Kind::Counter,
        help: event.help(),
        labels: &[],
    }
}

/// Shows a router for as long as it runs.
pub(crate) fn register(seen: &Weak<Shared>) -> Registry {
    let registry = Registry::new();
    for event in Event::ALL {
        let seen = seen.clone();
        registry.observe(&declaration(*event), move || {
            seen.upgrade().map_or(0, |shared| shared.count(*event)) as f64
        });
    }
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
    registry.observe(&PENDING, move || {
        let rows = each.upgrade().map(|shared| crate::pages::peers(&shared));
        rows.unwrap_or_default()
            .iter()
            .map(|row| f64::from(row.pending))
            .sum()
    });
    registry
}
