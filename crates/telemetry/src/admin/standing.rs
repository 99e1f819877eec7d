//! `/status` and `/journal`: how a function is doing, with the remedy for what is wrong, and what has changed in it.

use std::net::SocketAddr;
use std::time::SystemTime;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Admin, Shared};
use crate::alarms::{Alarm, rfc3339};
use crate::dependency::Standing;
use crate::journal::{Entry, Journal, Kind};
use crate::severity::Severity;

/// Alarms that `/readyz` names at most: more say nothing more to a probe.
const MOST_NAMED: usize = 10;

/// The address of the client of a request, where the server knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client(pub(super) SocketAddr);

/// Something that is wrong.
#[derive(Clone, Debug, Serialize)]
struct Wrong {
    /// Component, dependency or alarm.
    what: String,
    /// Why, in words.
    detail: String,
    /// What to do.
    remedy: String,
}

/// Active alarms that impair service, the worst first.
fn impairing(admin: &Admin) -> Vec<Alarm> {
    let active = admin
        .alarms
        .as_ref()
        .map(crate::Alarms::active)
        .unwrap_or_default();
    let impairs = |alarm: &Alarm| alarm.severity >= Severity::Major;
    active.into_iter().filter(impairs).collect()
}

/// The lines of `/readyz` about active alarms: a function that serves says what is impaired.
pub(super) fn alarm_lines(admin: &Admin) -> Vec<String> {
    let all = impairing(admin);
    let line = |alarm: &Alarm| {
        let Alarm {
            number,
            name,
            instance,
            detail,
            ..
        } = alarm;
        let severity = alarm.severity;
        let text = format!("alarm {number} {name} ({severity}, {instance}): {detail}");
        text.replace(['\n', '\r'], " ")
    };
    let mut lines: Vec<String> = all.iter().take(MOST_NAMED).map(line).collect();
    if all.len() > MOST_NAMED {
        lines.push(format!("{} further alarms: /alarms", all.len() - MOST_NAMED));
    }
    lines
}

fn wrongs(admin: &Admin, alarms: &[Alarm], configuration: &Value) -> Vec<Wrong> {
    let health = &admin.health;
    let mut wrong = Vec::new();
    let mut add = |what: String, detail: String, remedy: &str| {
        let remedy = remedy.to_owned();
        wrong.push(Wrong { what, detail, remedy });
    };
    for (name, reason) in health.not_alive() {
        add(name, reason, "Restart the process: a thread of it hangs.");
    }
    // The alarm about the same thing has the remedy that fits.
    let advice = |name: &str| {
        let fits = |alarm: &&Alarm| name == alarm.instance || name.ends_with(&format!(" {}", alarm.instance));
        let known = alarms.iter().find(fits).map(|alarm| alarm.advice);
        known.unwrap_or("Repair what the reason names; it clears by itself.")
    };
    let failing: Vec<_> = health.dependencies();
    let failing: Vec<_> = failing
        .iter()
        .filter(|one| one.state == Standing::Failing)
        .collect();
    for (name, reason) in health.not_ready() {
        let remedy = match (name.as_str(), reason.as_str()) {
            ("start", _) | (_, "starting") => "Wait until it has started; the log says what it waits for.",
            ("process", _) => "It stops, as it was asked to.",
            _ => advice(&name),
        };
        add(name, reason, remedy);
    }
    let not_ready = health.not_ready();
    for (name, reason) in health.remarks() {
        if not_ready.contains_key(&name) {
            continue;
        }
        let remedy = match failing.iter().any(|one| one.name == name) {
            true => "Check that it runs and that this machine reaches it; requests to it are repeated.",
            false => advice(&name),
        };
        add(name, reason, remedy);
    }
    for alarm in alarms {
        let what = format!("alarm {} {}, {}", alarm.number, alarm.name, alarm.instance);
        add(what, alarm.detail.clone(), alarm.advice);
    }
    if configuration["inEffect"] == Value::Bool(false) {
        let detail = configuration["detail"].as_str().unwrap_or_default();
        let remedy =
            "Check the file (`signalbox check`), then reload it; what needs a restart takes effect with one.";
        add("configuration".to_owned(), detail.to_owned(), remedy);
    }
    wrong
}

/// How the function is doing.
pub(super) async fn status(State(admin): Shared) -> Json<Value> {
    let configuration = admin.configuration.as_ref().map_or(Value::Null, |known| known());
    let alarms = impairing(&admin);
    let wrong = wrongs(&admin, &alarms, &configuration);
    let health = &admin.health;
    let (alive, ready) = (health.not_alive().is_empty(), health.not_ready().is_empty());
    let state = match (alive, ready, wrong.is_empty()) {
        (false, ..) => "NOT ALIVE",
        (_, false, _) if health.is_stopping() => "stopping",
        (_, false, _) => "NOT READY",
        (_, _, false) => "serves, needs attention",
        _ => "serves",
    };
    let up_since = SystemTime::now().checked_sub(health.age()).map(rfc3339);
    let dependencies = health.dependencies();
    let registered = dependencies.iter().find(|one| one.name == super::REGISTRATION);
    Json(json!({
        "function": admin.function,
        "state": state,
        "alive": alive,
        "ready": ready,
        "wrong": wrong,
        "version": admin.release,
        "process": std::process::id(),
        "upSince": up_since,
        "registered": registered,
        "dependencies": dependencies,
        "configuration": configuration,
        "alarms": admin.alarms.as_ref().map(crate::Alarms::active).unwrap_or_default(),
        "lastChange": admin.journal().and_then(|journal| journal.last()),
    }))
}

/// Which entries of the journal are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    /// Only those after this number.
    after: u64,
}

/// What has changed, the oldest first.
pub(super) async fn journal(State(admin): Shared, Query(wanted): Query<Wanted>) -> Json<Vec<Entry>> {
    Json(
        admin
            .journal()
            .map(|journal| journal.after(wanted.after))
            .unwrap_or_default(),
    )
}

/// Who sent a request, as far as a request without credentials shows it.
pub(super) fn sender(request: &Request) -> String {
    let client = request.extensions().get::<Client>();
    let address = client.map_or_else(|| "the admin endpoint".to_owned(), |client| client.0.to_string());
    let agent = request.headers().get(header::USER_AGENT);
    match agent.and_then(|agent| agent.to_str().ok()) {
        Some(agent) => format!("{address} ({})", agent.chars().take(100).collect::<String>()),
        None => address,
    }
}

/// Records what operators change at the endpoint. A reload records itself, with what it has changed.
pub(super) async fn record(State(journal): State<Journal>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || request.uri().path() == "/config/reload" {
        return next.run(request).await;
    }
    let by = sender(&request);
    let about = format!("{} {}", request.method(), request.uri());
    let answer = next.run(request).await;
    let detail = format!("answered {}", answer.status());
    journal.record_by(Kind::Operator, &about, &detail, &by);
    answer
}
