//! Requests of ours to TDFs (TS 29.212 §4b.5.1, §4b.5.2): which one a session needs is planned in the write of its
//! association, and sent after it.

use diameter::proto::MessageBuilder;
use diameter::proto::known::{self, application, command};
use serde_json::Value;

use crate::association::sd::{State, TdfSession};
use crate::association::{Association, Kind};
use crate::config::{SdSessions, Tdf};
use crate::events::Event;
use crate::orders::{Detection, Order, Then};
use crate::sources::signed_now_ms;
use crate::worker::Worker;

/// When a request of now is overdue, so that a sweep takes it up.
pub(crate) fn overdue(worker: &Worker) -> i64 {
    let timeout = worker.config().diameter.timeout.duration();
    let twice = i64::try_from(timeout.as_millis().saturating_mul(2)).unwrap_or(i64::MAX);
    signed_now_ms().saturating_add(twice)
}

/// Plans what the TDF of a session is to be sent for what was decided: TSR, RAR or nothing.
pub(crate) fn plan(worker: &Worker, association: &mut Association) {
    let Some(mut session) = TdfSession::get(association).filter(|session| session.in_flight.is_none()) else {
        return;
    };
    match session.state {
        State::Idle if !session.shall.is_null() => {
            let Some(tdf) = select(worker, association) else {
                return;
            };
            let random = worker.random().next();
            // RFC 6733 §8.8.
            session.session_id = format!(
                "{};{};{};sd",
                worker.config().diameter.host,
                random >> 32,
                random as u32
            );
            (session.host, session.realm, session.state) = (tdf.host, tdf.realm, State::Opening);
        }
        State::Open if session.has != session.shall => {}
        _ => return,
    }
    session.expect(overdue(worker));
    session.put(association);
}

/// The TDF of a session: the one that its PCEF names, that of its APN, that of all (TS 29.212 §4b.5.1).
fn select(worker: &Worker, association: &Association) -> Option<Tdf> {
    let config = worker.config();
    let settings = &config.sd;
    let kind = match association.kind {
        Kind::Gx => SdSessions::Gx,
        Kind::Sm => SdSessions::N7,
        _ => return None,
    };
    if !settings.enabled || !settings.sessions.contains(&kind) {
        return None;
    }
    let named = association.context.get("gx").and_then(|gx| gx.get("tdf"));
    let named = named.filter(|_| settings.tdf_information).and_then(|tdf| {
        let realm = tdf.get("realm").and_then(Value::as_str).unwrap_or_default();
        Some(Tdf {
            host: tdf.get("host")?.as_str()?.to_owned(),
            realm: realm.to_owned(),
        })
    });
    let apn = association
        .text_of("dnn")
        .and_then(|dnn| {
            settings
                .apns
                .iter()
                .find(|(apn, _)| apn.eq_ignore_ascii_case(dnn))
        })
        .map(|(_, tdf)| tdf.clone());
    let mut tdf = named.or(apn).or_else(|| settings.tdf.clone())?;
    if tdf.realm.is_empty() {
        tdf.realm.clone_from(&config.diameter.realm);
    }
    Some(tdf)
}

/// Sends what was planned in a write.
pub(crate) fn begin(worker: &Worker, before: Option<&Association>, after: &Association) {
    let Some(session) = TdfSession::get(after) else {
        return;
    };
    let earlier = before.and_then(TdfSession::get).unwrap_or_default();
    let Some(planned) = &session.in_flight else { return };
    if planned.serial == earlier.serial {
        return;
    }
    let has = match session.is_in_doubt {
        true => session.stale.clone(),
        false => earlier.has,
    };
    send(worker, after, &session, &has);
}

/// Sends the request of a session that is in flight, for a TDF that has `has`.
pub(crate) fn send(worker: &Worker, association: &Association, session: &TdfSession, has: &Value) {
    let Some(planned) = &session.in_flight else { return };
    let settings = &worker.config().diameter;
    let opens = session.state == State::Opening;
    let code = if opens {
        command::TDF_SESSION
    } else {
        command::RE_AUTH
    };
    let mut message = MessageBuilder::request(code, application::SD);
    message
        .put(known::SESSION_ID, &session.session_id)
        .put(known::AUTH_APPLICATION_ID, application::SD)
        .put(known::ORIGIN_HOST, &settings.host)
        .put(known::ORIGIN_REALM, &settings.realm)
        .put(known::DESTINATION_REALM, &session.realm)
        .put(known::DESTINATION_HOST, &session.host);
    match session.state {
        State::Opening => {
            pcc::sd::put_session(&mut message, &association.context);
            pcc::sd::put_change(&mut message, &Value::Null, &session.has);
        }
        State::Closing => {
            // AUTHORIZE_ONLY (RFC 6733 §8.12).
            message.put(known::RE_AUTH_REQUEST_TYPE, 0);
            pcc::gx::put_release(&mut message, "UNSPECIFIED");
        }
        _ => {
            message.put(known::RE_AUTH_REQUEST_TYPE, 0);
            pcc::sd::put_change(&mut message, has, &session.has);
        }
    }
    let Ok(message) = message.finish() else { return };
    worker.count(if opens { Event::SdOpened } else { Event::SdReAuth });
    worker.send(Order {
        peer: Some(session.host.clone()),
        message,
        timeout: settings.timeout.duration(),
        then: Then::Sd(Detection {
            id: association.id,
            serial: planned.serial,
        }),
        tried: 0,
    });
}
