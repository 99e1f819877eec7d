//! How a BSF is started and looked at.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use ::store::Scan;
use anyhow::Context as _;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bsf::binding::BindingId;
use bsf::{Event, Running, State};
use serde_json::{Value, json};
use telemetry::{Alarms, Declaration, Health, Registry, events};

use super::{Config, Live, Mounted, Page, listening, sbi, store};

telemetry::declare! {
    /// What is told of the function's state.
    GAUGES;
    gauge LOAD = "signalbox_bsf_load_ratio" []: "CPU time of the busiest worker, as a share of a core.";
    gauge SCORE = "signalbox_bsf_score" []: "How well this instance does, from 0 to 100: success, load, latency, replication.";
    gauge STATE = "signalbox_bsf_state" []: "Operational state: 0 serving, 1 partial shutdown, 2 complete shutdown.";
    gauge SESSIONS = "signalbox_bsf_rx_sessions" []: "Rx sessions whose path is kept in the store, as far as this instance knows.";
}

/// Bindings on one page.
const SHOWN: usize = 100;

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "bindings",
        about: "Some bindings of PDU sessions, a hundred at most",
        path: "/bsf/bindings",
        argument: None,
        columns: &[
            ("binding", "/bindingId"),
            ("supi", "/supi"),
            ("ipv4", "/ipv4Addr"),
            ("ipv6", "/ipv6Prefix"),
            ("domain", "/ipDomain"),
            ("dnn", "/dnn"),
            ("pcf", "/pcfFqdn"),
            ("diameter", "/pcfDiamHost"),
        ],
    },
    Page {
        name: "binding",
        about: "One binding of a PDU session",
        path: "/bsf/bindings/{}",
        argument: Some("ID"),
        columns: &[],
    },
    Page {
        name: "score",
        about: "How well this instance does, from 0 to 100, and what the score is made of",
        path: "/bsf/score",
        argument: None,
        columns: &[],
    },
    Page {
        name: "state",
        about: "Whether it serves or is being shut down (PUT \"SERVING\", \"PARTIAL\" or \"COMPLETE\" to change it), congestion control, load",
        path: "/bsf/state",
        argument: None,
        columns: &[],
    },
];

pub(super) fn admin(config: &Config) -> SocketAddr {
    config.bsf.admin
}

pub(super) fn addresses(config: &Config) -> Vec<(String, SocketAddr)> {
    let mut all = listening("listen", &config.bsf.listen);
    if config.bsf.rx.enabled {
        all.extend(listening("rx.listen", &config.bsf.rx.listen));
    }
    all.push(("admin".to_owned(), config.bsf.admin));
    all
}

pub(super) fn metrics() -> Vec<Declaration> {
    GAUGES
        .iter()
        .copied()
        .chain(events::declarations::<Event>())
        .collect()
}

