//! How an NRF is started and looked at.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nrf::{Event, Running};
use serde_json::{Value, json};
use telemetry::{Alarms, Declaration, Health, Registry, events};

use super::{Config, Live, Mounted, Page, listening, sbi, store};

telemetry::declare! {
    /// What is told of the registry.
    REGISTRY;
    gauge PROFILES = "signalbox_nrf_profiles" ["nf_type"]: "Profiles that are registered, suspended ones included; types that TS 29.510 does not name as other.";
}

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "instances",
        about: "The registered NF instances",
        path: "/nrf/instances",
        argument: None,
        columns: &[
            ("instance", "/nfInstanceId"),
            ("type", "/nfType"),
            ("status", "/nfStatus"),
            ("set", "/set"),
            ("load", "/load"),
            ("locality", "/locality"),
            ("services", "/services"),
        ],
    },
    Page {
        name: "instance",
        about: "The profile of one NF instance",
        path: "/nrf/instances/{}",
        argument: Some("ID"),
        columns: &[],
    },
    Page {
        name: "types",
        about: "How many instances of each type are registered",
        path: "/nrf/types",
        argument: None,
        columns: &[("type", "/nfType"), ("registered", "/registered")],
    },
];

pub(super) fn admin(config: &Config) -> SocketAddr {
    config.nrf.admin
}

pub(super) fn addresses(config: &Config) -> Vec<(String, SocketAddr)> {
    let mut all = listening("listen", &config.nrf.listen);
    all.push(("admin".to_owned(), config.nrf.admin));
    all
}

pub(super) fn metrics() -> Vec<Declaration> {
    REGISTRY
        .iter()
        .copied()
        .chain(events::declarations::<Event>())
        .collect()
}

pub(super) fn start(config: &Config) -> anyhow::Result<Mounted> {
    let running = Arc::new(nrf::start(config.nrf.clone()).context("starting the NRF")?);
    let scheme = if config.nrf.tls.is_some() { "https" } else { "http" };
    let interfaces: Vec<(&str, String)> = running
        .addresses()
        .iter()
        .map(|address| ("SBI", format!("{scheme}://{address}")))
        .collect();
    let hints = interfaces.first().map(|(_, uri)| hints(uri)).unwrap_or_default();
    // Pages and metrics look through a weak handle: they must not keep the function from ending.
    let seen = Arc::downgrade(&running);
    let (changed, files) = (seen.clone(), seen.clone());
    let registry = Registry::new();
    observe(&registry, &seen);
    let (health, alarms) = (Health::new(), Alarms::new(&registry));
    store::watch(running.store(), &health, &alarms);
    Ok(Mounted {
        interfaces,
        alarms,
        registry,
        health,
        routes: routes(&seen),
        hints,
        live: Some(Live {
            keys: nrf::KEYS,
            apply: Box::new(move |config| match changed.upgrade() {
                Some(running) => running.reconfigure(&config.nrf),
                None => Err("the NRF is stopping".to_owned()),
            }),
            reread: Some(Box::new(move || match files.upgrade() {
                Some(running) => running.reread(),
                None => Ok(false),
            })),
        }),
        stop: Box::new(move || match Arc::into_inner(running) {
            Some(running) => Ok(running.stop()?),
            // A page is being made of it at this moment; it ends with the page.
            None => Ok(()),
        }),
    })
}

fn hints(uri: &str) -> Vec<String> {
    vec![
        format!("curl --http2-prior-knowledge '{uri}/nnrf-nfm/v1/nf-instances?limit=10'"),
        format!(
            "curl --http2-prior-knowledge '{uri}/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF'"
        ),
        "signalbox nrf instances".to_owned(),
    ]
}

fn observe(registry: &Registry, seen: &Weak<Running>) {
    let counted = seen.clone();
    events::observe(registry, move |event: Event| {
        counted.upgrade().map_or(0, |nrf| nrf.count(event))
    });
    let nrf = seen.clone();
    registry.observe_all(&PROFILES, move || {
        let mut labels: BTreeMap<String, f64> = BTreeMap::new();
        for (nf_type, count) in types(&nrf) {
            *labels.entry(label(&nf_type).to_owned()).or_default() += count as f64;
        }
        labels
            .into_iter()
            .map(|(nf_type, count)| (vec![nf_type], count))
            .collect()
    });
    let nrf = seen.clone();
    store::observe(registry, move || nrf.upgrade().map(|nrf| nrf.store().stats()));
    let nrf = seen.clone();
    sbi::observe(registry, move || {
        nrf.upgrade()
            .map(|nrf| nrf.servers().collect())
            .unwrap_or_default()
    });
}

/// A type as a label: those of the standard by name, whatever strangers register as `other`.
fn label(nf_type: &str) -> &str {
    if model::NfType::from(nf_type).is_known() {
        nf_type
    } else {
        "other"
    }
}

fn types(nrf: &Weak<Running>) -> Vec<(String, usize)> {
    let Some(nrf) = nrf.upgrade() else {
        return Vec::new();
    };
    let snapshot = nrf.snapshot();
    snapshot
        .types()
        .map(|(nf_type, table)| (nf_type.to_string(), table.len()))
        .collect()
}

fn routes(nrf: &Weak<Running>) -> Router {
    let (all, one, by_type) = (nrf.clone(), nrf.clone(), nrf.clone());
    Router::new()
        .route(
            "/nrf/instances",
            get(move || async move { axum::Json(instances(&all)) }),
        )
        .route(
            "/nrf/instances/{id}",
            get(move |Path(id): Path<String>| async move { instance(&one, &id) }),
        )
        .route(
            "/nrf/types",
            get(move || async move {
                let rows = types(&by_type)
                    .into_iter()
                    .map(|(nf_type, count)| json!({ "nfType": nf_type, "registered": count }));
                axum::Json(rows.collect::<Value>())
            }),
        )
}

fn instances(nrf: &Weak<Running>) -> Value {
    let Some(nrf) = nrf.upgrade() else {
        return Value::Array(Vec::new());
    };
    let snapshot = nrf.snapshot();
    let each = snapshot.iter().map(|entry| {
        json!({
            "nfInstanceId": entry.id.to_string(),
            "nfType": entry.nf_type().as_str(),
            "nfStatus": entry.status.as_str(),
            "set": entry.set,
            "load": entry.load,
            "locality": entry.profile.locality,
            "heartBeatTimer": entry.heart_beat_timer,
            "services": entry.profile.services().map(|service| service.service_name.as_str()).collect::<Vec<_>>(),
        })
    });
    each.collect()
}

fn instance(nrf: &Weak<Running>, id: &str) -> Response {
    let found = model::NfInstanceId::parse(id)
        .ok()
        .and_then(|id| nrf.upgrade()?.snapshot().get(&id).map(|entry| entry.document()));
    match found {
        Some(document) => ([("content-type", "application/json")], document).into_response(),
        None => (
            StatusCode::NOT_FOUND,
            format!("no NF instance {id} is registered\n"),
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_are_bounded() {
        assert_eq!((label("UDM"), label("5G_EIR")), ("UDM", "5G_EIR"));
        assert_eq!((label("CUSTOM_1"), label("udm")), ("other", "other"));
    }
}
