//! The admin endpoint of a function: HTTP/1.1, for browsers, Prometheus and people.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

use crate::config::Config;

/// Serves `router` at `address` on the current runtime.
pub(crate) async fn serve(address: SocketAddr, router: Router) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("the admin address {address} cannot be used"))?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the admin endpoint ended");
        }
    });
    Ok(())
}

/// The pages of an NRF.
pub(crate) fn of_nrf(nrf: Arc<nrf::Running>, config: &Config) -> Router {
    let shown = serde_json::to_value(&config.nrf).unwrap_or_default();
    let (metrics, instances) = (nrf.clone(), nrf);
    Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        // It listens only after it has read its state, so whoever is answered is answered by one that is ready.
        .route("/readyz", get(|| async { "ready\n" }))
        .route("/metrics", get(move || async move { metrics.metrics() }))
        .route("/config", get(move || async move { axum::Json(shown) }))
        .route(
            "/nrf/instances",
            get(move || async move { axum::Json(instances_of(&instances)) }),
        )
}

fn instances_of(nrf: &nrf::Running) -> Value {
    let snapshot = nrf.snapshot();
    let each = snapshot.iter().map(|entry| {
        json!({
            "nfInstanceId": entry.id.to_string(),
            "nfType": entry.nf_type().as_str(),
            "nfStatus": entry.status.as_str(),
            "load": entry.load,
            "locality": entry.profile.locality,
            "heartBeatTimer": entry.heart_beat_timer,
            "services": entry.profile.services().map(|service| service.service_name.as_str()).collect::<Vec<_>>(),
        })
    });
    each.collect()
}
