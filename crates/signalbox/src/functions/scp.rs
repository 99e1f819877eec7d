//! How an SCP is started and looked at.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use scp::Running;
use serde_json::{Value, json};
use telemetry::{Alarms, Declaration, Health, Registry};

use super::{Config, Live, Mounted, Page, listening, sbi};

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "routes",
        about: "The service instances it can send to, in the order of preference",
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
        about: "Where a request would go and why; QUERY is such as 'method=POST&path=/nudm-sdm/v2/imsi-1&apiroot=http://udm:80' (or nfset=, nfinst=, target-nf-type=)",
        path: "/scp/why?{}",
        argument: Some("QUERY"),
        columns: &[],
    },
    Page {
        name: "mediation",
        about: "How often each mediation rule has applied",
        path: "/scp/mediation",
        argument: None,
        columns: &[("group", "/group"), ("rule", "/rule"), ("applied", "/applied")],
    },
];

pub(super) fn admin(config: &Config) -> SocketAddr {
    config.scp.admin
}

pub(super) fn addresses(config: &Config) -> Vec<(String, SocketAddr)> {
    let mut all = listening("listen", &config.scp.listen);
    all.push(("admin".to_owned(), config.scp.admin));
    all
}

pub(super) fn metrics() -> Vec<Declaration> {
    scp::metrics()
}

pub(super) fn start(config: &Config) -> anyhow::Result<Mounted> {
    let registry = Registry::new();
    let mut settings = config.scp.clone();
    // What a request names is never one of these.
    settings.other_admins = vec![
        super::nrf::admin(config),
        super::bsf::admin(config),
        super::dsr::admin(config),
        super::ipfe::admin(config),
    ];
    let running = Arc::new(scp::start(settings, &registry).context("starting the SCP")?);
    let scheme = if config.scp.tls.is_some() { "https" } else { "http" };
    let interfaces: Vec<(&str, String)> = running
        .addresses()
        .iter()
        .map(|address| ("SBI", format!("{scheme}://{address}")))
        .collect();
    let hints = interfaces.first().map(|(_, uri)| {
        vec![
            format!(
                "curl --http2-prior-knowledge -H '3gpp-Sbi-Discovery-target-nf-type: UDM' \
                 -H '3gpp-Sbi-Discovery-requester-nf-type: AMF' -H '3gpp-Sbi-Discovery-service-names: nudm-sdm' \
                 '{uri}/nudm-sdm/v1/imsi-001010000000001/am-data'"
            ),
            "signalbox scp routes".to_owned(),
        ]
    });
    // Pages and metrics look through a weak handle: they must not keep the function from ending.
    let seen = Arc::downgrade(&running);
    let (servers, changed, files) = (seen.clone(), seen.clone(), seen.clone());
    sbi::observe(&registry, move || {
        servers
            .upgrade()
            .map(|scp| scp.servers().collect())
            .unwrap_or_default()
    });
    Ok(Mounted {
        interfaces,
        alarms: Alarms::new(&registry),
        registry,
        health: Health::new(),
        routes: routes(&seen),
        hints: hints.unwrap_or_default(),
        live: Some(Live {
            keys: scp::KEYS,
            apply: Box::new(move |config| match changed.upgrade() {
                Some(running) => running.reconfigure(&config.scp),
                None => Err("the SCP is stopping".to_owned()),
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

fn routes(seen: &Weak<Running>) -> Router {
    let (all, why, rules) = (seen.clone(), seen.clone(), seen.clone());
    Router::new()
        .route(
            "/scp/routes",
            get(move || async move { axum::Json(all.upgrade().map(|scp| scp.routes()).unwrap_or_default()) }),
        )
        .route(
            "/scp/why",
            get(move |Query(asked): Query<Vec<(String, String)>>| async move {
                let named = |name: &str| {
                    asked
                        .iter()
                        .find(|(known, _)| known == name)
                        .map(|(_, value)| value.as_str())
                };
                let (method, path) = (named("method").unwrap_or("GET"), named("path").unwrap_or("/"));
                axum::Json(
                    why.upgrade()
                        .map(|scp| scp.explain(method, path, &asked))
                        .unwrap_or_default(),
                )
            }),
        )
        .route(
            "/scp/mediation",
            get(move || async move {
                let applied = rules.upgrade().map(|scp| scp.mediation()).unwrap_or_default();
                let rows = applied
                    .into_iter()
                    .map(|(group, rule, applied)| json!({"group": group, "rule": rule, "applied": applied}));
                axum::Json(rows.collect::<Value>())
            }),
        )
}
