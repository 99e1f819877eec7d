//! The NRF's own admin pages and gauges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use registry::{Entry, Snapshot};
use serde_json::{Value, json};
use telemetry::{Alert, Declaration, Registry, When};
use tokio::sync::oneshot;

use crate::cluster::{Handoff, micros};
use crate::events::{ADMISSION, DROPPED, Event, WAITS};
use crate::registrar::{Followed, Look};
use crate::shared::Nrf;
use crate::worker::Worker;

telemetry::declare! {
    /// Gauges of the registry.
    REGISTRY;
    gauge PROFILES = "signalbox_nrf_profiles" ["nf_type"]: "Profiles that are registered, suspended ones included; types that TS 29.510 does not name as other.";
    gauge NOTIFICATIONS = "signalbox_nrf_notifications_pending" []: "Notifications that wait for subscribers.";
    gauge NOTIFICATION_BYTES = "signalbox_nrf_notifications_pending_bytes" []: "Bytes of the notifications that wait for subscribers.";
    gauge CLUSTER_MEMBERS = "signalbox_nrf_cluster_members" []: "NRFs of the cluster that are active, this one included; only with cluster.enabled.";
    gauge CLUSTER_LAG = "signalbox_nrf_cluster_lag_seconds" []: "Time since the changes of the other NRFs of the cluster were read; only with cluster.enabled.",
        alert Alert::major(When::Above(10.0), 2, "Check the database: this NRF does not see what the others of the cluster have registered.");
}

pub(crate) const PAGES: &[Page] = &[
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
    Page {
        name: "cluster",
        about: "The NRFs that share the database (`cluster.enabled`), and how far each has notified",
        path: "/nrf/cluster",
        argument: None,
        columns: &[
            ("instance", "/nfInstanceId"),
            ("root", "/apiRoot"),
            ("standing", "/standing"),
            ("this one", "/own"),
            ("undelivered", "/undeliveredSeconds"),
            ("member", "/member"),
        ],
    },
    Page {
        name: "subscriptions",
        about: "The subscriptions to status changes, and which NRF of a cluster notifies them",
        path: "/nrf/subscriptions",
        argument: None,
        columns: &[
            ("subscription", "/subscriptionId"),
            ("subscriber", "/reqNfInstanceId"),
            ("type", "/reqNfType"),
            ("condition", "/condition"),
            ("valid until", "/validityTime"),
            ("notified here", "/notifiedHere"),
            ("uri", "/nfStatusNotificationUri"),
        ],
    },
    Page {
        name: "growth",
        about: "The other NRF sets: which NRF answered, when, and what is known of them",
        path: "/nrf/growth",
        argument: None,
        columns: &[
            ("set", "/name"),
            ("profiles", "/profiles"),
            ("answered by", "/answeredBy"),
            ("seconds ago", "/answeredSecondsAgo"),
            ("changed", "/changedSecondsAgo"),
            ("failure", "/failure"),
        ],
    },
    Page {
        name: "slf",
        about: "The location functions and SCPs for subscriber location, in the order in which they are queried",
        path: "/nrf/slf",
        argument: None,
        columns: &[
            ("kind", "/kind"),
            ("root", "/apiRoot"),
            ("source", "/source"),
            ("priority", "/priority"),
            ("capacity", "/capacity"),
            ("down at workers", "/downAtWorkers"),
        ],
    },
    Page {
        name: "why",
        about: "What a discovery finds and which parameter drops each profile; QUERY is such as 'target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1'; slf-group=GROUP stands for the answer of a location function",
        path: "/nrf/why?{}",
        argument: Some("QUERY"),
        columns: &[],
    },
];

/// Every metric of the NRF.
pub(crate) fn metrics() -> Vec<Declaration> {
    let own = [REGISTRY, WAITS, &[DROPPED]].concat();
    function::sbi::metrics_of_routed::<Worker, Event>(&own, &ADMISSION)
}

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!("curl --http2-prior-knowledge '{uri}/nnrf-nfm/v1/nf-instances?limit=10'"),
        format!(
            "curl --http2-prior-knowledge '{uri}/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF'"
        ),
        "signalbox nrf instances".to_owned(),
    ]
}

