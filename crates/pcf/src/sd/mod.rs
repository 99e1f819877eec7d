//! Sd (TS 29.212 §4b): what TDFs report, and how they answer. Requests of ours are in `tdf`.
//!
//! Reporting is solicited: the PCF begins the sessions. A CCR-I of a TDF (unsolicited reporting, §4b.5.1.2) is refused.

mod sweep;

use std::rc::Rc;

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{Fault, Message, MessageMut, ResultCode};
use pcc::sd::{put_change, read_report};
use serde_json::{Map, Value};

use crate::association::ledger::Draft;
use crate::association::sd::{self as session, State, TdfSession};
use crate::association::{Association, AssociationId, Kind, applications, context, usage};
use crate::change::{self, ChangeFault, Rewritten};
use crate::events::Event;
use crate::gx;
use crate::orders::Detection;
use crate::pre::Refusal;
use crate::sources::signed_now_ms;
use crate::worker::Worker;
use crate::{binding, owner, pds, pre, reassessment};

pub(crate) use sweep::run;

const UPDATE: i32 = 2;
const TERMINATION: i32 = 3;

/// Credit-Control-Request (TS 29.212 §4b.5.3, §4b.5.4).
pub(crate) async fn credit_control(worker: &Rc<Worker>, request: &Request) -> Result<MessageMut, Fault> {
    let message = &request.message;
    let kind = message.require(known::CC_REQUEST_TYPE)?;
    let number = message.require(known::CC_REQUEST_NUMBER)?;
    let report = read_report(message.view())?;
    let name = session::name(message.require(known::SESSION_ID)?);
    if !matches!(kind, UPDATE | TERMINATION) {
        let reason = "sessions of TDFs begin with a TSR; unsolicited reporting is not served";
        return Err(Fault::new(ResultCode::UNABLE_TO_COMPLY, reason));
    }
    let found = binding::named(worker, &name).await;
    let stored = found.map_err(|error| gx::failed(&error))?.ok_or_else(unknown)?;
    let is_own = |session: TdfSession| owner::owns(request, &session.host);
    if !TdfSession::get(&stored.record).is_some_and(is_own) {
        worker.count(Event::DiameterForeign);
        return Err(unknown());
    }
    let ends = kind == TERMINATION;
    if stored.record.kind == Kind::Tdf {
        if ends {
            // The IP-CAN session has ended; the last usage counts.
            let report = Value::Object(report);
            let removed = change::remove(worker, stored.record.id, Kind::Tdf, &report).await;
            if let Some((_, draft)) = removed.map_err(|fault| fault_of(&fault))? {
                reassessment::after(worker, stored.record.id, &draft);
            }
            worker.count(Event::SdEnded);
        }
        return answer(request, (kind, number), &Value::Null, &Value::Null);
    }
    let rewritten = reported(worker, stored.record.id, &report, Some((number, ends))).await;
    let Rewritten {
        answer: repeated,
        before,
        after,
        ..
    } = match rewritten {
        Ok(Some(rewritten)) => rewritten,
        Ok(None) => return Err(unknown()),
        Err(fault) => return Err(fault_of(&fault)),
    };
    worker.count(if ends { Event::SdEnded } else { Event::SdReported });
    let (earlier, now) = (
        TdfSession::get(&before).unwrap_or_default(),
        TdfSession::get(&after).unwrap_or_default(),
    );
    if ends {
        return answer(request, (kind, number), &Value::Null, &Value::Null);
    }
    let mut has = match (repeated, earlier.is_in_doubt) {
        (true, _) => Value::Null,
        (false, true) => earlier.stale,
        (false, false) => earlier.has,
    };
    pcc::usage::forget_reported(&mut has, &Value::Object(report));
    answer(request, (kind, number), &has, &now.shall)
}

fn answer(
    request: &Request,
    (kind, number): (i32, u32),
    has: &Value,
    shall: &Value,
) -> Result<MessageMut, Fault> {
    let mut answer = request.answer(ResultCode::SUCCESS);
    answer
        .put(known::AUTH_APPLICATION_ID, application::SD)
        .put(known::CC_REQUEST_TYPE, kind)
        .put(known::CC_REQUEST_NUMBER, number);
    put_change(&mut answer, has, shall);
    let too_long = |_| Fault::new(ResultCode::UNABLE_TO_COMPLY, "the ADC rules do not fit a message");
    answer.finish().map_err(too_long)
}

/// Puts what a TDF reports into the association, decides again and notifies its consumer of the difference: whether the
/// report was sent again. `ccr`: its number, and whether it ends the session.
async fn reported(
    worker: &Rc<Worker>,
    id: AssociationId,
    report: &Map<String, Value>,
    ccr: Option<(u32, bool)>,
) -> Result<Option<Rewritten<bool>>, ChangeFault<Refusal>> {
    let whole = Value::Object(report.clone());
    let step = async |association: &mut Association, draft: &mut Draft| {
        let Some(mut session) = TdfSession::get(association) else {
            return Ok(false);
        };
        let mut is_new = true;
        if let Some((number, ends)) = ccr {
            is_new = session.number != Some(number);
            session.number = Some(number);
            if ends {
                session.forget();
                session.state = State::Failed;
            }
            session.put(association);
        }
        if is_new {
            if let Some(reports) = report.get("accuUsageReports") {
                usage::add(&mut association.usage, reports);
                pre::report(worker, association, &whole, draft).await?;
            }
            applications::note(association, &whole);
        }
        pds::refresh(worker, association).await;
        let mut asked = context::request(association, report);
        if let Some(reports) = report.get("adcRuleReports") {
            asked["adcRuleReports"] = reports.clone();
        }
        let decided = pre::decide(worker, "update", association, &asked, draft).await?;
        pre::keep(association, decided);
        if !is_new {
            association.messages.clear();
        }
        if let Some(mut session) = TdfSession::get(association).filter(|_| ccr.is_some()) {
            // The answer has what changes.
            session.settle();
            session.has = session.shall.clone();
            session.put(association);
        }
        Ok(!is_new)
    };
    let rewritten = change::write(worker, id, true, step).await?;
    if let Some(rewritten) = &rewritten {
        reassessment::after(worker, id, &rewritten.draft);
        change::announce(worker, rewritten);
    }
    Ok(rewritten)
}