pub(super) fn start(config: &Config) -> anyhow::Result<Mounted> {
    let running = Arc::new(bsf::start(config.bsf.clone()).context("starting the BSF")?);
    let scheme = if config.bsf.tls.is_some() { "https" } else { "http" };
    let mut interfaces: Vec<(&str, String)> = running
        .addresses()
        .iter()
        .map(|address| ("SBI", format!("{scheme}://{address}")))
        .collect();
    let scheme = if config.bsf.rx.tls.is_some() {
        "aaas"
    } else {
        "aaa"
    };
    let diameter = running.diameter_addresses().iter();
    interfaces.extend(diameter.map(|address| ("Diameter", format!("{scheme}://{address}"))));
    let hints = interfaces.first().map(|(_, uri)| hints(uri)).unwrap_or_default();
    // Pages and metrics look through a weak handle: they must not keep the function from ending.
    let seen = Arc::downgrade(&running);
    let (changed, files) = (seen.clone(), seen.clone());
    let registry = Registry::new();
    observe(&registry, &seen);
    let (health, alarms) = (Health::new(), Alarms::new(&registry));
    store::watch(running.repository().store(), &health, &alarms);
    Ok(Mounted {
        interfaces,
        alarms,
        registry,
        health,
        routes: routes(&seen),
        hints,
        live: Some(Live {
            keys: bsf::KEYS,
            apply: Box::new(move |config| match changed.upgrade() {
                Some(running) => running.reconfigure(&config.bsf),
                None => Err("the BSF is stopping".to_owned()),
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
        format!("curl --http2-prior-knowledge '{uri}/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1'"),
        "signalbox bsf bindings".to_owned(),
    ]
}

fn observe(registry: &Registry, seen: &Weak<Running>) {
    let counted = seen.clone();
    events::observe(registry, move |event: Event| {
        counted.upgrade().map_or(0, |bsf| bsf.count(event))
    });
    type Read = fn(&Running) -> f64;
    let gauges: [(&'static Declaration, Read); 4] = [
        (&LOAD, |bsf| f64::from(bsf.load()) / 100.0),
        (&SCORE, |bsf| bsf.score().score),
        (&STATE, |bsf| f64::from(bsf.state() as u8)),
        (&SESSIONS, |bsf| bsf.repository().paths_held.get() as f64),
    ];
    for (gauge, read) in gauges {
        let seen = seen.clone();
        registry.observe(gauge, move || seen.upgrade().map_or(0.0, |bsf| read(&bsf)));
    }
    let bsf = seen.clone();
    store::observe(registry, move || {
        bsf.upgrade().map(|bsf| bsf.repository().store().stats())
    });
    let bsf = seen.clone();
    sbi::observe(registry, move || {
        bsf.upgrade()
            .map(|bsf| bsf.servers().collect())
            .unwrap_or_default()
    });
}

fn routes(bsf: &Weak<Running>) -> Router {
    let (all, one, shown, changed, congestion) =
        (bsf.clone(), bsf.clone(), bsf.clone(), bsf.clone(), bsf.clone());
    let scored = bsf.clone();
    let put_state = move |axum::Json(state): axum::Json<State>| async move {
        if let Some(bsf) = changed.upgrade() {
            bsf.set_state(state);
        }
        axum::Json(state_of(&changed))
    };
    let put_congestion = move |axum::Json(on): axum::Json<bool>| async move {
        if let Some(bsf) = congestion.upgrade() {
            bsf.set_congestion_control(on);
        }
        axum::Json(state_of(&congestion))
    };
    Router::new()
        .route("/bsf/bindings", get(move || async move { bindings(&all).await }))
        .route(
            "/bsf/bindings/{id}",
            get(move |Path(id): Path<String>| async move { binding(&one, &id).await }),
        )
        .route(
            "/bsf/score",
            get(move || async move { axum::Json(scored.upgrade().map(|bsf| bsf.score())) }),
        )
        .route(
            "/bsf/state",
            get(move || async move { axum::Json(state_of(&shown)) }).put(put_state),
        )
        .route("/bsf/congestion-control", axum::routing::put(put_congestion))
}

fn state_of(bsf: &Weak<Running>) -> Value {
    bsf.upgrade().map_or(Value::Null, |bsf| {
        json!({"state": bsf.state(), "congestionControl": bsf.congestion_control(), "load": bsf.load()})
    })
}

async fn bindings(bsf: &Weak<Running>) -> Response {
    let Some(repository) = bsf.upgrade().map(|bsf| bsf.repository().clone()) else {
        return axum::Json(json!([])).into_response();
    };
    match repository.sessions.scan(&Scan::all(SHOWN)).await {
        Ok(page) => {
            let each = page.records.iter().take(SHOWN).map(|stored| {
                let mut value = stored.record.0.value().clone();
                value["bindingId"] = json!(stored.record.0.id.to_string());
                value
            });
            axum::Json(each.collect::<Value>()).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

async fn binding(bsf: &Weak<Running>, id: &str) -> Response {
    let repository = bsf.upgrade().map(|bsf| bsf.repository().clone());
    let found = match (BindingId::parse(id), repository) {
        (Some(id), Some(repository)) => repository.sessions.get(&id.0).await.ok().flatten(),
        _ => None,
    };
    match found {
        Some(stored) => (
            [("content-type", "application/json")],
            stored.record.0.text().clone(),
        )
            .into_response(),
        None => (StatusCode::NOT_FOUND, format!("there is no binding {id}\n")).into_response(),
    }
}
