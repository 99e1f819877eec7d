//! Answers to RARs (TS 29.212 §4.5.2), and what happens without one.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use diameter::proto::known;
use diameter::proto::{Message, ResultCode};
use pcc::gx::read_report;
use serde_json::Value;

use super::reported;
use crate::activity::trail;
use crate::association::gx::{self as session, PcefSession};
use crate::association::{Association, AssociationId, Kind};
use crate::change;
use crate::change::af_notices;
use crate::events::Event;
use crate::orders::{Push, What};
use crate::pushes;
use crate::worker::Worker;

/// The answer to a RAR: what it reports, and whether the PCEF has what it was sent.
pub(crate) async fn re_auth_answered(worker: &Rc<Worker>, push: Push, answer: Option<&Message>) {
    let code = answer.and_then(|answer| answer.get(known::RESULT_CODE).ok().flatten());
    match (answer, code.map(ResultCode)) {
        (Some(answer), Some(code)) if code.is_success() => {
            confirm(worker, push.id, push.record).await;
            taken(worker, &push, answer).await;
        }
        (Some(answer), Some(ResultCode::UNKNOWN_SESSION_ID)) if is_own(worker, push.id, answer).await => {
            // The PCEF has lost the session (TS 29.212 §4.5.2).
            let removed = change::remove(worker, push.id, Kind::Gx, &Value::Null).await;
            confirm(worker, push.id, push.record).await;
            if let Ok(Some((association, _))) = removed {
                super::close(worker, &association).await;
            }
        }
        _ => {
            if let What::Change { removed } | What::Whole { removed, .. } = &push.what {
                let doubt = async |association: &mut Association| {
                    session::doubt(association, removed);
                    Ok::<_, Infallible>(())
                };
                let _ = change::rewrite(worker, push.id, doubt).await;
            }
            retry(worker, push);
        }
    }
}

/// No other process has to repeat a RAR.
pub(super) async fn confirm(worker: &Worker, id: AssociationId, record: Option<u64>) {
    let Some(number) = record else { return };
    if let Err(error) = worker.repository().confirm(id, number).await {
        // It is repeated later, with the whole decision.
        tracing::debug!(%error, %id, "a RAR is not noted as confirmed");
    }
}

/// Whether the PCEF itself answers, and not another one that a router has chosen.
async fn is_own(worker: &Worker, id: AssociationId, answer: &Message) -> bool {
    let stored = worker.repository().get(id).await.ok().flatten();
    let host = stored
        .and_then(|stored| PcefSession::get(&stored.record))
        .map(|session| session.host);
    let origin = answer.get(known::ORIGIN_HOST).ok().flatten();
    host.is_some_and(|host| origin.is_some_and(|origin| host.eq_ignore_ascii_case(origin)))
}

async fn taken(worker: &Rc<Worker>, push: &Push, answer: &Message) {
    if let What::Whole { doubts, .. } = push.what {
        let settle = async |association: &mut Association| {
            if PcefSession::get(association).is_some_and(|session| session.doubts == doubts) {
                session::settle(association);
            }
            Ok::<_, Infallible>(())
        };
        let _ = change::rewrite(worker, push.id, settle).await;
    }
    let Ok(Value::Object(report)) = read_report(answer.view()) else {
        return;
    };
    if report.contains_key("ruleReports") || report.contains_key("repPolicyCtrlReqTriggers") {
        let taken = reported(worker, push.id, &report, None).await;
        if let Ok(Some(reported)) = taken {
            pushes::gx_update(worker, &reported.before, &reported.after, reported.record);
        }
    }
}

/// No attempt has succeeded: the AFs of the rules learn that these are not in effect. The record stays, by which the PCEF gets the decision when
/// it answers again.
async fn give_up(worker: &Worker, push: &Push) {
    // What a CCR has settled meanwhile is in effect.
    if let Ok(Some(stored)) = worker.repository().get(push.id).await
        && !push.rules.is_empty()
        && session::is_in_doubt(&stored.record)
    {
        af_notices::failed(worker, &stored.record, &push.rules).await;
    }
}

/// Sends a RAR again after a pause that doubles each time, unless a CCR has settled the matter by then.
fn retry(worker: &Rc<Worker>, push: Push) {
    let settings = &worker.config().diameter;
    let next = push.attempt + 1;
    let Some(place) = (next < settings.attempts).then(|| worker.retry()).flatten() else {
        worker.count(Event::GxReAuthGivenUp);
        let worker = worker.clone();
        tokio::task::spawn_local(async move { give_up(&worker, &push).await });
        return;
    };
    let doubled = settings
        .retry_pause
        .duration()
        .saturating_mul(1 << push.attempt.min(16));
    let pause = doubled.min(settings.max_retry_pause.duration());
    // Not all at once, where a PCEF comes back.
    let spread = worker.random().next() % (pause.as_millis() as u64 / 4 + 1);
    let worker = worker.clone();
    let again = async move {
        tokio::time::sleep(pause + Duration::from_millis(spread)).await;
        drop(place);
        let Ok(Some(stored)) = worker.repository().get(push.id).await else {
            return;
        };
        match &push.what {
            What::Release { cause } => {
                let order = pushes::gx_release(&worker.config().diameter, &stored.record, cause, next);
                if let Some(order) = order {
                    worker.count(Event::GxReAuthRetried);
                    worker.send(order);
                }
            }
            What::Restoration => {
                worker.count(Event::GxReAuthRetried);
                pushes::gx_restore(&worker, &stored.record, next);
            }
            What::Change { .. } | What::Whole { .. } => {
                if !session::is_in_doubt(&stored.record) {
                    confirm(&worker, push.id, push.record).await;
                } else {
                    worker.count(Event::GxReAuthRetried);
                    pushes::gx_whole(&worker, &stored.record, next, push.record, push.rules);
                }
            }
        }
    };
    tokio::task::spawn_local(trail::resume(trail::mark(), again));
}
