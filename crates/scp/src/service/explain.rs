//! What the SCP knows, and why a request would go where: for people.

use serde_json::{Value, json};

use crate::discovery::{DiscoveryQuery, judge};
use crate::live::Live;
use crate::network::{Network, NfStatus, ServiceRef};
use crate::routing::{Phase, Places};
use crate::target::service_of;
use sbi::headers::SbiHeader as _;

/// Every service instance, in the order in which a choice would prefer them.
pub(super) fn routes(network: &Network, live: &Live) -> Value {
    let mut all: Vec<ServiceRef> = network
        .producers()
        .flat_map(|producer| {
            (0..producer.services.len()).filter_map(|at| ServiceRef::new(producer.clone(), at))
        })
        .collect();
    sort(&mut all, live);
    all.iter().map(|one| row(one, live)).collect()
}

fn sort(all: &mut [ServiceRef], live: &Live) {
    all.sort_by_key(|one| {
        let service = one.service();
        (
            service.name.clone(),
            service.status,
            live.distances.of(one.producer.locality.as_deref()),
            service.priority,
            one.producer.id.clone(),
        )
    });
}

fn row(one: &ServiceRef, live: &Live) -> Value {
    let (producer, service) = (&one.producer, one.service());
    let distance = live.distances.of(producer.locality.as_deref());
    let hop = producer
        .locality
        .as_deref()
        .filter(|_| distance == Places::ELSEWHERE)
        .and_then(|locality| live.next_hops.get(locality)?.first());
    json!({
        "service": &*service.name,
        "nfType": &*producer.nf_type,
        "nfInstanceId": &*producer.id,
        "sets": producer.sets.iter().map(|set| &**set).collect::<Vec<_>>(),
        "endpoint": one.endpoint().to_string(),
        "status": status(service.status),
        "distance": (match distance { Places::SITE => "site", Places::REGION => "region", _ => "elsewhere" }),
        "through": hop.map(ToString::to_string),
        "priority": service.priority,
        "capacity": service.capacity,
        "load": service.load,
    })
}

fn status(status: NfStatus) -> &'static str {
    match status {
        NfStatus::Registered => "REGISTERED",
        NfStatus::CanaryRelease => "CANARY_RELEASE",
        NfStatus::Undiscoverable => "UNDISCOVERABLE",
        NfStatus::Suspended => "SUSPENDED",
    }
}

/// Where a request would go, step by step.
pub(super) fn explain(
    network: &Network,
    live: &Live,
    method: &str,
    path: &str,
    hints: &[(String, String)],
) -> Value {
    let hint = |name: &str| {
        hints
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let service = service_of(path);
    let policy = live.policies.of(service);
    let method: http::Method = method.parse().unwrap_or(http::Method::GET);
    let bound = hint("nfset").is_some() || (hint("nfinst").is_some() && hint("apiroot").is_none());
    let phase = Phase::of(&method, path, bound, hint("target-nf-type").is_some());
    let stage = policy.stage(phase);
    let mut why = vec![format!("service `{service}`, {phase:?} request: {stage:?}")];
    let mut candidates: Vec<ServiceRef> = Vec::new();
    if let Some(root) = hint("apiroot") {
        let authority = root;
        let named = match sbi::headers::TargetApiRoot::parse(root) {
            Ok(root) => network.at(&root.origin, service),
            Err(_) => None,
        };
        match named {
            Some(named) => {
                why.push(format!(
                    "{authority} is {} {}",
                    named.producer.nf_type, named.producer.id
                ));
                candidates.push(named.clone());
                let alternates = network.alternates(named);
                why.push(format!("{} others of its sets can stand in", alternates.len()));
                candidates.extend(alternates);
            }
            None if live.config.forward_to_unknown => {
                why.push(format!("no profile has {authority}: it is sent there as it is"));
            }
            None => why.push(format!(
                "no profile has {authority}: refused unless it is known otherwise (forwardToUnknown)"
            )),
        }
    }
    if let Some(set) = hint("nfset") {
        why.push(format!("bound to NF set {set}"));
        candidates.extend(network.in_set(set, service).cloned());
    }
    if let Some(instance) = hint("nfinst") {
        why.push(format!("bound to NF instance {instance}"));
        candidates.extend(network.of_producer(&instance.to_ascii_lowercase(), service));
    }
    if let Some(nf_type) = hint("target-nf-type") {
        let order = live.config.discovery.order;
        match (hint("requester-nf-type"), learned(hints, service, network)) {
            (None, _) => {
                why.push(format!(
                    "discovered: {nf_type} ({order:?}); those learned (with requester-nf-type the whole question is judged):"
                ));
                let known = network.of_service(service).iter();
                candidates.extend(known.filter(|one| &*one.producer.nf_type == nf_type).cloned());
            }
            (Some(_), Some(found)) => {
                why.push(format!(
                    "discovered: {nf_type} ({order:?}); {} of those learned fit:",
                    found.len()
                ));
                candidates.extend(found);
            }
            (Some(_), None) => why.push(format!(
                "discovered: {nf_type} ({order:?}); what is asked only an NRF can judge"
            )),
        }
    }
    if hint("apiroot").is_none() {
        sort(&mut candidates, live);
    }
    json!({
        "why": why,
        "candidates": candidates.iter().map(|one| row(one, live)).collect::<Vec<_>>(),
    })
}

/// Those of the learned network that a discovery finds; `None` when only an NRF can judge it.
fn learned(hints: &[(String, String)], service: &str, network: &Network) -> Option<Vec<ServiceRef>> {
    let parameters = hints
        .iter()
        .filter(|(name, _)| !["apiroot", "nfinst", "nfset"].contains(&name.as_str()));
    let query = DiscoveryQuery::new(parameters.map(|(name, value)| (name.as_str(), value.as_str())));
    let query = match query.get("service-names") {
        Some(_) => query,
        None => query.with("service-names", Some(service)),
    };
    judge(&query, network)
}
