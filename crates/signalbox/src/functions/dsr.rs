//! How a Diameter signaling router is started and looked at.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use dsr::Running;
use serde_json::Value;
use telemetry::Declaration;

use super::{Config, Live, Mounted, Page, listening};

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "peers",
        about: "The peers, configured and connected, and how they stand",
        path: "/dsr/peers",
        argument: None,
        columns: &[
            ("peer", "/host"),
            ("realm", "/realm"),
            ("node", "/localNode"),
            ("worker", "/worker"),
            ("state", "/state"),
            ("machine", "/machine"),
            ("address", "/address"),
            ("in", "/messagesIn"),
            ("out", "/messagesOut"),
            ("pending", "/pending"),
        ],
    },
    Page {
        name: "routes",
        about: "The members of every route list, and which group is used now",
        path: "/dsr/routes",
        argument: None,
        columns: &[
            ("list", "/list"),
            ("group", "/group"),
            ("active", "/active"),
            ("peer", "/host"),
            ("state", "/state"),
            ("worker", "/worker"),
        ],
    },
    Page {
        name: "indicators",
        about: "Its indicators by number, averaged: load, rates, sizes",
        path: "/dsr/indicators",
        argument: None,
        columns: &[
            ("id", "/id"),
            ("name", "/name"),
            ("about", "/instance"),
            ("value", "/value"),
            ("unit", "/unit"),
            ("profile", "/profile"),
        ],
    },
];

pub(super) fn admin(config: &Config) -> SocketAddr {
    config.dsr.admin
}

pub(super) fn addresses(config: &Config) -> Vec<(String, SocketAddr)> {
    let nodes = config.dsr.local_nodes.iter().enumerate();
    let mut all: Vec<_> = nodes
        .flat_map(|(index, node)| listening(&format!("localNodes[{index}].listen"), &node.listen))
        .collect();
    all.push(("admin".to_owned(), config.dsr.admin));
    all
}

pub(super) fn metrics() -> Vec<Declaration> {
    dsr::metrics::declarations()
}

pub(super) fn start(config: &Config) -> anyhow::Result<Mounted> {
    let running = Arc::new(dsr::start(config.dsr.clone()).context("starting the DSR")?);
    let secure = config.dsr.local_nodes.iter().all(|node| node.tls.is_some());
    let scheme = if secure { "aaas" } else { "aaa" };
    let interfaces = running
        .addresses()
        .iter()
        .map(|address| ("Diameter", format!("{scheme}://{address}")))
        .collect();
    // Pages look through a weak handle: they must not keep the function from ending.
    let (seen, live) = (Arc::downgrade(&running), Arc::downgrade(&running));
    let files = live.clone();
    Ok(Mounted {
        interfaces,
        registry: running.metrics().clone(),
        alarms: running.alarms().clone(),
        health: running.health().clone(),
        routes: routes(&seen),
        hints: vec!["signalbox dsr peers".to_owned()],
        live: Some(Live {
            keys: dsr::LIVE,
            apply: Box::new(move |config| match live.upgrade() {
                Some(running) => running.reload(&config.dsr),
                None => Err("it is ending".to_owned()),
            }),
            reread: Some(Box::new(move || match files.upgrade() {
                Some(running) => running.reread(),
                None => Err("it is ending".to_owned()),
            })),
        }),
        stop: Box::new(move || match Arc::into_inner(running) {
            Some(running) => Ok(running.stop()?),
            // A page is being made of it at this moment; it ends with the page.
            None => Ok(()),
        }),
    })
}

/// A page that shows something of the running router as JSON.
fn page(
    seen: &Weak<Running>,
    show: fn(&Running) -> serde_json::Result<Value>,
) -> axum::routing::MethodRouter {
    let seen = seen.clone();
    get(move || async move {
        let shown = seen.upgrade().map(|running| show(&running));
        axum::Json(shown.and_then(Result::ok).unwrap_or_default())
    })
}

fn routes(seen: &Weak<Running>) -> Router {
    Router::new()
        .route(
            "/dsr/peers",
            page(seen, |running| serde_json::to_value(running.peers())),
        )
        .route(
            "/dsr/routes",
            page(seen, |running| serde_json::to_value(running.routes())),
        )
        .route(
            "/dsr/indicators",
            page(seen, |running| serde_json::to_value(running.indicators())),
        )
}
