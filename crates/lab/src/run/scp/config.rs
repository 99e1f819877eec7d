//! Settings of the SCP and of the NRF beside it, as their own reference pages explain them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use settings::Period;

use super::certificates::as_settings;
use crate::callmodel::scp::{Drill, RateLimits, ScpModel};
use crate::engine::TlsFiles;
use crate::run::rig::{Place, RigError, free_address};
use crate::workload::scp::{MEDIATED, consumer_name, instance_of, registered_as};

/// Where the SCP listens, and where its NRF is.
pub(super) struct Addresses {
    pub(super) scp: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) nrf: SocketAddr,
    /// TLS towards consumers and producers.
    pub(super) tls: Option<TlsFiles>,
}

/// Settings of the SCP.
pub(super) fn scp(model: &ScpModel, place: &Place, addresses: &Addresses) -> Value {
    let population = model.population();
    let mut types: Vec<&str> = population.iter().map(|one| registered_as(&one.nf_type)).collect();
    types.sort_unstable();
    types.dedup();
    let mut made = json!({"scp": {
        "listen": [addresses.scp.to_string()],
        "admin": addresses.admin.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "nrf": {
            "roots": [format!("http://{}", addresses.nrf)], "nfTypes": types, "retryInterval": "200ms"
        },
        "client": {
            // Who comes back is to be found soon.
            "backoffMax": if model.drill.is_some() { "1s" } else { "5s" }
        },
        "policies": policies(model),
        "discovery": {
            "enforceReqSpecificSvcDiscovery": model.discover_each,
            "order": model.discovery_order,
            "timeout": "3s"
        },
        "protection": protection(model),
        "mediation": {"groups": mediation(model)}
    }});
    if model.tokens {
        made["scp"]["security"] = json!({"tokens": {"enabled": true}});
    }
    if let Some(files) = &addresses.tls {
        made["scp"]["tls"] = as_settings(files, true);
        made["scp"]["clientTls"] = as_settings(files, false);
    }
    made
}

/// What may be repeated, and the default for the rest.
fn policies(model: &ScpModel) -> Vec<Value> {
    match model.repeatable.is_empty() {
        true => Vec::new(),
        false => vec![
            json!({"services": model.repeatable, "rerouteUnsafe": true}),
            json!({}),
        ],
    }
}

fn protection(model: &ScpModel) -> Value {
    let (ingress, egress) = model
        .rate_limits
        .map_or_else(Default::default, |limits| rates(model, limits));
    // Who is killed is left alone as soon as it fails, and tried again within seconds. Otherwise some producers
    // fail on purpose; they are to be tried each time that they are named.
    let (outliers, breaker) = match model.drill {
        Some(Drill::KillProducer) => (
            json!({"consecutiveFailures": 5, "baseEjection": "1s", "maxEjection": "2s"}),
            json!({"open": "500ms", "maxOpen": "1s"}),
        ),
        _ => (json!({"consecutiveFailures": 0}), json!({"failures": 1_000_000})),
    };
    json!({"ingress": ingress, "egress": egress, "outliers": outliers, "breaker": breaker})
}

/// Rates by key: of consumers and producers that there are, then of others, until there are as many as asked for.
fn rates(model: &ScpModel, limits: RateLimits) -> (Vec<Value>, Vec<Value>) {
    let rate = json!({"perSecond": 10_000_000});
    let mut types: Vec<&str> = model.interfaces.iter().map(|one| one.consumer.as_str()).collect();
    types.sort_unstable();
    types.dedup();
    let consumers = types
        .iter()
        .flat_map(|nf_type| (0..model.consumers).map(|number| consumer_name(nf_type, number)));
    let ingress = consumers
        .chain((0..).map(|number| format!("nobody-{number}")))
        .take(limits.ingress_keys as usize)
        .map(|consumer| json!({"consumer": consumer, "rate": rate}))
        .collect();
    let egress = (0..limits.egress_keys)
        .map(|number| json!({"producer": instance_of(number), "rate": rate, "global": limits.global}))
        .collect();
    (ingress, egress)
}

/// Rules in groups, dealt to the services; each waits for a value of its own.
fn mediation(model: &ScpModel) -> Vec<Value> {
    let groups = model.mediation_groups.max(1);
    if model.mediation_rules == 0 {
        return Vec::new();
    }
    let services: Vec<&str> = model
        .producers()
        .into_iter()
        .flat_map(|(_, services)| services)
        .collect();
    let json_tenths = (model.mediation_json.fraction() * 10.0).round() as u32;
    (0..groups)
        .map(|group| {
            let rules: Vec<Value> = (group..model.mediation_rules)
                .step_by(groups as usize)
                .map(|rule| {
                    let then = match rule % 10 < 10 - json_tenths.min(10) {
                        true => json!({"setHeader": {"name": "x-lab-mediated", "value": rule.to_string()}}),
                        false => json!({"setJson": {"pointer": "/mediated", "value": rule}}),
                    };
                    json!({
                        "name": format!("rule-{rule}"),
                        "when": [{"header": MEDIATED, "equals": rule.to_string()}],
                        "then": [then]
                    })
                })
                .collect();
            json!({
                "name": format!("group-{group}"),
                "triggerPoints": ["requestEgress"],
                "services": [services[group as usize % services.len().max(1)]],
                "rules": rules
            })
        })
        .collect()
}

/// Settings of the NRF.
pub(super) fn nrf(
    model: &ScpModel,
    address: SocketAddr,
    store: &Path,
    tls: Option<&TlsFiles>,
) -> Result<Value, RigError> {
    let seconds = |period: &Period| format!("{}s", period.as_secs().max(1));
    let by_type: BTreeMap<&str, String> = model
        .validity_by_type
        .iter()
        .map(|(nf_type, period)| (registered_as(nf_type), seconds(period)))
        .collect();
    let mut made = json!({"nrf": {
        "listen": [address.to_string()], "admin": free_address()?.to_string(), "workers": 1,
        "store": {"embedded": {"directory": store}},
        "heartBeat": {"max": "24h"},
        "discovery": {"validity": seconds(&model.validity), "validityByType": by_type},
        // Consumers are simulated: they have no profiles.
        "tokens": {"requireRegistration": false}
    }});
    if let Some(most) = model.discovery_profiles {
        made["nrf"]["discovery"]["maxProfiles"] = json!(most);
    }
    // The NRF itself is asked in the clear; what it tells the SCP goes over TLS.
    if let Some(files) = tls {
        made["nrf"]["clientTls"] = as_settings(files, false);
    }
    Ok(made)
}
