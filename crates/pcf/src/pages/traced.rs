//! Pages about traced subscribers.

use std::sync::Weak;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use function::operator::answer_after;
use serde_json::{Value, json};

use crate::shared::Pcf;

/// Characters of a detail.
const SHOWN: usize = 160;

/// Serves the pages.
pub(super) fn routes(pcf: &Weak<Pcf>) -> Router {
    let (all, added, removed, shown) = (pcf.clone(), pcf.clone(), pcf.clone(), pcf.clone());
    Router::new()
        .route("/pcf/trace", get(move || async move { axum::Json(list(&all)) }))
        .route(
            "/pcf/trace/{subscriber}",
            put(move |Path(subscriber): Path<String>| async move { add(added, subscriber).await }).delete(
                move |Path(subscriber): Path<String>| async move { remove(removed, subscriber).await },
            ),
        )
        .route(
            "/pcf/activity/{subscriber}",
            get(move |Path(subscriber): Path<String>| async move { activity(&shown, &subscriber) }),
        )
}

fn list(pcf: &Weak<Pcf>) -> Value {
    pcf.upgrade()
        .map_or(Value::Null, |pcf| Value::Array(pcf.activity.list()))
}

async fn add(seen: Weak<Pcf>, subscriber: String) -> Response {
    let Some(pcf) = seen.upgrade() else {
        return axum::Json(Value::Null).into_response();
    };
    let is_known = pcf
        .activity
        .list()
        .iter()
        .any(|line| line["subscriber"] == *subscriber);
    if is_known && !pcf.activity.is_admitted(&subscriber) {
        return axum::Json(list(&seen)).into_response();
    }
    if let Some(reason) = pcf.activity.refuses(&subscriber) {
        return (StatusCode::CONFLICT, format!("{reason}\n")).into_response();
    }
    tracing::warn!(subscriber, "an operator traces a subscriber");
    let change = async move { pcf.trace(|added| added.push(subscriber)).await };
    answer_after(change, || list(&seen)).await
}

async fn remove(seen: Weak<Pcf>, subscriber: String) -> Response {
    let Some(pcf) = seen.upgrade() else {
        return axum::Json(Value::Null).into_response();
    };
    if pcf.activity.is_configured(&subscriber) {
        let text = format!("{subscriber} is among `activityLog.subscribers`: remove it there, and reload\n");
        return (StatusCode::CONFLICT, text).into_response();
    }
    if !pcf.activity.is_added(&subscriber) {
        let text = format!("no operator traces {subscriber}; GET /pcf/trace lists what is traced\n");
        return (StatusCode::NOT_FOUND, text).into_response();
    }
    tracing::warn!(subscriber, "an operator traces a subscriber no more");
    let change = async move { pcf.trace(|added| added.retain(|own| *own != subscriber)).await };
    answer_after(change, || list(&seen)).await
}

/// The entries about a subscriber, with a number for each request and what matters of the content.
fn activity(pcf: &Weak<Pcf>, wanted: &str) -> Response {
    let Some(pcf) = pcf.upgrade() else {
        return axum::Json(json!([])).into_response();
    };
    let mut entries = pcf.activity.search(wanted);
    if entries.is_empty() {
        let text = match pcf.activity.traces(Some(wanted), None) {
            true => format!("{wanted} is traced and has had no activity since\n"),
            false => {
                format!("{wanted} is not traced; `signalbox pcf trace add {wanted}` traces it from now on\n")
            }
        };
        return (StatusCode::NOT_FOUND, text).into_response();
    }
    let mut requests: Vec<Value> = Vec::new();
    for entry in &mut entries {
        let request = entry["request"].clone();
        let known = requests.iter().position(|one| *one == request);
        let step = known.unwrap_or_else(|| {
            requests.push(request);
            requests.len() - 1
        });
        entry["step"] = (step + 1).into();
        let detail = detail(entry);
        if !detail.is_empty() {
            entry["detail"] = detail.into();
        }
    }
    axum::Json(entries).into_response()
}

/// The blocks that have decided something, what a write has changed, the cause of a refusal.
fn detail(entry: &Value) -> String {
    let body = &entry["body"];
    let text = match entry["what"].as_str() {
        Some("decision") => {
            let blocks = body["blocks"].as_array().into_iter().flatten();
            let decided = blocks.filter_map(|block| {
                let (name, what) = (block["block"].as_str()?, block["decided"].as_str()?);
                Some(format!("{name} \u{2192} {what}"))
            });
            decided.collect::<Vec<_>>().join(", ")
        }
        Some("write") => match body["decision"].as_object() {
            Some(changes) if !changes.is_empty() => {
                let names: Vec<&str> = changes.keys().map(String::as_str).collect();
                format!("changes {}", names.join(", "))
            }
            _ => String::new(),
        },
        _ => {
            let member = |name: &str| body[name].as_str().map(str::to_owned);
            let cause = member("cause").or_else(|| member("dnn"));
            cause.unwrap_or_default()
        }
    };
    text.chars().take(SHOWN).collect()
}
