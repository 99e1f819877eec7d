//! Diameter requests of ours: RAR of Gx to PCEFs, RAR and ASR of Rx to AFs.

use std::time::Duration;

use diameter::proto::known::{self, application, command};
use diameter::proto::{Message, MessageBuilder};
use pcc::gx::{put_change, put_release, put_restoration};
use pcc::rx::{put_abort, put_notification};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::association::Association;
use crate::association::af::AfSession;
use crate::association::gx::{self as session, PcefSession};
use crate::config::Diameter;
use crate::events::Event;
use crate::notices::attempts_end;
use crate::orders::{Order, Push, Then, What};
use crate::sources::now_ms;
use crate::worker::Worker;

/// When no attempt of a RAR of now is in flight any more, in milliseconds since 1970.
pub(crate) fn chain_end(worker: &Worker) -> u64 {
    let settings = &worker.config().diameter;
    let pauses = (settings.retry_pause, settings.max_retry_pause);
    attempts_end(now_ms(), (settings.attempts, settings.timeout.duration()), pauses)
}

/// The decision of a session has changed: its PCEF gets a RAR (TS 29.212 §4.5.2). Where it is open what the PCEF has, it gets
/// all of the decision.
/// `record` is the one that was written with the change.
pub(crate) fn gx_update(worker: &Worker, before: &Association, after: &Association, record: Option<u64>) {
    let shall = Value::Object(after.decision());
    let removed = session::removed(before, after);
    let (has, what) = match session::may_have(before, after) {
        Some(stale) => (stale, whole(after, removed)),
        None => (Value::Object(before.decision()), What::Change { removed }),
    };
    let push = Push {
        id: after.id,
        what,
        attempt: 0,
        record,
        rules: session::provided(before, after),
    };
    let fill = |message: &mut MessageBuilder| put_change(message, &has, &shall);
    let order = re_auth(&worker.config().diameter, after, push, fill);
    if let Some(number) = record.filter(|_| order.is_none()) {
        // Gx has nothing of what has changed.
        let (repository, id) = (worker.repository().clone(), after.id);
        tokio::task::spawn_local(async move { repository.confirm(id, number).await });
    }
    send(worker, order);
}

fn whole(association: &Association, removed: Value) -> What {
    let doubts = PcefSession::get(association).map_or(0, |session| session.doubts);
    What::Whole { removed, doubts }
}

/// The PCEF of a session gets all of the decision, after a RAR that was not answered, which was to provide these rules.
pub(crate) fn gx_whole(
    worker: &Worker,
    association: &Association,
    attempt: u32,
    record: Option<u64>,
    rules: Vec<String>,
) {
    let Some(stale) = session::may_have(association, association) else {
        return;
    };
    let shall = Value::Object(association.decision());
    let push = Push {
        id: association.id,
        what: whole(association, Value::Null),
        attempt,
        record,
        rules,
    };
    let fill = |message: &mut MessageBuilder| put_change(message, &stale, &shall);
    send(
        worker,
        re_auth(&worker.config().diameter, association, push, fill),
    );
}

/// The PCEF of a session shall end it (TS 29.212 §4.5.9).
pub(crate) fn gx_release(
    settings: &Diameter,
    association: &Association,
    cause: &str,
    attempt: u32,
) -> Option<Order> {
    let push = Push {
        id: association.id,
        what: What::Release {
            cause: cause.to_owned(),
        },
        attempt,
        record: None,
        rules: Vec::new(),
    };
    re_auth(settings, association, push, |message| put_release(message, cause))
}

/// The PCEF of a session shall have the UE choose another P-CSCF.
pub(crate) fn gx_restore(worker: &Worker, association: &Association, attempt: u32) {
    let push = Push {
        id: association.id,
        what: What::Restoration,
        attempt,
        record: None,
        rules: Vec::new(),
    };
    let settings = &worker.config().diameter;
    send(
        worker,
        re_auth(settings, association, push, |message| put_restoration(message)),
    );
}

fn send(worker: &Worker, order: Option<Order>) {
    if let Some(order) = order {
        worker.count(Event::GxReAuth);
        worker.send(order);
    }
}

