//! What AFs hear of the sessions that theirs are bound to: events (TS 29.514 §4.2.8, TS 29.214 §4.4.6) and their end. Each message is
//! written with the change that it is about, sent when that is durable, and stands in the store until the AF has answered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use diameter::proto::known;
use diameter::proto::{Message, MessageMut};
use pcc::event;
use serde_json::{Value, json};

use crate::association::af::{self, AfSession};
use crate::association::af_message::{AfInterface, AfMessage};
use crate::association::ledger::Draft;
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId};
use crate::events::Event;
use crate::notices::{self, APP_SESSIONS};
use crate::orders::{Order, Then};
use crate::pushes;
use crate::sources::now_ms;
use crate::worker::Worker;

/// An SMF or PCEF reports something: the AF sessions of the association hear what they are subscribed to, those that
/// have no rule left also that they end. To be called before the report changes the sessions.
pub(crate) fn plan(worker: &Worker, association: &Association, report: &Value, draft: &mut Draft) {
    let lost = af::lost(association, report);
    for session in af::sessions(association) {
        if let Some(notification) = event::notification(&session.id, &session.pending(), report) {
            let message = notification_of(worker, association, &session, notification);
            owe(worker, association, message, draft);
        }
        if !session.ending && lost.iter().any(|lost| lost.id == session.id) {
            let cause = event::termination_cause(&session.id, report);
            owe(
                worker,
                association,
                end_of(worker, association, &session, cause),
                draft,
            );
        }
    }
}

/// The association ends, by a report of its consumer where there is one, and its AF sessions with it. The report may say that the
/// calls have gone to the circuit switched domain (`pduSessRelCause`, TS 29.512 §5.6.3.24; TS 29.214 §5.3.1, TS 29.514 §5.6.3.10).
pub(crate) fn plan_end(worker: &Worker, association: &Association, report: &Value, draft: &mut Draft) {
    const HANDED_OVER: &str = "PS_TO_CS_HO";
    let is_handed_over = report.get("pduSessRelCause").and_then(Value::as_str) == Some(HANDED_OVER);
    // One that was asked to end its session for a report of before is not asked again.
    for session in af::sessions(association).filter(|session| !session.ending) {
        let is_own = event::termination_cause(&session.id, report) == HANDED_OVER;
        let cause = match is_handed_over || is_own {
            true => HANDED_OVER,
            false => "PDU_SESSION_TERMINATION",
        };
        owe(
            worker,
            association,
            end_of(worker, association, &session, cause),
            draft,
        );
    }
}

fn owe(worker: &Worker, association: &Association, message: Option<AfMessage>, draft: &mut Draft) {
    let Some(message) = message else { return };
    // Messages of one change stay in their order.
    let order = u64::try_from(draft.owed.len()).unwrap_or_default();
    draft.owed.push(Unconfirmed {
        due: due(worker, &message).saturating_add(order),
        id: association.id,
        number: worker.random().next(),
        removed: Value::Null,
        taken: 0,
        release: None,
        af: Some(message),
    });
}

