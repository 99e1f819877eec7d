//! What AFs hear of the sessions that theirs are bound to: events (TS 29.514 §4.2.8, TS 29.214 §4.4.6) and their end.

use pcc::event;
use serde_json::{Value, json};

use crate::association::Association;
use crate::association::af::{self, AfSession};
use crate::events::Event;
use crate::notices::APP_SESSIONS;
use crate::orders::Order;
use crate::pushes;
use crate::worker::Worker;

/// An SMF or PCEF has reported something: the AF sessions of the association hear what they are subscribed to, those that
/// have no rule left also that they end.
pub(crate) fn reported(worker: &Worker, before: &Association, after: &Association, report: &Value) {
    let lost = af::lost(before, report);
    for session in af::sessions(before) {
        if let Some(notification) = event::notification(&session.id, &session.pending(), report) {
            worker.count(Event::AfNotified);
            notify(worker, after, &session, notification);
        }
        if !session.ending && lost.iter().any(|lost| lost.id == session.id) {
            let cause = event::termination_cause(&session.id, report);
            terminate(worker, after, &session, cause);
        }
    }
}

/// Rules are not in effect, since the SMF or PCEF has not accepted them in any attempt: AF sessions hear of a failed allocation of
/// resources. They stay, for the consumer gets its whole decision as soon as it answers again.
pub(crate) fn failed(worker: &Worker, association: &Association, rules: &[String]) {
    let report = json!({"ruleReports": [
        {"pccRuleIds": rules, "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"},
    ]});
    for session in af::sessions(association) {
        if let Some(notification) = event::notification(&session.id, &session.request, &report) {
            worker.count(Event::AfNotified);
            notify(worker, association, &session, notification);
        }
    }
}

/// The association has ended, and its AF sessions with it.
pub(crate) fn ended(worker: &Worker, association: &Association) {
    ended_by(worker, association, &Value::Null);
}

/// As [`ended`], by a report of its consumer, which may say that the calls have gone to the circuit switched domain
/// (`pduSessRelCause`, TS 29.512 §5.6.3.24; TS 29.214 §5.3.1, TS 29.514 §5.6.3.10).
pub(crate) fn ended_by(worker: &Worker, association: &Association, report: &Value) {
    const HANDED_OVER: &str = "PS_TO_CS_HO";
    let is_handed_over = report.get("pduSessRelCause").and_then(Value::as_str) == Some(HANDED_OVER);
    // One that was asked to end its session for a report of before is not asked again.
    for session in af::sessions(association).filter(|session| !session.ending) {
        let is_own = event::termination_cause(&session.id, report) == HANDED_OVER;
        let cause = match is_handed_over || is_own {
            true => HANDED_OVER,
            false => "PDU_SESSION_TERMINATION",
        };
        terminate(worker, association, &session, cause);
    }
}

fn notify(worker: &Worker, association: &Association, session: &AfSession, mut notification: Value) {
    if session.rx.is_some() {
        if let Some(order) = pushes::rx_notify(worker, association, session, &notification) {
            send(worker, order);
        }
        return;
    }
    let subscription = session.request.get("evSubsc").unwrap_or(&Value::Null);
    let own = subscription
        .get("notifUri")
        .or_else(|| session.request.get("notifUri"));
    notification["evSubsUri"] = format!("{}/events-subscription", uri(worker, association, session)).into();
    post(worker, session, own, "notify", &notification);
}

fn terminate(worker: &Worker, association: &Association, session: &AfSession, cause: &str) {
    worker.count(Event::AfTerminated);
    if session.rx.is_some() {
        if let Some(order) = pushes::rx_abort(worker, session, cause) {
            send(worker, order);
        }
        return;
    }
    let body = json!({"termCause": cause, "resUri": uri(worker, association, session)});
    post(
        worker,
        session,
        session.request.get("notifUri"),
        "terminate",
        &body,
    );
}

fn uri(worker: &Worker, association: &Association, session: &AfSession) -> String {
    let id = af::name(association, session);
    format!("{}{APP_SESSIONS}/{id}", worker.root())
}

fn post(worker: &Worker, session: &AfSession, base: Option<&Value>, what: &str, body: &Value) {
    if let Some(base) = base.and_then(Value::as_str) {
        worker.notices().application(&session.id, base, what, body);
    }
}

fn send(worker: &Worker, order: Order) {
    worker.send(order);
}
