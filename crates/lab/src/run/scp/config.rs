//! Settings of the SCP and of the NRF beside it, as their own reference pages explain them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use settings::Period;

use super::Scale;
use super::certificates::as_settings;
use super::next::others;
use crate::run::rig::{Place, RigError, free_address};
use callmodel::scp::{Drill, RateLimits, ScpModel};
use loadgen::engine::TlsFiles;
use workload::scp::{MEDIATED, consumer_name, instance_of, locality_of, registered_as};

/// NF instance id of the SCPs of other regions.
const NEXT: &str = "8b7a1f0e-6c1d-4b5a-9d53-2f1c0a7e4b21";
/// Requests that may be in flight in a worker unless its settings say otherwise.
const USUALLY_IN_FLIGHT: u32 = 20_000;

/// Where the SCP listens, and where its NRF is.
pub(super) struct Addresses {
    pub(super) scp: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) nrf: SocketAddr,
    /// The name server, where the model has records in DNS.
    pub(super) names: Option<SocketAddr>,
    /// SCPs of the other regions, in the order of the regions.
    pub(super) next: Vec<SocketAddr>,
    /// TLS towards consumers and producers.
    pub(super) tls: Option<TlsFiles>,
}

/// Settings of the SCP.
pub(super) fn scp(model: &ScpModel, place: &Place, addresses: &Addresses, scale: &Scale) -> Value {
    let population = model.population();
    let mut types: Vec<&str> = population.iter().map(|one| registered_as(&one.nf_type)).collect();
    types.sort_unstable();
    types.dedup();
    let mut made = json!({"scp": {
        "directory": place.folder.join("scp"),
        "listen": [addresses.scp.to_string()],
        "admin": addresses.admin.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "nrf": {
            "roots": [format!("http://{}", addresses.nrf)], "nfTypes": types, "retryInterval": "200ms"
        },
        "client": {
            // A producer that restarts is to be connected soon.
            "backoffMax": if model.drill.is_some() { "1s" } else { "5s" }
        },
        "policies": policies(model),
        "discovery": {
            "enforceReqSpecificSvcDiscovery": model.discover_each,
            "order": model.discovery_order,
            "timeout": "3s"
        },
        "protection": protection(model, scale),
        "mediation": {"groups": mediation(model)}
    }});
    set_connections(&mut made["scp"], scale);
    if let Some(names) = addresses.names {
        made["scp"]["dns"] = json!({"servers": [names.to_string()]});
    }
    if let Some(inter) = model.inter_scp.as_ref().filter(|_| !addresses.next.is_empty()) {
        let regions: BTreeMap<String, [String; 1]> = std::iter::once(0)
            .chain(others(inter))
            .map(|region| (region_name(region), [locality_of(region)]))
            .collect();
        let scheme = if addresses.tls.is_some() { "https" } else { "http" };
        let next: BTreeMap<String, [String; 1]> = others(inter)
            .zip(&addresses.next)
            .map(|(region, address)| (region_name(region), [format!("{scheme}://{address}")]))
            .collect();
        made["scp"]["places"] = json!({"locality": locality_of(0), "regions": regions});
        made["scp"]["nextHops"] = json!(next);
    }
    if let Some(sites) = model.sites {
        let mut regions = BTreeMap::<String, Vec<String>>::new();
        for (site, region) in sites.all() {
            regions
                .entry(region_name(region))
                .or_default()
                .push(locality_of(site));
        }
        made["scp"]["places"] = json!({"locality": locality_of(0), "regions": regions});
    }
    if model.tokens {
        let levels = token_levels(model);
        let tokens = json!({"enabled": true, "inOwnName": model.oauth.is_none(), "levels": levels});
        made["scp"]["security"] = json!({"tokens": tokens});
    }
    set_tls(&mut made["scp"], addresses.tls.as_ref());
    made
}

/// The services whose access tokens are for one instance.
fn token_levels(model: &ScpModel) -> Vec<Value> {
    let services: Vec<&str> = model
        .producers()
        .into_iter()
        .flat_map(|(_, services)| services)
        .collect();
    let share = model.oauth.map_or(0.0, |oauth| oauth.instance_level.fraction());
    let count = (services.len() as f64 * share).round() as usize;
    match services.get(..count) {
        Some(services) if count > 0 => vec![json!({"services": services, "level": "nfInstance"})],
        _ => Vec::new(),
    }
}

/// The name of a region.
pub(super) fn region_name(region: u32) -> String {
    format!("region-{region}")
}

fn set_tls(scp: &mut Value, files: Option<&TlsFiles>) {
    if let Some(files) = files {
        scp["tls"] = as_settings(files, true);
        scp["clientTls"] = as_settings(files, false);
    }
}