/// What became of a request of ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Taken,
    /// The TDF does not know the session.
    Unknown,
    Failed,
}

/// What follows from the answer to a request, or from none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    /// No TDF has the session: the policy decides again.
    Decide,
    /// The TDF has ended the session of an association that has ended itself.
    Remove,
}

/// The answer to a TSR or RAR; none came in time.
pub(crate) async fn answered(worker: &Rc<Worker>, sent: Detection, answer: Option<&Message>) {
    let code = answer.and_then(|answer| answer.get(known::RESULT_CODE).ok().flatten());
    let outcome = match code.map(ResultCode) {
        Some(code) if code.is_success() => Outcome::Taken,
        Some(ResultCode::UNKNOWN_SESSION_ID) => Outcome::Unknown,
        _ => Outcome::Failed,
    };
    let step = async |association: &mut Association| {
        let session = TdfSession::get(association);
        let is_own = |session: &TdfSession| {
            let serial = session.in_flight.as_ref().map(|one| one.serial);
            serial == Some(sent.serial)
        };
        let Some(mut session) = session.filter(is_own) else {
            return Ok(Next::Nothing);
        };
        let next = advance(worker, &mut session, outcome);
        session.put(association);
        Ok::<_, std::convert::Infallible>(next)
    };
    let next = match change::rewrite(worker, sent.id, step).await {
        Ok(Some(rewritten)) => rewritten.answer,
        _ => return,
    };
    match next {
        Next::Decide => {
            if let Err(fault) = reassessment::reassess(worker, sent.id, "tdf", |_| {}).await {
                tracing::debug!(?fault, id = %sent.id, "a session without its TDF was not decided again");
            }
        }
        Next::Remove => drop(change::remove(worker, sent.id, Kind::Tdf, &Value::Null).await),
        Next::Nothing => {}
    }
    let report = answer
        .filter(|_| outcome == Outcome::Taken)
        .and_then(|answer| read_report(answer.view()).ok());
    if let Some(report) = report.filter(|report| report.contains_key("adcRuleReports")) {
        drop(reported(worker, sent.id, &report, None).await);
    }
}

/// How far a session comes by an outcome.
fn advance(worker: &Worker, session: &mut TdfSession, outcome: Outcome) -> Next {
    let settings = &worker.config().sd;
    match (outcome, session.state) {
        (Outcome::Taken, State::Closing) => {
            // The CCR that ends the session is still to come.
            let retention = i64::try_from(settings.retention.duration().as_millis()).unwrap_or(i64::MAX);
            if let Some(one) = &mut session.in_flight {
                one.attempts = settings.attempts;
                one.due = signed_now_ms().saturating_add(retention);
            }
            Next::Nothing
        }
        (Outcome::Taken, _) => {
            session.state = State::Open;
            session.in_flight = None;
            session.settle();
            Next::Nothing
        }
        (Outcome::Unknown, State::Closing) => Next::Remove,
        (Outcome::Unknown, State::Open) => {
            // Another session begins in its place.
            worker.count(Event::SdLost);
            session.forget();
            Next::Nothing
        }
        (Outcome::Failed | Outcome::Unknown, _) => retry(worker, session),
    }
}

/// Has a request sent again by a sweep, or gives it up.
fn retry(worker: &Worker, session: &mut TdfSession) -> Next {
    let settings = &worker.config().sd;
    session.is_in_doubt = true;
    let Some(one) = &mut session.in_flight else {
        return Next::Nothing;
    };
    one.attempts += 1;
    if one.attempts < settings.attempts {
        let doubled = settings
            .retry_pause
            .duration()
            .saturating_mul(1 << (one.attempts - 1).min(16))
            .min(worker.config().diameter.max_retry_pause.duration());
        one.due = signed_now_ms().saturating_add(i64::try_from(doubled.as_millis()).unwrap_or(i64::MAX));
        return Next::Nothing;
    }
    worker.count(Event::SdFailed);
    session.in_flight = None;
    match session.state {
        State::Opening => {
            session.state = State::Failed;
            Next::Decide
        }
        State::Closing => Next::Remove,
        _ => Next::Nothing,
    }
}

fn unknown() -> Fault {
    Fault::new(
        ResultCode::UNKNOWN_SESSION_ID,
        "there is no session of a TDF of this Session-Id",
    )
}

fn fault_of<F: std::fmt::Debug>(fault: &ChangeFault<F>) -> Fault {
    match fault {
        ChangeFault::Store(error) => gx::failed(error),
        ChangeFault::Overtaken => Fault::new(ResultCode::TOO_BUSY, "others keep changing this session"),
        ChangeFault::Refused(_) => Fault::new(
            ResultCode::UNABLE_TO_COMPLY,
            "the policy refuses, or cannot be evaluated",
        ),
    }
}