/// Shows the gauges of the registry.
pub(crate) fn observe(registry: &Registry, published: &Arc<ArcSwap<Snapshot>>, queue: notifier::Queue) {
    let waiting = queue.clone();
    registry.observe(&NOTIFICATIONS, move || waiting.pending().notifications as f64);
    registry.observe(&NOTIFICATION_BYTES, move || queue.pending().bytes as f64);
    let published = published.clone();
    registry.observe_all(&PROFILES, move || {
        let mut labels: BTreeMap<String, f64> = BTreeMap::new();
        for (nf_type, count) in types(&published.load()) {
            *labels.entry(label(&nf_type).to_owned()).or_default() += count as f64;
        }
        labels
            .into_iter()
            .map(|(nf_type, count)| (vec![nf_type], count))
            .collect()
    });
}

/// Shows the gauges of the cluster.
pub(crate) fn observe_cluster(registry: &Registry, handoff: &Handoff) {
    let (members, lag) = (handoff.clone(), handoff.clone());
    registry.observe(&CLUSTER_MEMBERS, move || members.view().active() as f64);
    registry.observe(&CLUSTER_LAG, move || lag.lag().as_secs_f64());
}

/// A type as a label: those of the standard by name, types that an NF invents as `other`.
fn label(nf_type: &str) -> &str {
    if model::NfType::from(nf_type).is_known() {
        nf_type
    } else {
        "other"
    }
}

fn types(snapshot: &Snapshot) -> Vec<(String, usize)> {
    snapshot
        .types()
        .map(|(nf_type, table)| (nf_type.to_string(), table.len()))
        .collect()
}

/// Serves [`PAGES`]. They look through a weak handle: they must not keep the NRF from ending.
pub(crate) fn routes(nrf: &Weak<Nrf>) -> Router {
    let page = |show: fn(&Nrf) -> Value| {
        let nrf = nrf.clone();
        get(move || async move { axum::Json(nrf.upgrade().map(|nrf| show(&nrf)).unwrap_or_default()) })
    };
    let (one, books, why) = (nrf.clone(), nrf.clone(), nrf.clone());
    Router::new()
        .route("/nrf/instances", page(instances))
        .route(
            "/nrf/instances/{id}",
            get(move |Path(id): Path<String>| async move { instance(&one, &id) }),
        )
        .route("/nrf/cluster", page(cluster))
        .route("/nrf/types", page(by_type))
        .route(
            "/nrf/subscriptions",
            get(move || async move { axum::Json(subscriptions(&books).await) }),
        )
        .route("/nrf/growth", page(growth))
        .route("/nrf/slf", page(slf))
        .route(
            "/nrf/why",
            get(move |RawQuery(query): RawQuery| async move { explained(&why, query.unwrap_or_default()).await }),
        )
}

fn by_type(nrf: &Nrf) -> Value {
    let rows = types(&nrf.snapshot());
    rows.into_iter()
        .map(|(nf_type, count)| json!({ "nfType": nf_type, "registered": count }))
        .collect()
}

async fn subscriptions(nrf: &Weak<Nrf>) -> Value {
    let (answer, answered) = oneshot::channel();
    let looks = nrf.upgrade().map(|nrf| nrf.looks.clone());
    if let Some(looks) = looks {
        // An NRF that is stopping answers nothing.
        let _ = looks.send(Look(answer)).await;
    }
    let all: Vec<Followed> = answered.await.unwrap_or_default();
    let each = all.iter().map(|(one, here)| {
        let member = |name: &str| one.document.get(name).cloned().unwrap_or_default();
        let condition = member("subscrCond");
        json!({
            "subscriptionId": one.id,
            "reqNfInstanceId": member("reqNfInstanceId"),
            "reqNfType": member("reqNfType"),
            "condition": if condition.is_null() { "all".to_owned() } else { condition.to_string() },
            "reqNotifEvents": member("reqNotifEvents"),
            "validityTime": member("validityTime"),
            "source": one.source.map(|source| source.to_string()),
            "nfStatusNotificationUri": one.target.uri.to_string(),
            "notifiedHere": here,
        })
    });
    each.collect()
}