fn set_connections(scp: &mut Value, scale: &Scale) {
    if let Some(to_each) = scale.to_each {
        scp["client"]["connectionsPerOrigin"] = json!(to_each);
    }
    if let Some(rate) = scale.rate_of_each {
        scp["client"]["maxRequestRate"] = json!(rate);
    }
}

/// Settings of the SCPs of other regions, which have no NRF and no profiles: requests name their producer.
pub(super) fn next(listen: &[SocketAddr], admin: SocketAddr, tls: Option<&TlsFiles>, scale: &Scale) -> Value {
    let mut made = json!({"scp": {
        "nfInstanceId": NEXT,
        "fqdn": "next-scp.signalbox.local",
        "listen": listen,
        "admin": admin,
        "workers": 1,
        "nrf": {"roots": []},
        "forwardToUnknown": true,
        // Ejection of producers is the task of the SCP under test.
        "protection": {
            "outliers": {"consecutiveFailures": 0}, "breaker": {"failures": 1_000_000}, "targetLoad": null,
            "maxInFlight": 0
        }
    }});
    set_connections(&mut made["scp"], scale);
    set_tls(&mut made["scp"], tls);
    made
}

/// What may be repeated, and the default for the rest. A set of producers is spread over regions where a model has
/// several, so another of its members may be far away.
fn policies(model: &ScpModel) -> Vec<Value> {
    let anywhere = json!({"reroute": "anywhere"});
    let mut usual = match model.inter_scp.is_some() || model.sites.is_some() {
        true => json!({"initial": anywhere, "subsequent": anywhere}),
        false => json!({}),
    };
    if model.dns_srv.is_some() {
        usual["dnsSrvAlternates"] = json!(true);
    }
    if model.sites.is_some() {
        // Two producers of a type at each of two sites may fail before one of another region is tried.
        usual["attempts"] = json!(5);
    }
    match model.repeatable.is_empty() {
        true => vec![usual],
        false => {
            let mut repeatable = usual.clone();
            repeatable["services"] = json!(model.repeatable);
            repeatable["rerouteUnsafe"] = json!(true);
            vec![repeatable, usual]
        }
    }
}

fn protection(model: &ScpModel, scale: &Scale) -> Value {
    let (ingress, egress) = model
        .rate_limits
        .map_or_else(Default::default, |limits| rates(model, limits));
    let mut made = json!({"ingress": ingress, "egress": egress});
    // A producer that is killed is ejected as soon as it fails, and tried again within seconds.
    if matches!(model.drill, Some(Drill::KillProducer | Drill::LoseSite)) {
        made["outliers"] = json!({"consecutiveFailures": 5, "baseEjection": "1s", "maxEjection": "2s"});
        made["breaker"] = json!({"open": "500ms", "maxOpen": "1s"});
    }
    if let Some(under_way) = scale.under_way.filter(|count| *count > USUALLY_IN_FLIGHT) {
        made["maxInFlight"] = json!(under_way);
    }
    made
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
        .chain((0..).map(|number| format!("unused-{number}")))
        .take(limits.ingress_keys as usize)
        .map(|consumer| json!({"consumer": consumer, "rate": rate}))
        .collect();
    let egress = (0..limits.egress_keys)
        .map(|number| json!({"producer": instance_of(number), "rate": rate, "global": limits.global}))
        .collect();
    (ingress, egress)
}

/// Rules in groups; each waits for a value of its own.
fn mediation(model: &ScpModel) -> Vec<Value> {
    let rule = |rule: &u32| {
        let then = match model.is_json_rule(*rule) {
            false => json!({"setHeader": {"name": "x-lab-mediated", "value": rule.to_string()}}),
            true => json!({"setJson": {"pointer": "/mediated", "value": rule}}),
        };
        json!({
            "name": format!("rule-{rule}"),
            "when": [{"header": MEDIATED, "equals": rule.to_string()}],
            "then": [then]
        })
    };
    let groups = model.mediation().into_iter().enumerate();
    groups
        .map(|(number, group)| {
            json!({
                "name": format!("group-{number}"),
                "triggerPoints": [group.point.name()],
                "services": group.services,
                "rules": group.rules.iter().map(rule).collect::<Vec<_>>()
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
        // The guide's SCP is notified of each change of the load, however small.
        "subscriptions": {"loadThreshold": 0},
        // Consumers are simulated: they have no profiles.
        "tokens": {"requireRegistration": false}
    }});
    if let Some(most) = model.discovery_profiles {
        made["nrf"]["discovery"]["maxProfiles"] = json!(most);
    }
    // Requests to the NRF itself are in the clear; its notifications to the SCP use TLS.
    if let Some(files) = tls {
        made["nrf"]["clientTls"] = as_settings(files, false);
    }
    Ok(made)
}
