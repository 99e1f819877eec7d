//! What the SCP's own metrics must say when the load is over.

use std::net::SocketAddr;

use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;
use callmodel::scp::ScpModel;
use report::measure::Metrics;

/// How far the share of rerouted requests may be from the model's, beside chance.
const SLACK: f64 = 0.003;

/// What is asked of an SCP that the lab has started, for a model without a drill.
pub(super) fn of(model: &ScpModel, admin: SocketAddr) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let share = model.alternate_routed.fraction();
    if share > 0.0 && model.drill.is_none() {
        probes.push(Box::new(move || rerouted(&read(admin), share)));
    }
    probes.push(Box::new(move || own_time(&read(admin))));
    let mediated = model.applied();
    if mediated > 0.0 && model.drill.is_none() {
        probes.push(Box::new(move || applied(&read(admin), mediated)));
    }
    if model.dns_srv.is_some() && share > 0.0 {
        probes.push(Box::new(move || alternates(&read(admin))));
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
    // A producer that fails is ejected, and its circuit opens: requests that name it go elsewhere without an attempt.
    let passed_over = |reason| metrics.sum("signalbox_scp_passed_over_total", &[("reason", reason)]);
    let rerouted =
        metrics.sum("signalbox_scp_reroutes_total", &[]) + passed_over("ejected") + passed_over("open");
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

/// The guide's measure of an SCP: what it adds to a request and to its answer.
fn own_time(metrics: &Metrics) -> Check {
    const MOST: &str = "0.05";
    let (within, all) = (
        metrics.sum("signalbox_scp_own_seconds_bucket", &[("le", MOST)]),
        metrics.sum("signalbox_scp_own_seconds_count", &[]),
    );
    let mean = metrics.sum("signalbox_scp_own_seconds_sum", &[]) / all.max(1.0);
    Check::new(
        "own processing time",
        "99% of the requests within 50 ms, 25 for the request and 25 for the answer",
        format!(
            "{:.2}% of {}, {} ms on average",
            within / all.max(1.0) * 100.0,
            figure(all),
            figure(mean * 1000.0)
        ),
        all > 0.0 && within >= 0.99 * all,
    )
    .of_time()
}

/// Whether DNS has named those that stand in, where more than a few requests were for producers that fail: half of these
/// have alternates in DNS alone.
fn alternates(metrics: &Metrics) -> Check {
    const FEW: f64 = 20.0;
    let rerouted = metrics.sum("signalbox_scp_reroutes_total", &[]);
    let of = |outcome: &str| metrics.sum("signalbox_scp_dns_alternates_total", &[("outcome", outcome)]);
    let (found, lost) = (of("found"), of("none") + of("failed"));
    Check::new(
        "alternates in DNS",
        "found by SRV records, and none missed",
        format!(
            "{} found, {} missed, {} questions",
            figure(found),
            figure(lost),
            figure(metrics.sum("signalbox_scp_dns_questions_total", &[]))
        ),
        lost == 0.0 && (found > 0.0 || rerouted < FEW),
    )
}

/// Whether the model's share of messages was changed by a rule.
fn applied(metrics: &Metrics, share: f64) -> Check {
    let applied = metrics.sum("signalbox_scp_mediated_total", &[]);
    let requests = metrics.sum("signalbox_scp_requests_total", &[]);
    let got = applied / requests.max(1.0);
    let chance = 4.0 * (share * (1.0 - share) / requests.max(1.0)).sqrt();
    Check::new(
        "mediated",
        format!(
            "a rule applies to {:.1}% of the requests, but for chance",
            share * 100.0
        ),
        format!(
            "{:.2}% ({} of {})",
            got * 100.0,
            figure(applied),
            figure(requests)
        ),
        requests > 0.0 && (got - share).abs() <= SLACK + 0.1 * share + chance,
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
