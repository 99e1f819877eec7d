//! Counters and gauges of the servers of the service-based interface, as metrics.

use ::sbi::server::StatsSnapshot;
use telemetry::metrics::Kind;
use telemetry::{Alert, Declaration, Registry, When};

telemetry::declare! {
    /// The gauges.
    GAUGES;
    gauge OPEN = "signalbox_sbi_server_connections" []: "Connections of the service-based interface that are open now.";
    gauge HELD = "signalbox_sbi_memory_bytes" []: "Bytes held for the connections of the service-based interface, those of its clients included; each worker's are bounded by server.maxMemory.";
}

/// The counter of one statistic.
fn counter(name: &'static str, help: &'static str) -> Declaration {
    Declaration {
        name,
        kind: Kind::Counter,
        help,
        labels: &[],
        // A defect of ours, which only we can mend.
        alert: name.contains("panicked").then(|| {
            let advice = "This is a defect: report it with the lines of the log about the panic.";
            Alert::major(When::Occurs, 1, advice)
        }),
    }
}

/// Every metric of a server.
pub fn declarations() -> Vec<Declaration> {
    let counters = StatsSnapshot::default().counters();
    GAUGES
        .iter()
        .copied()
        .chain(counters.into_iter().map(|(name, help, _)| counter(name, help)))
        .collect()
}

/// Shows the sum over a function's servers, one per worker.
pub fn observe(
    registry: &Registry,
    servers: impl Fn() -> Vec<StatsSnapshot> + Clone + Send + Sync + 'static,
) {
    let each = servers.clone();
    registry.observe(&OPEN, move || {
        each().iter().map(|stats| stats.connections_open).sum::<u64>() as f64
    });
    let each = servers.clone();
    registry.observe(&HELD, move || {
        each().iter().map(|stats| stats.memory_held).sum::<u64>() as f64
    });
    for (index, (name, help, _)) in StatsSnapshot::default().counters().into_iter().enumerate() {
        let each = servers.clone();
        registry.observe(&counter(name, help), move || {
            each()
                .iter()
                .filter_map(|stats| Some(stats.counters().get(index)?.2))
                .sum::<u64>() as f64
        });
    }
}
