//! The PCF's own admin pages and gauges.

mod audit;
mod bdt;
mod projects;
mod traced;
mod variables;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use function::operator::answer_after;
use serde_json::{Value, json};
use store::{Scan, Stored};
use telemetry::{Alert, Declaration, Registry, When};

use crate::association::address::UeAddress;
use crate::association::ledger::Ledger;
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId, Kind};
use crate::change::TRIES;
use crate::events::{ADMISSION, DROPPED, Event, QUEUE};
use crate::explain;
use crate::latency::LATENCIES;
use crate::notices;
use crate::pds;
use crate::pushes;
use crate::quotas;
use crate::repository::Repository;
use crate::shared::Pcf;
use crate::sources::now_ms;
use crate::worker::Worker;
use function::sbi::State;

telemetry::declare! {
    /// Gauges of the state.
    GAUGES;
    gauge LOAD = "signalbox_pcf_load_ratio" []: "Load of the busiest worker, from 0 to 1: its CPU time as a share of a core, or how near requests come to waiting for the target.";
    gauge BRAKED = "signalbox_pcf_audit_brake" []: "Whether the brake of the audit holds: 1, and associations stay that the audit would remove.";
    gauge STATE = "signalbox_pcf_state" []: "Operational state: 0 serving, 1 partial shutdown, 2 complete shutdown.",
        alert Alert::minor(When::Above(0.0), 30, "A shutdown in steps was begun and not finished; set the state back to serving, or stop the function.");
    gauge NOTIFICATIONS = "signalbox_pcf_notifications_pending" []: "Notifications that are pending.";
    gauge ACTIVITY = "signalbox_pcf_activity_entries" []: "Entries about traced subscribers in memory.";
    gauge ACTIVITY_BYTES = "signalbox_pcf_activity_bytes" []: "Bytes of the entries about traced subscribers in memory.";
    counter ACTIVITY_WRITTEN = "signalbox_pcf_activity_written_total" []: "Entries about traced subscribers that were written to files.";
    counter ACTIVITY_DROPPED = "signalbox_pcf_activity_dropped_total" []: "Entries about traced subscribers that were not written because too many were pending.";
    counter ACTIVITY_UNWRITTEN = "signalbox_pcf_activity_unwritten_total" []: "Entries about traced subscribers that were not written because the files cannot be (alarm 10561).";
    counter EVENTS_WRITTEN = "signalbox_pcf_policy_events_written_total" []: "Policy events that were written to files.";
    counter EVENTS_DROPPED = "signalbox_pcf_policy_events_dropped_total" []: "Policy events that were not written because too many were pending.";
    counter EVENTS_UNWRITTEN = "signalbox_pcf_policy_events_unwritten_total" []: "Policy events that were not written because the files cannot be (alarm 10561).";
    counter UNREADABLE = "signalbox_pcf_unreadable_associations_total" []: "How often a policy association was met that cannot be read (alarm 10563).";
    gauge RECORDS = "signalbox_pcf_records" ["table"]: "Records of each table of the store, a moment ago: associations with their AF sessions, quotas, state variables, Sy sessions, bindings, what is owed. A database estimates them.";
    gauge NOTIFICATION_BYTES = "signalbox_pcf_notifications_pending_bytes" []: "Bytes of the notifications that are pending.";
}

/// Associations on one page.
const SHOWN: usize = 100;
/// Associations of a subscriber that are explained.
const EXPLAINED: usize = 10;

