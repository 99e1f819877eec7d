//! Policy counters of subscribers at OCSs: the requests of Sy (TS 29.219).

use std::time::{Duration, Instant};

use diameter::proto::known::{self, application, command};
use diameter::proto::{Message, MessageBuilder, ResultCode};
use pcc::sy::{RequestKind, put_request, read_status};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::association::sy::SySession;
use crate::association::{Association, Kind};
use crate::config::SySessions;
use crate::events::Event;
use crate::orders::{Order, Then};
use crate::worker::Worker;

/// DIAMETER_LOGOUT (RFC 6733 §8.15).
const LOGOUT: i32 = 1;
/// Least time for an answer.
const LEAST: Duration = Duration::from_millis(1);

/// Whether the policy counters of an association are those of an OCS.
pub(super) fn serves(worker: &Worker, association: &Association) -> bool {
    let settings = &worker.config().pds.sy;
    let kind = match association.kind {
        Kind::Gx => SySessions::Gx,
        Kind::Sm => SySessions::N7,
        Kind::Am | Kind::Ue | Kind::Tdf => return false,
    };
    settings.enabled && settings.sessions.contains(&kind)
}

/// Begins a Sy session: the session, and `PolicyCounterInfo` by identifier. `None`: no OCS answers in time, or it refuses.
pub(super) async fn begin(
    worker: &Worker,
    association: &Association,
    end: Instant,
) -> Option<(SySession, Map<String, Value>)> {
    let config = worker.config();
    let settings = &config.pds.sy;
    let random = worker.random().next();
    let mut session = SySession {
        // RFC 6733 §8.8.
        session_id: format!(
            "{};{};{};{}",
            config.diameter.host,
            random >> 32,
            random as u32,
            association.id
        ),
        host: settings.host.clone().unwrap_or_default(),
        realm: match settings.realm.is_empty() {
            true => config.diameter.realm.clone(),
            false => settings.realm.clone(),
        },
        asked: settings.counters.clone(),
    };
    let answer = ask(worker, association, &session, RequestKind::Initial, end).await;
    let Some(answer) = answer else {
        // The OCS may have the session; the answer came too late, or not at all.
        finish(worker, &session);
        return None;
    };
    let counters = accepted(&answer)?;
    let text = |tag| answer.get(tag).ok().flatten().map(str::to_owned);
    if let (Some(host), Some(realm)) = (text(known::ORIGIN_HOST), text(known::ORIGIN_REALM)) {
        (session.host, session.realm) = (host, realm);
    }
    Some((session, counters))
}

/// Asks the OCS of a Sy session for the counters that it names now.
pub(super) async fn ask_more(
    worker: &Worker,
    association: &Association,
    session: &SySession,
    end: Instant,
) -> Option<Map<String, Value>> {
    let answer = ask(worker, association, session, RequestKind::Intermediate, end).await?;
    accepted(&answer)
}

/// Ends a Sy session, in the background (TS 29.219 §4.5.3).
pub(crate) fn finish(worker: &Worker, session: &SySession) {
    let mut message = MessageBuilder::request(command::SESSION_TERMINATION, application::SY);
    head(worker, &mut message, session);
    message.put(known::TERMINATION_CAUSE, LOGOUT);
    let Ok(message) = message.finish() else { return };
    worker.send(Order {
        peer: peer(session),
        message,
        timeout: worker.config().diameter.timeout.duration(),
        then: Then::SyEnd,
        tried: 0,
    });
}

/// Counts the answer to the end of a Sy session.
pub(crate) fn sy_ended(worker: &Worker, answer: Option<&Message>) {
    let code = answer.and_then(|answer| answer.get(known::RESULT_CODE).ok().flatten());
    let is_over = code
        .map(ResultCode)
        .is_some_and(|code| code.is_success() || code == ResultCode::UNKNOWN_SESSION_ID);
    worker.count(if is_over { Event::SyEnded } else { Event::SyLeft });
}

fn peer(session: &SySession) -> Option<String> {
    Some(session.host.clone()).filter(|host| !host.is_empty())
}

fn head(worker: &Worker, message: &mut MessageBuilder, session: &SySession) {
    let settings = &worker.config().diameter;
    message
        .put(known::SESSION_ID, &session.session_id)
        .put(known::AUTH_APPLICATION_ID, application::SY)
        .put(known::ORIGIN_HOST, &settings.host)
        .put(known::ORIGIN_REALM, &settings.realm)
        .put(known::DESTINATION_REALM, &session.realm);
    if !session.host.is_empty() {
        message.put(known::DESTINATION_HOST, &session.host);
    }
}

/// Sends a Spending-Limit-Request: the answer, where one comes in time.
async fn ask(
    worker: &Worker,
    association: &Association,
    session: &SySession,
    kind: RequestKind,
    end: Instant,
) -> Option<Message> {
    let mut message = MessageBuilder::request(command::SPENDING_LIMIT, application::SY);
    head(worker, &mut message, session);
    let identities = ["supi", "gpsi"].map(|member| association.text_of(member));
    let counters = session.asked.iter().map(String::as_str);
    put_request(&mut message, kind, identities.into_iter().flatten(), counters);
    let timeout = end.saturating_duration_since(Instant::now()).max(LEAST);
    let (sender, answer) = oneshot::channel();
    worker.send(Order {
        peer: peer(session),
        message: message.finish().ok()?,
        timeout,
        then: Then::Reply(sender),
        tried: 0,
    });
    tokio::time::timeout(timeout, answer).await.ok()?.ok()
}

/// The counters of a successful Spending-Limit-Answer. Others are logged: among them 5030 (the OCS does not know the
/// subscriber), 5570 and 4241 (it does not know the counters, or has none; TS 29.219 §5.5).
fn accepted(answer: &Message) -> Option<Map<String, Value>> {
    let code = answer.get(known::RESULT_CODE).ok().flatten().map(ResultCode);
    if !code.is_some_and(ResultCode::is_success) {
        let experimental = answer.avps().find(known::EXPERIMENTAL_RESULT).ok().flatten();
        let experimental =
            experimental.and_then(|avp| avp.group().get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten());
        tracing::debug!(?code, ?experimental, "the OCS refuses a spending limit request");
        return None;
    }
    read_status(answer.view())
        .inspect_err(|fault| tracing::debug!(%fault, "the answer of the OCS is malformed"))
        .ok()
}
