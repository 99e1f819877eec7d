//! What the SCP's own metrics must say when the load is over.

use std::net::SocketAddr;

use crate::callmodel::scp::ScpModel;
use crate::measure::Metrics;
use crate::report::Check;
use crate::run::figure;
use crate::run::rig::Probe;

/// How far the share of rerouted requests may be from the model's, beside chance.
const SLACK: f64 = 0.003;

/// What is asked of an SCP that the lab has started, for a model without a drill.
pub(super) fn of(model: &ScpModel, admin: SocketAddr) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let share = model.alternate_routed.fraction();
    if share > 0.0 && model.drill.is_none() {
        probes.push(Box::new(move || rerouted(&read(admin), share)));
    }
    if model.tokens {
        probes.push(Box::new(move || tokens(&read(admin))));
    }
    probes
}

fn read(admin: SocketAddr) -> Metrics {
    Metrics::read(admin).unwrap_or_default()
}

fn rerouted(metrics: &Metrics, share: f64) -> Check {
    let rerouted = metrics.sum("signalbox_scp_reroutes_total", &[]);
    let requests = metrics.sum("signalbox_scp_requests_total", &[]);
    let got = rerouted / requests.max(1.0);
    let chance = 4.0 * (share * (1.0 - share) / requests.max(1.0)).sqrt();
    Check::new(
        "alternate routed",
        format!("{:.1}% of the requests, but for chance", share * 100.0),
        format!(
            "{:.2}% ({} of {})",
            got * 100.0,
            figure(rerouted),
            figure(requests)
        ),
        requests > 0.0 && (got - share).abs() <= SLACK + chance,
    )
}

fn tokens(metrics: &Metrics) -> Check {
    let of = |outcome: &str| metrics.sum("signalbox_scp_tokens_total", &[("outcome", outcome)]);
    let (cached, fetched) = (of("cached"), of("fetched") + of("refreshed") + of("waited"));
    let lost = of("refused") + of("failed");
    Check::new(
        "access tokens",
        "fetched, then taken from the cache, and none refused",
        format!(
            "{} fetched, {} from the cache, {} refused or not had",
            figure(fetched),
            figure(cached),
            figure(lost)
        ),
        fetched > 0.0 && lost == 0.0,
    )
}