const COLUMNS: &[(&str, &str)] = &[
    ("association", "/id"),
    ("kind", "/kind"),
    ("supi", "/supi"),
    ("dnn", "/dnn"),
    ("ipv4", "/ipv4Address"),
    ("ipv6", "/ipv6AddressPrefix"),
    ("rules", "/rules"),
    ("AF sessions", "/afSessions"),
];

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "sessions",
        about: "Some policy associations, a hundred at most",
        path: "/pcf/sessions",
        argument: None,
        columns: COLUMNS,
    },
    Page {
        name: "session",
        about: "One policy association as it is stored: context, decision, parts, usage (DELETE asks its consumer to end it, and removes one that cannot be read)",
        path: "/pcf/sessions/{}",
        argument: Some("ID"),
        columns: &[],
    },
    Page {
        name: "find",
        about: "Policy associations by SUPI, GPSI or address of the UE",
        path: "/pcf/find/{}",
        argument: Some("SUBSCRIBER"),
        columns: COLUMNS,
    },
    Page {
        name: "explain",
        about: "Which block of the policy project decides what for a subscriber, from which data: by SUPI, GPSI or address",
        path: "/pcf/explain/{}",
        argument: Some("SUBSCRIBER"),
        columns: &[
            ("association", "/association"),
            ("block", "/block"),
            ("kind", "/kind"),
            ("decided", "/decided"),
            ("outcome", "/outcome"),
            ("reads", "/reads"),
        ],
    },
    Page {
        name: "usage",
        about: "The quotas of a subscriber by SUPI: limits, what is left and used (DELETE opens them again from the policy data)",
        path: "/pcf/usage/{}",
        argument: Some("SUPI"),
        columns: &[],
    },
    variables::PAGE,
    Page {
        name: "activity",
        about: "What a traced subscriber has sent and got, what was decided and written: by SUPI, GPSI or association",
        path: "/pcf/activity/{}",
        argument: Some("SUBSCRIBER"),
        columns: &[
            ("time", "/time"),
            ("request", "/step"),
            ("what", "/what"),
            ("interface", "/interface"),
            ("message", "/text"),
            ("status", "/status"),
            ("peer", "/peer"),
            ("detail", "/detail"),
        ],
    },
    Page {
        name: "trace list",
        about: "Traced subscribers, and who has named them",
        path: "/pcf/trace",
        argument: None,
        columns: &[("subscriber", "/subscriber"), ("by", "/by")],
    },
    Page {
        name: "trace add",
        about: "Trace a subscriber: SUPI, GPSI, a beginning (imsi-00101*) or a range (imsi-1..imsi-9)",
        path: "/pcf/trace/{}",
        argument: Some("SUBSCRIBER"),
        columns: &[("subscriber", "/subscriber"), ("by", "/by")],
    },
    Page {
        name: "trace remove",
        about: "Trace a subscriber no more; its entries stay",
        path: "/pcf/trace/{}",
        argument: Some("SUBSCRIBER"),
        columns: &[("subscriber", "/subscriber"), ("by", "/by")],
    },
    Page {
        name: "trace show",
        about: "The activity of a traced subscriber with all contents, as JSON",
        path: "/pcf/activity/{}",
        argument: Some("SUBSCRIBER"),
        columns: &[],
    },
    Page {
        name: "unreadable",
        about: "Policy associations in the store that cannot be read, and why; reads all of them",
        path: "/pcf/unreadable",
        argument: None,
        columns: &[("association", "/id"), ("reason", "/reason")],
    },
    projects::PAGE,
    projects::ONE,
    bdt::PAGE,
    audit::PAGE,
    Page {
        name: "state",
        about: "Whether it serves or is being shut down (PUT \"SERVING\", \"PARTIAL\" or \"COMPLETE\" to change it), load",
        path: "/pcf/state",
        argument: None,
        columns: &[],
    },
];

/// A session that a reader may try.
const EXAMPLE: &str = r#"{"supi":"imsi-001010000000001","pduSessionId":1,"pduSessionType":"IPV4","dnn":"internet","notificationUri":"http://127.0.0.1:9/smf","sliceInfo":{"sst":1},"ipv4Address":"10.45.0.2"}"#;

/// Every metric of the PCF.
pub(crate) fn metrics() -> Vec<Declaration> {
    let own = [GAUGES, LATENCIES, &[DROPPED], &QUEUE.declarations()].concat();
    function::sbi::metrics_of::<Worker, Event>(&own, &ADMISSION)
}

pub(crate) fn hints(uri: &str) -> Vec<String> {
    vec![
        format!(
            "curl --http2-prior-knowledge {uri}/npcf-smpolicycontrol/v1/sm-policies -H 'content-type: application/json' -d '{EXAMPLE}'"
        ),
        "signalbox pcf sessions".to_owned(),
        "signalbox pcf explain imsi-001010000000001".to_owned(),
    ]
}

