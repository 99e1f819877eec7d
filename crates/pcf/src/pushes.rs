//! Diameter requests of ours: RAR of Gx to PCEFs, RAR and ASR of Rx to AFs.

use diameter::proto::MessageBuilder;
use diameter::proto::known::{self, application, command};
use pcc::gx::put_change;
use pcc::rx::{put_abort, put_notification};
use serde_json::Value;

use crate::association::Association;
use crate::association::af::AfSession;
use crate::association::gx::PcefSession;
use crate::events::Event;
use crate::orders::{Order, Then};
use crate::worker::Worker;

/// The decision of a session has changed: its PCEF gets a RAR (TS 29.212 §4.5.2).
pub(crate) fn gx_update(worker: &Worker, before: &Association, after: &Association) {
    let (has, shall) = (Value::Object(before.decision()), Value::Object(after.decision()));
    gx_re_auth(worker, after, |message| put_change(message, &has, &shall));
}

fn gx_re_auth(worker: &Worker, association: &Association, fill: impl FnOnce(&mut MessageBuilder)) {
    let Some(session) = PcefSession::get(association) else {
        return;
    };
    let settings = &worker.config().diameter;
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
    let before = message.as_bytes().len();
    fill(&mut message);
    if message.as_bytes().len() == before {
        return;
    }
    let Ok(message) = message.finish() else { return };
    worker.count(Event::GxReAuth);
    worker.send(Order {
        peer: session.peer,
        message,
        then: Then::Gx(association.id),
        tried: 0,
    });
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
    fill(&mut message);
    Some(Order {
        peer: rx.peer.clone(),
        message: message.finish().ok()?,
        then: Then::Rx,
        tried: 0,
    })
}