fn growth(nrf: &Nrf) -> Value {
    let snapshot = nrf.snapshot();
    let seconds = |moment: Option<SystemTime>| moment.and_then(|moment| moment.elapsed().ok());
    let each = nrf.growth.iter().map(|standing| {
        let (set, state) = (&standing.set, standing.state());
        let of_set = |entry: &&Arc<Entry>| entry.set.as_deref() == Some(set.name.as_str());
        json!({
            "name": set.name,
            "nrfs": set.nrfs,
            "profiles": snapshot.iter().filter(of_set).count(),
            "answeredBy": state.nrf,
            "answeredSecondsAgo": seconds(state.answered).map(|ago| ago.as_secs()),
            "changedSecondsAgo": seconds(state.changed).map(|ago| ago.as_secs()),
            "failure": state.failure,
        })
    });
    each.collect()
}

fn slf(nrf: &Nrf) -> Value {
    let live = nrf.live.load_full();
    let settings = &live.config.slf;
    let mut rows: Vec<Value> = Vec::new();
    for root in &settings.static_targets {
        rows.push(json!({"kind": "SLF", "apiRoot": root, "source": "slf.staticTargets"}));
    }
    if settings.static_targets.is_empty() && !settings.target_types.is_empty() {
        let offers = crate::slf::offers_of(&nrf.snapshot());
        rows.extend(offers.into_iter().map(|one| {
            let mut row = json!({
                "kind": "SLF",
                "apiRoot": one.root.to_string(),
                "source": "registered",
                "priority": one.priority,
                "capacity": one.capacity,
            });
            let checked = live.destinations.check(&one.root.origin);
            if let Err(expected) = checked {
                row["refused"] = expected.into();
            }
            row
        }));
    }
    for (at, scp) in settings.scps.iter().enumerate() {
        let is_down = |worker: &&AtomicU64| at < 64 && worker.load(Ordering::Relaxed) >> at & 1 == 1;
        let down = nrf.scps_down.iter().filter(is_down).count();
        rows.push(json!({"kind": "SCP", "apiRoot": scp, "source": "slf.scps", "downAtWorkers": down}));
    }
    rows.into()
}

async fn explained(nrf: &Weak<Nrf>, query: String) -> Response {
    let Some((live, snapshot)) = nrf.upgrade().map(|nrf| (nrf.live.load_full(), nrf.snapshot())) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the NRF is stopping\n").into_response();
    };
    // A registry of many thousands takes its time, which the control thread does not have.
    let explaining = move || crate::why::explain(&live.config, &snapshot, &query);
    match tokio::task::spawn_blocking(explaining).await {
        Ok(Ok(explained)) => axum::Json(explained).into_response(),
        Ok(Err(fault)) => (StatusCode::BAD_REQUEST, fault + "\n").into_response(),
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "the query could not be explained\n",
        )
            .into_response(),
    }
}

fn cluster(nrf: &Nrf) -> Value {
    let Some(handoff) = &nrf.cluster else {
        return Value::Array(Vec::new());
    };
    let (view, now) = (handoff.view(), micros());
    let each = view.records().map(|record| {
        json!({
            "nfInstanceId": record.instance,
            "apiRoot": record.root,
            "standing": record.standing,
            "own": record.id == view.own(),
            "undeliveredSeconds": now.saturating_sub(record.delivered) / 1_000_000,
            "member": record.id.to_string(),
        })
    });
    each.collect()
}

fn instances(nrf: &Nrf) -> Value {
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

fn instance(nrf: &Weak<Nrf>, id: &str) -> Response {
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