/// Shows the gauges.
pub(crate) fn observe(registry: &Registry, pcf: &Arc<Pcf>) {
    type Read = fn(&Pcf) -> f64;
    let gauges: [(&'static Declaration, Read); 14] = [
        (&BRAKED, |pcf| f64::from(u8::from(pcf.brake.holds()))),
        (&ACTIVITY, |pcf| pcf.activity.size().0 as f64),
        (&ACTIVITY_BYTES, |pcf| pcf.activity.size().1 as f64),
        (&ACTIVITY_WRITTEN, |pcf| count(&pcf.activity.counts().written)),
        (&ACTIVITY_DROPPED, |pcf| count(&pcf.activity.counts().dropped)),
        (&ACTIVITY_UNWRITTEN, |pcf| count(&pcf.activity.counts().unwritten)),
        (&EVENTS_WRITTEN, |pcf| count(&pcf.policy_events.counts().written)),
        (&EVENTS_DROPPED, |pcf| count(&pcf.policy_events.counts().dropped)),
        (&EVENTS_UNWRITTEN, |pcf| {
            count(&pcf.policy_events.counts().unwritten)
        }),
        (&LOAD, |pcf| f64::from(pcf.load()) / 100.0),
        (&STATE, |pcf| f64::from(pcf.state() as u8)),
        (&NOTIFICATIONS, |pcf| pcf.notifications().notifications as f64),
        (&NOTIFICATION_BYTES, |pcf| pcf.notifications().bytes as f64),
        (&UNREADABLE, |pcf| pcf.repository.unreadable().seen() as f64),
    ];
    let seen = Arc::downgrade(pcf);
    registry.observe_all(&RECORDS, move || {
        let counts = seen.upgrade().map(|pcf| pcf.records.lock().clone());
        let each = counts.unwrap_or_default().into_iter();
        each.map(|(table, count)| (vec![table.to_owned()], count as f64))
            .collect()
    });
    for (gauge, read) in gauges {
        let seen = Arc::downgrade(pcf);
        registry.observe(gauge, move || seen.upgrade().map_or(0.0, |pcf| read(&pcf)));
    }
}

fn count(count: &AtomicU64) -> f64 {
    count.load(Ordering::Relaxed) as f64
}

/// Serves [`PAGES`].
pub(crate) fn routes(pcf: &Weak<Pcf>) -> Router {
    let (all, one, searched) = (pcf.clone(), pcf.clone(), pcf.clone());
    let (explained, used, forgotten) = (pcf.clone(), pcf.clone(), pcf.clone());
    let (shown, changed, ended) = (pcf.clone(), pcf.clone(), pcf.clone());
    let broken = pcf.clone();
    let put_state = move |axum::Json(state): axum::Json<State>| async move {
        let Some(pcf) = changed.upgrade() else {
            return axum::Json(Value::Null).into_response();
        };
        let change = async move { pcf.set_state(state).await };
        answer_after(change, || state_of(&changed)).await
    };
    Router::new()
        .merge(traced::routes(pcf))
        .merge(audit::routes(pcf))
        .merge(bdt::routes(pcf))
        .merge(projects::routes(pcf))
        .merge(variables::routes(pcf))
        .route("/pcf/sessions", get(move || async move { sessions(&all).await }))
        .route(
            "/pcf/unreadable",
            get(move || async move { unreadable(&broken).await }),
        )
        .route(
            "/pcf/sessions/{id}",
            get(move |Path(id): Path<String>| async move { session(&one, &id).await })
                .delete(move |Path(id): Path<String>| async move { terminate(&ended, &id).await }),
        )
        .route(
            "/pcf/find/{subscriber}",
            get(move |Path(subscriber): Path<String>| async move { find(&searched, &subscriber).await }),
        )
        .route(
            "/pcf/explain/{subscriber}",
            get(move |Path(subscriber): Path<String>| async move { explain(&explained, &subscriber).await }),
        )
        .route(
            "/pcf/usage/{subscriber}",
            get(move |Path(subscriber): Path<String>| async move { usage(&used, &subscriber).await }).delete(
                move |Path(subscriber): Path<String>| async move { forget_usage(&forgotten, &subscriber).await },
            ),
        )
        .route(
            "/pcf/state",
            get(move || async move { axum::Json(state_of(&shown)) }).put(put_state),
        )
}

fn state_of(pcf: &Weak<Pcf>) -> Value {
    pcf.upgrade().map_or(
        Value::Null,
        |pcf| json!({"state": pcf.state(), "load": pcf.load()}),
    )
}

fn repository(pcf: &Weak<Pcf>) -> Option<Repository> {
    pcf.upgrade().map(|pcf| pcf.repository().clone())
}

fn unavailable(error: &store::Error) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
}

