//! What is shown at `/metrics`.

use std::sync::{Arc, Weak};

use telemetry::{Counter, Declaration, Registry};

use crate::backend::{BackendRow, Set};

telemetry::declare! {
    /// Everything a front end counts.
    pub METRICS;
    counter ACCEPTED = "signalbox_ipfe_connections_total" []: "Connections of clients that a message processor got.";
    counter REFUSED = "signalbox_ipfe_refused_connections_total" ["why"]: "Connections of clients that were refused: full (the target set's maxConnections), unavailable (no message processor takes connections).";
    counter RETRIED = "signalbox_ipfe_retried_connections_total" []: "Connections that went to another message processor because the first one did not accept.";
    gauge CONNECTIONS = "signalbox_ipfe_connections" ["target_set", "backend"]: "Connections that stand.";
    gauge BACKENDS = "signalbox_ipfe_backend_available" ["target_set", "backend"]: "Whether a message processor takes connections: 1, or 0 when it is in stasis or unavailable.";
    gauge RECEIVED = "signalbox_ipfe_client_bytes" ["target_set", "backend"]: "Bytes from clients since the start (5203 RxIpfeBytes).";
    gauge SENT = "signalbox_ipfe_backend_bytes" ["target_set", "backend"]: "Bytes from message processors to clients since the start.";
}

/// Every metric of a front end.
#[must_use]
pub fn declarations() -> Vec<Declaration> {
    METRICS.to_vec()
}

/// What of a row a metric shows.
type Value = fn(&BackendRow) -> f64;

/// What workers count.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) accepted: Counter,
    pub(crate) full: Counter,
    pub(crate) unavailable: Counter,
    pub(crate) retried: Counter,
}

/// Shows a front end for as long as it runs.
pub(crate) fn register(sets: &[Arc<Set>]) -> (Registry, Counters) {
    let registry = Registry::new();
    let refused = registry.counters(&REFUSED);
    let counters = Counters {
        accepted: registry.counter(&ACCEPTED),
        full: refused.get(&["full"]),
        unavailable: refused.get(&["unavailable"]),
        retried: registry.counter(&RETRIED),
    };
    let shown = [
        (&CONNECTIONS, (|row| row.connections as f64) as Value),
        (&BACKENDS, |row| f64::from(u8::from(row.state == "available"))),
        (&RECEIVED, |row| row.bytes_in as f64),
        (&SENT, |row| row.bytes_out as f64),
    ];
    for (declaration, value) in shown {
        let sets: Vec<Weak<Set>> = sets.iter().map(Arc::downgrade).collect();
        registry.observe_all(declaration, move || {
            let live = sets.iter().filter_map(Weak::upgrade);
            live.flat_map(|set| set.rows().collect::<Vec<_>>())
                .map(|row| (vec![row.target_set.clone(), row.name.clone()], value(&row)))
                .collect()
        });
    }
    (registry, counters)
}
