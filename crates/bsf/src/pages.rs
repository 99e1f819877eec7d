//! The BSF's own admin pages and gauges.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use function::operator::answer_after;
use serde_json::{Value, json};
use store::Scan;
use telemetry::{Alert, Declaration, Registry, When};

use crate::api::fault::Fault;
use crate::api::sessions::query_of;
use crate::binding::{BindingId, PcfBinding};
use crate::by_pcf::OfPcf;
use crate::events::{ADMISSION, DROPPED, Event};
use crate::latency::LATENCIES;
use crate::notify::Change;
use crate::owed::OwedRecord;
use crate::repository::Repository;
use crate::shared::Bsf;
use crate::worker::Worker;
use function::sbi::State;

telemetry::declare! {
    /// Gauges of the state.
    GAUGES;
    gauge LOAD = "signalbox_bsf_load_ratio" []: "Load of the busiest worker, from 0 to 1: its CPU time as a share of a core, or how near requests come to waiting for the target.";
    gauge BRAKED = "signalbox_bsf_audit_brake" []: "Whether the brake of the audit holds: 1, and bindings stay that the audit would remove.";
    gauge SCORE = "signalbox_bsf_score" []: "How well this instance does, from 0 to 100: success, load, latency, replication, alarms.",
        alert Alert::minor(When::Below(50.0), 10, "`signalbox_bsf_score_part` shows which part is low: success, load, latency, replication or alarms.");
    gauge SCORE_PARTS = "signalbox_bsf_score_part" ["part"]: "What the score is made of, each from 0 to 100: success, load, latency, replication, alarms.";
    gauge STATE = "signalbox_bsf_state" []: "Operational state: 0 serving, 1 partial shutdown, 2 complete shutdown.",
        alert Alert::minor(When::Above(0.0), 30, "A shutdown in steps was begun and not finished; set the state back to serving, or stop the function.");
    gauge SESSIONS = "signalbox_bsf_rx_sessions" []: "Rx sessions whose path is kept in the store, as far as this instance knows.";
    gauge NOTIFICATIONS = "signalbox_bsf_notifications_pending" []: "Notifications that wait for subscribers.";
    gauge NOTIFICATION_BYTES = "signalbox_bsf_notifications_pending_bytes" []: "Bytes of the notifications that wait for subscribers.";
}

/// Bindings on one page.
const SHOWN: usize = 100;

const COLUMNS: &[(&str, &str)] = &[
    ("binding", "/bindingId"),
    ("supi", "/supi"),
    ("ipv4", "/ipv4Addr"),
    ("ipv6", "/ipv6Prefix"),
    ("domain", "/ipDomain"),
    ("dnn", "/dnn"),
    ("pcf", "/pcfFqdn"),
    ("diameter", "/pcfDiamHost"),
];

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "bindings",
        about: "Some bindings of PDU sessions, a hundred at most",
        path: "/bsf/bindings",
        argument: None,
        columns: COLUMNS,
    },
    Page {
        name: "binding",
        about: "One binding of a PDU session (DELETE removes it, and notifies its subscribers)",
        path: "/bsf/bindings/{}",
        argument: Some("ID"),
        columns: &[],
    },
    Page {
        name: "find",
        about: "Bindings of PDU sessions by supi=, gpsi=, ipv4Addr=, ipv6Prefix= or macAddr48=, and ipDomain=, dnn= with it; or by pcfId=",
        path: "/bsf/find/{}",
        argument: Some("QUERY"),
        columns: COLUMNS,
    },
    Page {
        name: "audit",
        about: "What the audit has removed lately, and whether its brake holds (PUT \"RELEASED\" lets it go on)",
        path: "/bsf/audit",
        argument: None,
        columns: &[
            ("table", "/table"),
            ("removed", "/removed"),
            ("braked", "/braked"),
            ("held back", "/heldBack"),
        ],
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

/// Every metric of the BSF.
pub(crate) fn metrics() -> Vec<Declaration> {
    let mut all = function::sbi::metrics_of_routed::<Worker, Event>(GAUGES, &ADMISSION);
    all.extend_from_slice(LATENCIES);
    all.push(DROPPED);
    all
}

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!("curl --http2-prior-knowledge '{uri}/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1'"),
        "signalbox bsf bindings".to_owned(),
    ]
}

