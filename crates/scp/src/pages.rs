//! The SCP's own admin pages and gauges.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use function::Page;
use routing::network::Network;
use sbi::dns::{Dns, DnsStats};
use serde_json::{Value, json};
use telemetry::Registry;

use crate::discovery;
use crate::events::{CONNECTIONS, DNS_ASKED, DNS_FAILED, DNS_NAMES, EJECTED, OPEN, OUTSTANDING, PRODUCERS};
use crate::live::Current;
use crate::protection::{PeerState, PeerStates};
use crate::security;
use crate::shared::Scp;

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "routes",
        about: "The known service instances, in the order of preference",
        path: "/scp/routes",
        argument: None,
        columns: &[
            ("service", "/service"),
            ("type", "/nfType"),
            ("instance", "/nfInstanceId"),
            ("sets", "/sets"),
            ("endpoint", "/endpoint"),
            ("status", "/status"),
            ("distance", "/distance"),
            ("through", "/through"),
            ("priority", "/priority"),
            ("capacity", "/capacity"),
            ("load", "/load"),
        ],
    },
    Page {
        name: "why",
        about: "Where a request would go and why; QUERY is such as 'method=POST&path=/nudm-sdm/v2/imsi-1&apiroot=http://udm:80' (or nfset=, nfinst=, target-nf-type=, header=NAME: VALUE, authority=, body=)",
        path: "/scp/why?{}",
        argument: Some("QUERY"),
        columns: &[],
    },
    Page {
        name: "producers",
        about: "Producers that are in use or fail, as each worker sees them: ejections, circuits, outstanding requests",
        path: "/scp/producers",
        argument: None,
        columns: &[
            ("worker", "/worker"),
            ("endpoint", "/endpoint"),
            ("instance", "/nfInstanceId"),
            ("ejected", "/ejected"),
            ("circuit", "/circuit"),
            ("rests", "/rests"),
            ("outstanding", "/outstanding"),
            ("connections", "/connections"),
        ],
    },
    Page {
        name: "discoveries",
        about: "Cached answers of NRFs of all workers, at most 1000 of them",
        path: "/scp/discoveries",
        argument: None,
        columns: &[
            ("query", "/query"),
            ("candidates", "/candidates"),
            ("seconds left", "/secondsLeft"),
        ],
    },
    Page {
        name: "tokens",
        about: "Cached access tokens, at most 1000 of them, without their values",
        path: "/scp/tokens",
        argument: None,
        columns: &[
            ("consumer", "/nfInstanceId"),
            ("target", "/targetNfType"),
            ("instance", "/targetNfInstanceId"),
            ("scope", "/scope"),
            ("state", "/state"),
            ("seconds left", "/secondsLeft"),
        ],
    },
    Page {
        name: "mediation",
        about: "Number of messages to which each mediation rule has applied",
        path: "/scp/mediation",
        argument: None,
        columns: &[("group", "/group"), ("rule", "/rule"), ("applied", "/applied")],
    },
];

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!(
            "curl --http2-prior-knowledge -H '3gpp-Sbi-Discovery-target-nf-type: UDM' \
             -H '3gpp-Sbi-Discovery-requester-nf-type: AMF' -H '3gpp-Sbi-Discovery-service-names: nudm-sdm' \
             '{uri}/nudm-sdm/v1/imsi-001010000000001/am-data'"
        ),
        "signalbox scp routes".to_owned(),
    ]
}

/// Shows the gauges of the network, of caches and of DNS.
pub(crate) fn observe(
    registry: &Registry,
    network: &Arc<ArcSwap<Network>>,
    live: &Arc<Current>,
    names: Option<&Dns>,
) {
    let network = network.clone();
    registry.observe_all(&PRODUCERS, move || {
        let mut counts = BTreeMap::<String, usize>::new();
        for producer in network.load().producers() {
            *counts.entry(producer.nf_type.to_string()).or_default() += 1;
        }
        counts
            .into_iter()
            .map(|(nf_type, count)| (vec![nf_type], count as f64))
            .collect()
    });
    let feeding = live.clone();
    registry.observe(&crate::feed::BUFFERED, move || {
        feeding.load().feed.as_ref().map_or(0, |feed| feed.buffered()) as f64
    });
    let live = live.clone();
    registry.observe(&crate::security::TOKEN_CACHE, move || {
        live.load().tokens.len() as f64
    });
    if let Some(names) = names {
        let of = |value: fn(DnsStats) -> f64| {
            let names = names.clone();
            move || value(names.stats())
        };
        registry.observe(&DNS_NAMES, of(|stats| stats.names as f64));
        registry.observe(&DNS_ASKED, of(|stats| stats.asked as f64));
        registry.observe(&DNS_FAILED, of(|stats| stats.failed as f64));
    }
}

