//! How an IP front end is started and looked at.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use telemetry::Declaration;

use super::{Config, Mounted, Page, listening};

pub(super) const PAGES: &[Page] = &[Page {
    name: "backends",
    about: "The message processors behind each address, and how they stand",
    path: "/ipfe/backends",
    argument: None,
    columns: &[
        ("target set", "/targetSet"),
        ("backend", "/name"),
        ("address", "/address"),
        ("state", "/state"),
        ("connections", "/connections"),
        ("in", "/bytesIn"),
        ("out", "/bytesOut"),
    ],
}];

pub(super) fn admin(config: &Config) -> SocketAddr {
    config.ipfe.admin
}

pub(super) fn addresses(config: &Config) -> Vec<(String, SocketAddr)> {
    let sets = config.ipfe.target_sets.iter().enumerate();
    let mut all: Vec<_> = sets
        .flat_map(|(index, set)| listening(&format!("targetSets[{index}].listen"), &set.listen))
        .collect();
    all.push(("admin".to_owned(), config.ipfe.admin));
    all
}

pub(super) fn metrics() -> Vec<Declaration> {
    ipfe::metrics::declarations()
}

pub(super) fn start(config: &Config) -> anyhow::Result<Mounted> {
    let running = Arc::new(ipfe::start(config.ipfe.clone()).context("starting the IP front end")?);
    let interfaces = running
        .addresses()
        .iter()
        .map(|address| ("TCP", address.to_string()))
        .collect();
    let seen = Arc::downgrade(&running);
    let backends = get(move || async move {
        axum::Json(
            seen.upgrade()
                .map(|running| running.backends())
                .unwrap_or_default(),
        )
    });
    Ok(Mounted {
        interfaces,
        registry: running.metrics().clone(),
        alarms: running.alarms().clone(),
        health: running.health().clone(),
        routes: Router::new().route("/ipfe/backends", backends),
        hints: vec!["signalbox ipfe backends".to_owned()],
        live: None,
        stop: Box::new(move || match Arc::into_inner(running) {
            Some(running) => Ok(running.stop()?),
            // A page is being made of it at this moment; it ends with the page.
            None => Ok(()),
        }),
    })
}