/// When no attempt of a message of now is in flight any more, in milliseconds since 1970.
pub(crate) fn due(worker: &Worker, message: &AfMessage) -> u64 {
    let now = now_ms();
    match &message.by {
        AfInterface::N5(..) | AfInterface::Bdt(..) => notices::chain_end(&worker.config().notifications, now),
        AfInterface::Rx(..) => {
            let timeout = worker.config().diameter.timeout.duration();
            now.saturating_add(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
                .saturating_add(1_000)
        }
    }
}

/// Sends the messages of a change that is written.
pub(crate) fn send(worker: &Worker, draft: &Draft) {
    for one in &draft.owed {
        if let Some(message) = &one.af {
            if !message.ends {
                worker
                    .notices()
                    .removals
                    .note_events(one.id, &message.session, one.number);
            }
            deliver(worker, message, (one.id, Some(one.number)));
        }
    }
}

/// Rules are not in effect, since the SMF or PCEF has not accepted them in any attempt: AF sessions hear of a failed allocation of
/// resources. They stay, for the consumer gets its whole decision as soon as it answers again.
pub(crate) async fn failed(worker: &Worker, association: &Association, rules: &[String]) {
    let report = json!({"ruleReports": [
        {"pccRuleIds": rules, "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"},
    ]});
    let mut draft = Draft::default();
    for session in af::sessions(association) {
        if let Some(notification) = event::notification(&session.id, &session.request, &report) {
            let message = notification_of(worker, association, &session, notification);
            owe(worker, association, message, &mut draft);
        }
    }
    for one in &draft.owed {
        if let Err(error) = worker.repository().owe(one).await {
            tracing::warn!(%error, id = %one.id, "a message to an AF is sent without being kept in the store");
        }
    }
    send(worker, &draft);
}

/// Sends a message about an association, which has this record.
pub(crate) fn deliver(worker: &Worker, message: &AfMessage, (id, record): (AssociationId, Option<u64>)) {
    worker.count(match (&message.by, message.ends) {
        (AfInterface::Bdt(..), _) => Event::BdtWarned,
        (_, true) => Event::AfTerminated,
        (_, false) => Event::AfNotified,
    });
    match &message.by {
        AfInterface::N5(uri, body) => {
            let what = match message.ends {
                true => "terminate",
                false => "notify",
            };
            worker
                .notices()
                .application((&message.session, uri), what, body, (id, record));
        }
        AfInterface::Bdt(uri, body) => {
            worker
                .notices()
                .warning((&message.session, uri), body, (id, record));
        }
        AfInterface::Rx(peer, encoded) => {
            let bytes = STANDARD.decode(encoded).unwrap_or_default();
            let Ok(message) = MessageMut::parse(BytesMut::from(bytes.as_slice())) else {
                return;
            };
            worker.send(Order {
                peer: Some(peer.clone()),
                message,
                timeout: worker.config().diameter.timeout.duration(),
                then: Then::Rx(record.map(|number| (id, number))),
                tried: 0,
            });
        }
    }
}

/// The answer to a request over Rx: what the AF itself has answered, whatever it says, is not sent again.
pub(crate) async fn answered(
    worker: &Worker,
    record: Option<(AssociationId, u64)>,
    answer: Option<&Message>,
) {
    let (Some((id, number)), Some(answer)) = (record, answer) else {
        return;
    };
    let code = answer.get(known::RESULT_CODE).ok().flatten();
    // An agent answers for an AF that it does not reach (RFC 6733 §7.1.3).
    if code.is_some_and(|code| (3_000..4_000).contains(&code)) {
        return;
    }
    if let Err(error) = worker.repository().confirm(id, number).await {
        tracing::debug!(%error, %id, "a message to an AF is not noted as confirmed");
    }
}

fn notification_of(
    worker: &Worker,
    association: &Association,
    session: &AfSession,
    mut notification: Value,
) -> Option<AfMessage> {
    if session.rx.is_some() {
        return over_rx(
            session,
            false,
            pushes::rx_notify(worker, association, session, &notification),
        );
    }
    notification["evSubsUri"] = format!("{}/events-subscription", uri(worker, association, session)).into();
    over_n5(session, false, notification)
}

fn end_of(worker: &Worker, association: &Association, session: &AfSession, cause: &str) -> Option<AfMessage> {
    if session.rx.is_some() {
        return over_rx(session, true, pushes::rx_abort(worker, session, cause));
    }
    let body = json!({"termCause": cause, "resUri": uri(worker, association, session)});
    over_n5(session, true, body)
}

fn over_rx(session: &AfSession, ends: bool, order: Option<Order>) -> Option<AfMessage> {
    let order = order?;
    Some(AfMessage {
        session: session.id.clone(),
        ends,
        by: AfInterface::Rx(order.peer?, STANDARD.encode(order.message.as_bytes())),
    })
}

/// `None`: the AF has no subscription to events.
fn over_n5(session: &AfSession, ends: bool, body: Value) -> Option<AfMessage> {
    let own = session.request.get("notifUri");
    let base = match ends {
        true => own,
        false => session.request.get("evSubsc")?.get("notifUri").or(own),
    };
    Some(AfMessage {
        session: session.id.clone(),
        ends,
        by: AfInterface::N5(base?.as_str()?.to_owned(), body),
    })
}

/// A message of before to where its AF is notified now.
pub(super) fn readdressed(message: &AfMessage, session: &AfSession) -> Option<AfMessage> {
    match &message.by {
        AfInterface::N5(_, body) => over_n5(session, message.ends, body.clone()),
        AfInterface::Rx(..) | AfInterface::Bdt(..) => Some(message.clone()),
    }
}

fn uri(worker: &Worker, association: &Association, session: &AfSession) -> String {
    let id = af::name(association, session);
    format!("{}{APP_SESSIONS}/{id}", worker.root())
}