/// Shows the gauges of producers.
pub(crate) fn observe_peers(registry: &Registry, states: &Arc<PeerStates>) {
    let of = |count: fn(&PeerState) -> u32| {
        let states = states.clone();
        move || states.sums(count)
    };
    registry.observe_all(&EJECTED, of(|one| u32::from(one.ejected)));
    registry.observe_all(&OPEN, of(|one| u32::from(one.circuit != "closed")));
    registry.observe_all(&OUTSTANDING, of(|one| one.outstanding));
    registry.observe_all(&CONNECTIONS, of(|one| one.connections));
}

fn row((worker, one): (usize, PeerState)) -> Value {
    json!({
        "worker": worker, "endpoint": &*one.authority, "nfInstanceId": one.instance, "ejected": one.ejected,
        "circuit": one.circuit, "rests": one.rests, "outstanding": one.outstanding,
        "connections": one.connections,
    })
}

/// Rows of a page at most: a cache may hold a hundred thousand.
const ROWS: usize = 1000;

fn discoveries(scp: &Scp) -> Value {
    let shown = scp.shared.answers.shown(Instant::now(), ROWS);
    let row = |one: discovery::Shown| json!({"query": one.query, "candidates": one.candidates, "secondsLeft": one.left.as_secs()});
    shown.into_iter().map(row).collect()
}

fn tokens(scp: &Scp) -> Value {
    let shown = scp.shared.live.load().tokens.shown(Instant::now(), ROWS);
    let row = |one: security::Shown| {
        let mut row = json!({"state": one.state, "secondsLeft": one.left.as_secs()});
        for (name, value) in security::Wanted::shown(&one.key) {
            row[name] = value.into();
        }
        row
    };
    shown.into_iter().map(row).collect()
}

/// The pages. They hold a weak handle, so that they do not prevent the SCP from stopping.
pub(crate) fn routes(seen: &Weak<Scp>) -> Router {
    let (all, why, rules, peers) = (seen.clone(), seen.clone(), seen.clone(), seen.clone());
    let (answers, granted) = (seen.clone(), seen.clone());
    Router::new()
        .route(
            "/scp/discoveries",
            get(async move || Json(answers.upgrade().map(|scp| discoveries(&scp)).unwrap_or_default())),
        )
        .route(
            "/scp/tokens",
            get(async move || Json(granted.upgrade().map(|scp| tokens(&scp)).unwrap_or_default())),
        )
        .route(
            "/scp/routes",
            get(async move || Json(all.upgrade().map(|scp| scp.routes()).unwrap_or_default())),
        )
        .route(
            "/scp/why",
            get(async move |Query(asked): Query<Vec<(String, String)>>| {
                // The future must not hold the running SCP while it waits.
                let answer = why.upgrade().map(|scp| scp.why(&asked));
                Json(match answer {
                    Some(answer) => answer.await,
                    None => json!({"error": "the SCP is stopping"}),
                })
            }),
        )
        .route(
            "/scp/producers",
            get(async move || {
                let states = peers.upgrade().map(|scp| scp.shared.states.all());
                Json(states.unwrap_or_default().into_iter().map(row).collect::<Value>())
            }),
        )
        .route(
            "/scp/mediation",
            get(async move || {
                let applied = rules.upgrade().map(|scp| scp.mediation()).unwrap_or_default();
                let rows = applied
                    .into_iter()
                    .map(|(group, rule, applied)| json!({"group": group, "rule": rule, "applied": applied}));
                Json(rows.collect::<Value>())
            }),
        )
}
