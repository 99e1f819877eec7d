//! Policies of background data transfers.

use std::sync::Weak;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use serde_json::{Value, json};
use store::Scan;

use super::{SHOWN, repository, unavailable};
use crate::association::bdt::BdtPolicy;
use crate::shared::Pcf;

pub(super) const PAGE: Page = Page {
    name: "transfers",
    about: "Some policies of background data transfers, a hundred at most",
    path: "/pcf/transfers",
    argument: None,
    columns: &[
        ("policy", "/id"),
        ("provider", "/aspId"),
        ("reference", "/bdtRefId"),
        ("begins", "/selected/recTimeInt/startTime"),
        ("ends", "/selected/recTimeInt/stopTime"),
        ("status", "/status"),
    ],
};

/// Serves [`PAGE`].
pub(super) fn routes(pcf: &Weak<Pcf>) -> Router {
    let shown = pcf.clone();
    Router::new().route(
        "/pcf/transfers",
        get(move || async move { transfers(&shown).await }),
    )
}

async fn transfers(pcf: &Weak<Pcf>) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!([])).into_response();
    };
    match repository.bdt_policies().scan(&Scan::all(SHOWN)).await {
        Ok(page) => {
            let lines = page.records.iter().map(|stored| line(&stored.record));
            axum::Json(lines.collect::<Value>()).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

fn line(policy: &BdtPolicy) -> Value {
    let selected = policy.selected().map(|one| &one.policy);
    let status = match (selected, policy.content.is_invalid) {
        (None, _) => "offered",
        (Some(_), false) => "selected",
        (Some(_), true) => "warned",
    };
    json!({
        "id": policy.id.to_string(),
        "aspId": policy.content.request.get("aspId"),
        "bdtRefId": policy.content.reference,
        "selected": selected,
        "status": status,
    })
}