/// Shows the gauges.
pub(crate) fn observe(registry: &Registry, bsf: &Arc<Bsf>) {
    type Read = fn(&Bsf) -> f64;
    let gauges: [(&'static Declaration, Read); 7] = [
        (&LOAD, |bsf| f64::from(bsf.load()) / 100.0),
        (&BRAKED, |bsf| f64::from(u8::from(bsf.brake.holds()))),
        (&SCORE, |bsf| bsf.score().score),
        (&STATE, |bsf| f64::from(bsf.state() as u8)),
        (&SESSIONS, |bsf| bsf.repository().paths_held.get() as f64),
        (&NOTIFICATIONS, |bsf| bsf.notifications().notifications as f64),
        (&NOTIFICATION_BYTES, |bsf| bsf.notifications().bytes as f64),
    ];
    for (gauge, read) in gauges {
        let seen = Arc::downgrade(bsf);
        registry.observe(gauge, move || seen.upgrade().map_or(0.0, |bsf| read(&bsf)));
    }
    let seen = Arc::downgrade(bsf);
    registry.observe_all(&SCORE_PARTS, move || {
        let parts = seen.upgrade().map(|bsf| bsf.score().parts());
        let shown = |(part, value): (&str, f64)| (vec![part.to_owned()], value);
        parts.into_iter().flatten().map(shown).collect()
    });
}

/// Serves [`PAGES`].
pub(crate) fn routes(bsf: &Weak<Bsf>) -> Router {
    let (all, one, shown, changed, congestion) =
        (bsf.clone(), bsf.clone(), bsf.clone(), bsf.clone(), bsf.clone());
    let scored = bsf.clone();
    let put_state = move |axum::Json(state): axum::Json<State>| async move {
        let Some(bsf) = changed.upgrade() else {
            return axum::Json(Value::Null).into_response();
        };
        answer_after(async move { bsf.set_state(state).await }, || state_of(&changed)).await
    };
    let put_congestion = move |axum::Json(on): axum::Json<bool>| async move {
        let Some(bsf) = congestion.upgrade() else {
            return axum::Json(Value::Null).into_response();
        };
        answer_after(async move { bsf.set_congestion_control(on).await }, || {
            state_of(&congestion)
        })
        .await
    };
    let (audited, released) = (bsf.clone(), bsf.clone());
    let (removed, searched, of_pcf) = (bsf.clone(), bsf.clone(), bsf.clone());
    let put_audit = move |axum::Json(word): axum::Json<Word>| async move {
        let Word::Released = word;
        if let Some(bsf) = released.upgrade() {
            tracing::warn!("an operator has released the brake of the audit");
            bsf.brake.release(std::time::Instant::now());
        }
        axum::Json(released.upgrade().map(|bsf| bsf.brake.shown()))
    };
    Router::new()
        .route(
            "/bsf/audit",
            get(move || async move { axum::Json(audited.upgrade().map(|bsf| bsf.brake.shown())) })
                .put(put_audit),
        )
        .route("/bsf/bindings", get(move || async move { bindings(&all).await }))
        .route(
            "/bsf/bindings/{id}",
            get(move |Path(id): Path<String>| async move { binding(&one, &id).await })
                .delete(move |Path(id): Path<String>| async move { remove(&removed, &id).await }),
        )
        .route(
            "/bsf/pcfs/{id}/bindings",
            axum::routing::delete(
                move |Path(id): Path<String>| async move { remove_of_pcf(&of_pcf, id).await },
            ),
        )
        .route(
            "/bsf/find/{query}",
            get(move |Path(query): Path<String>| async move { find(&searched, &query).await }),
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

/// What an operator says to the audit.
#[derive(serde::Deserialize)]
enum Word {
    #[serde(rename = "RELEASED")]
    Released,
}

fn state_of(bsf: &Weak<Bsf>) -> Value {
    bsf.upgrade().map_or(Value::Null, |bsf| {
        json!({"state": bsf.state(), "congestionControl": bsf.congestion_control(), "load": bsf.load()})
    })
}

async fn bindings(bsf: &Weak<Bsf>) -> Response {
    let Some(repository) = bsf.upgrade().map(|bsf| bsf.repository().clone()) else {
        return axum::Json(json!([])).into_response();
    };
    match repository.sessions.scan(&Scan::all(SHOWN)).await {
        Ok(page) => {
            let each = page.records.iter().take(SHOWN);
            axum::Json(each.map(|stored| shown(&stored.record)).collect::<Value>()).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

fn shown(binding: &PcfBinding) -> Value {
    let mut value = binding.0.value().clone();
    value["bindingId"] = json!(binding.0.id.to_string());
    value
}

fn unavailable(error: &store::Error) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
}

/// Bindings by the parameters of a discovery (TS 29.521 §5.3.2.3.1), all that match.
async fn find(bsf: &Weak<Bsf>, query: &str) -> Response {
    let Some(repository) = bsf.upgrade().map(|bsf| bsf.repository().clone()) else {
        return axum::Json(json!([])).into_response();
    };
    if let Some(pcf_id) = query.strip_prefix("pcfId=") {
        return match of_pcf(&repository, pcf_id).await {
            Ok(found) => axum::Json(found.iter().map(shown).collect::<Value>()).into_response(),
            Err(error) => unavailable(&error),
        };
    }
    let query = match query_of(Some(query)) {
        Ok((query, _)) => query,
        Err(fault) => {
            let reason = match fault {
                Fault::Query { name, expected } => format!("{name}: {expected}\n"),
                Fault::QueryMissing { expected, .. } => format!("{expected}\n"),
                fault => format!("{fault:?}\n"),
            };
            return (StatusCode::BAD_REQUEST, reason).into_response();
        }
    };
    match repository.matching(&query).await {
        Ok(found) => {
            let each = found.iter().take(SHOWN);
            axum::Json(each.map(shown).collect::<Value>()).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

/// Some bindings of a PCF.
async fn of_pcf(repository: &Repository, pcf_id: &str) -> Result<Vec<PcfBinding>, store::Error> {
    let mut bindings = OfPcf::new(pcf_id);
    let mut all = Vec::new();
    while all.len() < SHOWN {
        let more = bindings.more(repository).await?;
        if more.is_empty() {
            break;
        }
        all.extend(more.into_iter().map(|stored| stored.record));
    }
    all.truncate(SHOWN);
    Ok(all)
}

/// Removes all bindings of a PCF that an operator names, at `audit.removalRate`; goes on where the operator's connection ends.
async fn remove_of_pcf(bsf: &Weak<Bsf>, pcf_id: String) -> Response {
    let Some(bsf) = bsf.upgrade() else {
        return axum::Json(Value::Null).into_response();
    };
    if PcfBinding::pcf_key(&pcf_id, 0).is_none() {
        let reason =
            format!("`{pcf_id}` is not an NF instance id; use the UUID that bindings name as pcfId\n");
        return (StatusCode::BAD_REQUEST, reason).into_response();
    }
    tracing::warn!(pcf_id, "an operator removes the bindings of a PCF");
    match tokio::spawn(async move { removed_of_pcf(&bsf, &pcf_id).await }).await {
        Ok(Ok(removed)) => axum::Json(json!({ "removed": removed })).into_response(),
        Ok(Err(error)) => unavailable(&error),
        Err(panicked) => (StatusCode::SERVICE_UNAVAILABLE, format!("{panicked}\n")).into_response(),
    }
}

async fn removed_of_pcf(bsf: &Bsf, pcf_id: &str) -> Result<u64, store::Error> {
    let (repository, mut bindings, mut removed) = (bsf.repository(), OfPcf::new(pcf_id), 0);
    loop {
        let begun = tokio::time::Instant::now();
        let found = bindings.more(repository).await?;
        if found.is_empty() {
            tracing::warn!(pcf_id, removed, "the bindings of a PCF are removed");
            return Ok(removed);
        }
        for stored in &found {
            // One that was written meanwhile may have gone to another PCF: it stays.
            if repository.remove_unchanged(stored).await? {
                removed += 1;
                bsf.notices.session(&stored.record, Change::Deregistered).await;
            }
        }
        let rate = bsf.removal_rate();
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        tokio::time::sleep_until(begun + Duration::from_secs(1) * count / rate).await;
    }
}

/// Removes a binding that an operator names.
async fn remove(bsf: &Weak<Bsf>, id: &str) -> Response {
    let notices = bsf.upgrade().map(|bsf| bsf.notices.clone());
    let (Some(parsed), Some(notices)) = (BindingId::parse(id), notices) else {
        return missing(id);
    };
    let sessions = &notices.repository.sessions;
    let removed = match sessions.get(&parsed.0).await {
        Ok(Some(stored)) => match notices
            .repository
            .remove_owing(sessions, parsed, Some(OwedRecord::of_session(&stored.record)))
            .await
        {
            Ok(removed) => removed.then_some(stored.record),
            Err(error) => return unavailable(&error),
        },
        Ok(None) => None,
        Err(error) => return unavailable(&error),
    };
    let Some(binding) = removed else {
        return missing(id);
    };
    tracing::warn!(binding = id, "an operator has removed a binding");
    notices.session(&binding, Change::Deregistered).await;
    axum::Json(shown(&binding)).into_response()
}

fn missing(id: &str) -> Response {
    (StatusCode::NOT_FOUND, format!("binding {id} does not exist\n")).into_response()
}

async fn binding(bsf: &Weak<Bsf>, id: &str) -> Response {
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
        None => missing(id),
    }
}
