//! Metrics at `/metrics`.

use std::sync::{Arc, Weak};

use telemetry::{Counter, Registry};

use crate::backend::{BackendRow, Set};
use crate::pair::{Pairing, Role};

telemetry::declare! {
    /// Everything a front end counts.
    pub(crate) METRICS;
    counter ACCEPTED = "signalbox_ipfe_connections_total" []: "Connections of clients that were admitted within the bounds of their set; those that no message processor got afterwards are counted as refused as well.";
    counter REFUSED = "signalbox_ipfe_refused_connections_total" ["why"]: "Connections of clients that were refused: full (the set's maxConnections), unavailable (no message processor or server takes connections), network (an egress set does not admit the client), address (the set's maxConnectionsPerAddress), silent (no byte within handshakes.silence), dropped (a silent client made room for a new one), handshakes (handshakes.maximum or perAddress, and none of these clients was silent).";
    counter RETRIED = "signalbox_ipfe_retried_connections_total" []: "Connections that went to another message processor because the first one did not accept.";
    counter TAKEOVERS = "signalbox_ipfe_takeovers_total" []: "Times that this front end of a pair became active.";
    gauge ACTIVE = "signalbox_ipfe_active" []: "Whether this front end listens at the addresses of its sets: 1, or 0 for the standby of a pair.";
    gauge CONNECTIONS = "signalbox_ipfe_connections" ["target_set", "backend"]: "Open connections.";
    gauge BACKENDS = "signalbox_ipfe_backend_available" ["target_set", "backend"]: "Whether a message processor takes connections: 1, or 0 when it is in stasis or unavailable.";
    gauge RECEIVED = "signalbox_ipfe_client_bytes" ["target_set", "backend"]: "Bytes from clients since the start (5203 RxIpfeBytes).";
    gauge SENT = "signalbox_ipfe_backend_bytes" ["target_set", "backend"]: "Bytes from message processors to clients since the start.";
}

/// The value that a metric takes of a row.
type Value = fn(&BackendRow) -> f64;

/// What workers count.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) accepted: Counter,
    pub(crate) full: Counter,
    pub(crate) unavailable: Counter,
    pub(crate) network: Counter,
    pub(crate) address: Counter,
    pub(crate) silent: Counter,
    pub(crate) dropped: Counter,
    pub(crate) handshakes: Counter,
    pub(crate) retried: Counter,
}

/// Shows the target sets for as long as they are in use, and returns what workers count with.
pub(crate) fn observe(registry: &Registry, sets: &[Arc<Set>], pairing: &Arc<Pairing>) -> Counters {
    let refused = registry.counters(&REFUSED);
    let counters = Counters {
        accepted: registry.counter(&ACCEPTED),
        full: refused.get(&["full"]),
        unavailable: refused.get(&["unavailable"]),
        network: refused.get(&["network"]),
        address: refused.get(&["address"]),
        silent: refused.get(&["silent"]),
        dropped: refused.get(&["dropped"]),
        handshakes: refused.get(&["handshakes"]),
        retried: registry.counter(&RETRIED),
    };
    let role = Arc::downgrade(pairing);
    registry.observe_all(&ACTIVE, move || {
        let role = role.upgrade().map(|pairing| pairing.role());
        vec![(Vec::new(), f64::from(u8::from(role == Some(Role::Active))))]
    });
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
            live.flat_map(|set| set.rows())
                .map(|row| (vec![row.target_set.clone(), row.name.clone()], value(&row)))
                .collect()
        });
    }
    counters
}