async fn sessions(pcf: &Weak<Pcf>) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!([])).into_response();
    };
    let scan = Scan::all(SHOWN).beside_unreadable();
    match repository.associations().scan(&scan).await {
        Ok(page) => {
            for one in &page.unreadable {
                repository.unreadable().note(one);
            }
            list(&page.records)
        }
        Err(error) => unavailable(&error),
    }
}

/// Reads all associations for those that cannot be read.
async fn unreadable(pcf: &Weak<Pcf>) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!([])).into_response();
    };
    match repository.find_unreadable().await {
        Ok(all) => {
            let line =
                |(id, reason): &(AssociationId, String)| json!({"id": id.to_string(), "reason": reason});
            axum::Json(all.iter().map(line).collect::<Value>()).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

fn list(found: &[Stored<Association>]) -> Response {
    let each = found.iter().take(SHOWN).map(|stored| line(&stored.record));
    axum::Json(each.collect::<Value>()).into_response()
}

/// An association as a line of a list.
fn line(association: &Association) -> Value {
    let decision = association.decision();
    let rules = decision.get("pccRules").and_then(Value::as_object);
    let rules: Vec<&str> = rules.into_iter().flatten().map(|(id, _)| id.as_str()).collect();
    let parts: Vec<&str> = association.parts.keys().map(String::as_str).collect();
    let mut line = json!({"id": association.id.to_string(), "kind": association.kind.name(),
        "rules": rules.join(" "), "afSessions": parts.join(" ")});
    for name in ["supi", "gpsi", "dnn", "ipv4Address", "ipv6AddressPrefix"] {
        if let Some(text) = association.text_of(name) {
            line[name] = json!(text);
        }
    }
    line
}

async fn session(pcf: &Weak<Pcf>, id: &str) -> Response {
    match stored(pcf, id).await {
        Ok(association) => {
            let mut shown = whole(&association);
            if let Some(repository) = repository(pcf)
                && let Ok(Some(binding)) = repository.binding(association.id).await
            {
                shown["bsfBinding"] = json!(binding.record);
            }
            axum::Json(shown).into_response()
        }
        Err(response) => response,
    }
}

/// The cause of an operator's request.
const CAUSE: &str = "UNSPECIFIED";

/// Asks the consumer of an association to end it (TS 29.512 §4.2.3.3).
async fn terminate(pcf: &Weak<Pcf>, id: &str) -> Response {
    let association = match stored(pcf, id).await {
        Ok(association) => association,
        Err(_) if is_unreadable(pcf, id).await => return discard(pcf, id).await,
        Err(response) => return response,
    };
    if let Some(pcf) = pcf.upgrade() {
        tracing::warn!(
            id,
            "an operator has asked the consumer of a policy association to end it"
        );
        let settings = &pcf.live.load().config;
        let due = notices::release_due(&settings.notifications, now_ms());
        let record = Unconfirmed::release(association.id, CAUSE, due);
        if let Err(error) = pcf.repository.owe(&record).await {
            return unavailable(&error);
        }
        pcf.notices.terminate(&association, CAUSE);
        if let Some(order) = pushes::gx_release(&settings.diameter, &association, CAUSE, 0)
            && !pcf.orders.send(0, order)
        {
            let text = "too many Diameter requests are queued; it is sent later\n";
            return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
    }
    axum::Json(line(&association)).into_response()
}

/// Whether an association is stored and cannot be read.
async fn is_unreadable(pcf: &Weak<Pcf>, id: &str) -> bool {
    let (Some(id), Some(repository)) = (AssociationId::parse(id), repository(pcf)) else {
        return false;
    };
    matches!(repository.get(id).await, Err(store::Error::Corrupt { .. }))
}

/// Deletes an association that cannot be read: its consumer is not known.
async fn discard(pcf: &Weak<Pcf>, id: &str) -> Response {
    let (Some(parsed), Some(repository)) = (AssociationId::parse(id), repository(pcf)) else {
        return (StatusCode::NOT_FOUND, "policy association not found\n").into_response();
    };
    match repository.discard(parsed).await {
        Ok(()) => {
            tracing::warn!(
                id,
                "an operator has deleted a policy association that cannot be read"
            );
            axum::Json(json!({"id": parsed.to_string(), "deleted": true})).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

async fn stored(pcf: &Weak<Pcf>, id: &str) -> Result<Association, Response> {
    let missing = || {
        let text = format!("policy association {id} does not exist\n");
        (StatusCode::NOT_FOUND, text).into_response()
    };
    let (Some(parsed), Some(repository)) = (AssociationId::parse(id), repository(pcf)) else {
        return Err(missing());
    };
    match repository.get(parsed).await {
        Ok(Some(stored)) => Ok(stored.record),
        Ok(None) => Err(missing()),
        Err(error) => Err(unavailable(&error)),
    }
}

/// An association with its whole decision.
fn whole(association: &Association) -> Value {
    let mut shown = serde_json::to_value(association).unwrap_or_default();
    shown["id"] = json!(association.id.to_string());
    shown["decision"] = Value::Object(association.decision());
    shown
}

/// Associations by SUPI, GPSI or address, whichever the text is.
async fn find(pcf: &Weak<Pcf>, subscriber: &str) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!([])).into_response();
    };
    match search(&repository, subscriber).await {
        Ok(found) => list(&found),
        Err(error) => unavailable(&error),
    }
}

/// The evaluation of each association of a subscriber, with a trace.
async fn explain(pcf: &Weak<Pcf>, subscriber: &str) -> Response {
    let Some(pcf) = pcf.upgrade() else {
        return axum::Json(json!([])).into_response();
    };
    let found = match search(&pcf.repository, subscriber).await {
        Ok(found) => found,
        Err(error) => return unavailable(&error),
    };
    let live = pcf.live.load();
    let mut lines = Vec::new();
    let decided = found.iter().filter(|stored| stored.record.kind != Kind::Tdf);
    for Stored { record, .. } in decided.take(EXPLAINED) {
        let ledger = match Ledger::subscriber_of(record) {
            Some(subscriber) => pcf.repository.ledger(subscriber).await.ok().flatten(),
            None => None,
        };
        let quotas = quotas::stored(record, ledger.as_ref().map(|stored| &stored.record));
        let shared = variables::of(&pcf.repository, &live.projects, record).await;
        let data = pds::stored(record);
        lines.extend(explain::lines(&live.projects, record, &data, &quotas, &shared));
    }
    axum::Json(lines).into_response()
}

/// The quotas of a subscriber, by limit.
async fn usage(pcf: &Weak<Pcf>, subscriber: &str) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!({})).into_response();
    };
    match repository.ledger(subscriber).await {
        Ok(Some(stored)) => axum::Json(stored.record.accounts.to_json()).into_response(),
        Ok(None) => no_quotas(subscriber),
        Err(error) => unavailable(&error),
    }
}