/// A Re-Auth-Request; none where `fill` writes nothing.
fn re_auth(
    settings: &Diameter,
    association: &Association,
    push: Push,
    fill: impl FnOnce(&mut MessageBuilder),
) -> Option<Order> {
    let session = PcefSession::get(association)?;
    let mut message = re_auth_head(settings, &session);
    let before = message.as_bytes().len();
    fill(&mut message);
    if message.as_bytes().len() == before {
        return None;
    }
    Some(Order {
        peer: Some(session.peer),
        message: message.finish().ok()?,
        timeout: settings.timeout.duration(),
        then: Then::Gx(push),
        tried: 0,
    })
}

/// What each Re-Auth-Request to a PCEF has.
fn re_auth_head(settings: &Diameter, session: &PcefSession) -> MessageBuilder {
    let mut message = MessageBuilder::request(command::RE_AUTH, application::GX);
    message
        .put(known::SESSION_ID, &session.session_id)
        .put(known::AUTH_APPLICATION_ID, application::GX)
        .put(known::ORIGIN_HOST, &settings.host)
        .put(known::ORIGIN_REALM, &settings.realm)
        .put(known::DESTINATION_REALM, &session.realm)
        .put(known::DESTINATION_HOST, &session.host)
        // AUTHORIZE_ONLY (RFC 6733 §8.12).
        .put(known::RE_AUTH_REQUEST_TYPE, 0);
    message
}

/// Sends a PCEF a Re-Auth-Request without a change, which shows whether it has the session; none: no answer
/// has come in time.
pub(crate) async fn gx_question(worker: &Worker, session: PcefSession, timeout: Duration) -> Option<Message> {
    let message = re_auth_head(&worker.config().diameter, &session).finish().ok()?;
    let (sender, answer) = oneshot::channel();
    worker.send(Order {
        peer: Some(session.peer),
        message,
        timeout,
        then: Then::Reply(sender),
        tried: 0,
    });
    tokio::time::timeout(timeout, answer).await.ok()?.ok()
}

/// Re-Auth-Request with what an AF hears (TS 29.214 §4.4.6); none where Rx has no such event.
pub(crate) fn rx_notify(
    worker: &Worker,
    association: &Association,
    session: &AfSession,
    notification: &Value,
) -> Option<Order> {
    let mut any = false;
    let order = rx_order(worker, session, command::RE_AUTH, |message| {
        any = put_notification(message, notification, &association.context);
    });
    order.filter(|_| any)
}

/// Abort-Session-Request (TS 29.214 §4.4.6.1).
pub(crate) fn rx_abort(worker: &Worker, session: &AfSession, cause: &str) -> Option<Order> {
    rx_order(worker, session, command::ABORT_SESSION, |message| {
        put_abort(message, cause);
    })
}

fn rx_order(
    worker: &Worker,
    session: &AfSession,
    code: u32,
    fill: impl FnOnce(&mut MessageBuilder),
) -> Option<Order> {
    let rx = session.rx.as_ref()?;
    let settings = &worker.config().diameter;
    let mut message = MessageBuilder::request(code, application::RX);
    message
        .put(known::SESSION_ID, &rx.session)
        .put(known::ORIGIN_HOST, &settings.host)
        .put(known::ORIGIN_REALM, &settings.realm)
        .put(known::DESTINATION_REALM, &rx.realm)
        .put(known::DESTINATION_HOST, &rx.host)
        .put(known::AUTH_APPLICATION_ID, application::RX);
    if code == command::RE_AUTH {
        // AUTHORIZE_ONLY. TS 29.214 §5.6.5 does not list it, AFs with the command of RFC 6733 §8.3.1 require it.
        message.put(known::RE_AUTH_REQUEST_TYPE, 0);
    }
    fill(&mut message);
    Some(Order {
        peer: Some(rx.peer.clone()),
        message: message.finish().ok()?,
        timeout: settings.timeout.duration(),
        then: Then::Rx(None),
        tried: 0,
    })
}
