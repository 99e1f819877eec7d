//! Messages of the services that the guide's function consists of, beside those that ours exchanges for the same.

use ::report::{Latency, ServiceFigures};
use callmodel::{Counterpart, Guide, GuideService};

use super::judge::{Facts, round};

/// A request and its answer.
const EACH: f64 = 2.0;

/// One row for each service of the guide.
pub(super) fn figures(facts: &Facts<'_>, achieved: f64) -> Vec<ServiceFigures> {
    let Some(guide) = &facts.found.model.guide else {
        return Vec::new();
    };
    guide
        .services
        .iter()
        .map(|service| figure(facts, achieved, guide, service))
        .collect()
}

fn figure(facts: &Facts<'_>, achieved: f64, guide: &Guide, service: &GuideService) -> ServiceFigures {
    let mps = service
        .counterpart
        .and_then(|counterpart| messages(facts, counterpart));
    let mean = Latency::of(&facts.window.record.total().latency).mean;
    let ingress = service.counterpart == Some(Counterpart::Ingress);
    ServiceFigures {
        service: service.service.clone(),
        guide_mps: service.mps,
        guide_per_transaction: service.mps.map(|mps| round(mps / guide.ingress_tps.max(1e-9), 2)),
        guide_latency_ms: service
            .mean
            .map(|mean| round(mean.duration().as_secs_f64() * 1000.0, 3)),
        mps: mps.map(|mps| round(mps, 1)),
        per_transaction: mps.map(|mps| round(mps / achieved.max(1e-9), 2)),
        latency_ms: mean.filter(|_| ingress),
    }
}

/// Our messages per second; `None` when there is no such peer in the run.
fn messages(facts: &Facts<'_>, counterpart: Counterpart) -> Option<f64> {
    let window = facts.window;
    let receivers = facts.rig.egress.iter().map(|one| one.name);
    let counts = window.after.egress.iter().zip(&window.before.egress);
    let sent = counts.map(|(after, before)| after.saturating_sub(*before));
    let mut sent = receivers.zip(sent);
    let mut to = |name: &str| {
        sent.find(|(receiver, _)| *receiver == name)
            .map(|(_, count)| count)
    };
    let requests = match counterpart {
        Counterpart::Ingress => Some(window.record.total().succeeded),
        Counterpart::Sm => Some(of_operations(facts, "sm")),
        Counterpart::Am => Some(of_operations(facts, "am")),
        Counterpart::Ue => Some(of_operations(facts, "ue")),
        Counterpart::Nrf => to("NRF"),
        Counterpart::Udr => to("UDR"),
        Counterpart::Chf => to("CHF"),
        Counterpart::Bsf => to("BSF"),
        Counterpart::Egress => Some(sent.map(|(_, count)| count).sum()),
    };
    requests.map(|requests| requests as f64 * EACH / window.seconds())
}

/// Transactions of the operations whose names begin like this.
fn of_operations(facts: &Facts<'_>, service: &str) -> u64 {
    let named = facts.names.iter().zip(&facts.window.record.operations);
    let fitting = named.filter(|(name, _)| name.starts_with(service));
    fitting.map(|(_, record)| record.succeeded).sum()
}