/// Opens the quotas of a subscriber again: the next event of a session has what is left of its policy data as they are then. The
/// portions that sessions use until then count.
async fn forget_usage(pcf: &Weak<Pcf>, subscriber: &str) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!({})).into_response();
    };
    for _ in 0..TRIES {
        let Stored { record, version, .. } = match repository.ledger(subscriber).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return no_quotas(subscriber),
            Err(error) => return unavailable(&error),
        };
        let mut reopened = record.clone();
        reopened.accounts.reopen();
        match repository.put_ledger(&reopened, version).await {
            Ok(true) => {
                tracing::warn!(
                    subscriber,
                    "an operator has opened the quotas of a subscriber again"
                );
                return axum::Json(record.accounts.to_json()).into_response();
            }
            Ok(false) => {}
            Err(error) => return unavailable(&error),
        }
    }
    let text = format!("sessions keep changing the quotas of {subscriber}; try again\n");
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

fn no_quotas(subscriber: &str) -> Response {
    let text = format!("there are no quotas of {subscriber}\n");
    (StatusCode::NOT_FOUND, text).into_response()
}

async fn search(repository: &Repository, subscriber: &str) -> Result<Vec<Stored<Association>>, store::Error> {
    if let Some(address) = UeAddress::parse(subscriber) {
        return repository.at(address, None).await;
    }
    let found = repository.of_supi(subscriber).await?;
    match found.is_empty() {
        true => repository.of_gpsi(subscriber).await,
        false => Ok(found),
    }
}
