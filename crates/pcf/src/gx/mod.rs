//! Gx (TS 29.212): sessions of PCEFs, in the same store and by the same policies as those of SMFs.

mod answer;

use std::convert::Infallible;
use std::rc::Rc;

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{Fault, Message, MessageMut, ResultCode};
use pcc::gx::{Features, RequestKind, read_report};
use serde_json::{Map, Value};

use crate::association::gx::{self as session, PcefSession};
use crate::association::ledger::Draft;
use crate::association::{Association, AssociationId, Kind, af, context, usage};
use crate::change::{self, ChangeFault};
use crate::events::Event;
use crate::worker::Worker;
use crate::{af_notices, binding, creation, pds, pre, pushes, reassessment};

pub(crate) use answer::failed;

/// Whether a request begins a session.
pub(crate) fn begins(message: &Message) -> bool {
    let kind = message.get(known::CC_REQUEST_TYPE).ok().flatten();
    message.application() == application::GX && kind == Some(RequestKind::Initial.code())
}

/// Credit-Control-Request (TS 29.212 §4.5.1).
pub(crate) async fn credit_control(worker: &Rc<Worker>, request: &Request) -> Result<MessageMut, Fault> {
    let ccr = pcc::gx::Request::read(request.message.view())?;
    match ccr.kind {
        RequestKind::Initial => initial(worker, request, ccr).await,
        RequestKind::Update => update(worker, request, ccr).await,
        RequestKind::Termination => terminate(worker, request, ccr).await,
    }
}

async fn initial(worker: &Rc<Worker>, request: &Request, ccr: pcc::gx::Request) -> Result<MessageMut, Fault> {
    let session = pcef(request, &ccr)?;
    let known = binding::named(worker, &ccr.session)
        .await
        .map_err(|error| failed(&error))?;
    if let Some(stored) = known {
        // Sent again, for example over another connection: the PCEF has no decision yet.
        let decision = Value::Object(stored.record.decision());
        return answer::success(request, &ccr, &stored.record, &Value::Null, &decision);
    }
    let mut association = Association::new(Kind::Gx, ccr.document.clone());
    session.put(&mut association);
    let created = creation::create(worker, &mut association).await;
    created.map_err(answer::fault)?;
    worker.count(Event::GxCreated);
    let decision = Value::Object(association.decision());
    answer::success(request, &ccr, &association, &Value::Null, &decision)
}

async fn update(worker: &Rc<Worker>, request: &Request, ccr: pcc::gx::Request) -> Result<MessageMut, Fault> {
    let id = identity(worker, &ccr.session).await?;
    let report = ccr.document.as_object().cloned().unwrap_or_default();
    let rewritten = reported(worker, id, &report, Some(ccr.number)).await;
    let Reported {
        before,
        after,
        is_repeated,
    } = match rewritten {
        Ok(Some(reported)) => reported,
        Ok(None) => return Err(unknown()),
        Err(fault) => return Err(answer::fault(fault)),
    };
    worker.count(Event::GxUpdated);
    // The PCEF may not have got the answer to a request that it sends again.
    let has = match is_repeated {
        true => Value::Null,
        false => had(&before, &ccr.document),
    };
    let shall = Value::Object(after.decision());
    answer::success(request, &ccr, &after, &has, &shall)
}

/// The decision that a PCEF has, without the thresholds that it has used up.
fn had(before: &Association, report: &Value) -> Value {
    if session::is_in_doubt(before) {
        return Value::Null;
    }
    let mut has = Value::Object(before.decision());
    pcc::usage::forget_reported(&mut has, report);
    has
}

/// What a report has changed.
struct Reported {
    before: Association,
    after: Association,
    /// It was sent again: its usage was counted before.
    is_repeated: bool,
}

/// Puts what a PCEF reports into the association, decides again and notifies AFs. `number` is that of the CCR.
async fn reported(
    worker: &Rc<Worker>,
    id: AssociationId,
    report: &Map<String, Value>,
    number: Option<u32>,
) -> Result<Option<Reported>, ChangeFault<pre::Refusal>> {
    let whole = Value::Object(report.clone());
    let step = async |association: &mut Association, draft: &mut Draft| {
        let mut report = report.clone();
        session::keep_members(association, &mut report);
        // A PCEF does not repeat what a trigger of N7 requires.
        let _ = context::update(association, &report);
        let is_new = number.is_none_or(|number| session::note_number(association, number));
        if let Some(reports) = report.get("accuUsageReports").filter(|_| is_new) {
            usage::add(&mut association.usage, reports);
            pre::report(worker, association, &whole, draft).await?;
        }
        af::drop_inactive(association, &whole);
        session::settle(association);
        let asked = context::request(association, &report);
        let decided = pre::decide_in(worker, "update", association, &asked, draft).await?;
        pre::keep(association, decided);
        Ok::<_, pre::Refusal>(!is_new)
    };
    let rewritten = change::rewrite_with_ledger(worker, id, step).await?;
    Ok(rewritten.map(|rewritten| {
        reassessment::after(worker, id, &rewritten.draft);
        af_notices::reported(worker, &rewritten.before, &rewritten.after, &whole);
        if rewritten.answer && report.contains_key("accuUsageReports") {
            worker.count(Event::UsageRepeated);
        }
        Reported {
            before: rewritten.before,
            after: rewritten.after,
            is_repeated: rewritten.answer,
        }
    }))
}

async fn terminate(
    worker: &Rc<Worker>,
    request: &Request,
    ccr: pcc::gx::Request,
) -> Result<MessageMut, Fault> {
    let id = identity(worker, &ccr.session).await?;
    let removed = change::remove(worker, id, Kind::Gx, &ccr.document).await;
    let (association, draft) = removed.map_err(answer::fault)?.ok_or_else(unknown)?;
    reassessment::after(worker, id, &draft);
    pds::close(worker, &association);
    worker.count(Event::GxDeleted);
    af_notices::ended(worker, &association);
    answer::success(request, &ccr, &association, &Value::Null, &Value::Null)
}

async fn identity(worker: &Rc<Worker>, session: &str) -> Result<AssociationId, Fault> {
    let found = binding::named(worker, session)
        .await
        .map_err(|error| failed(&error))?;
    found.map(|stored| stored.record.id).ok_or_else(unknown)
}

fn unknown() -> Fault {
    Fault::new(ResultCode::UNKNOWN_SESSION_ID, "no session has this Session-Id")
}

/// The answer to a RAR: what it reports, and whether the PCEF has what it was sent.
pub(crate) async fn re_auth_answered(worker: &Rc<Worker>, id: AssociationId, answer: Option<&Message>) {
    let code = answer.and_then(|answer| answer.get(known::RESULT_CODE).ok().flatten());
    match (answer, code.map(ResultCode)) {
        (Some(answer), Some(code)) if code.is_success() => {
            let Ok(Value::Object(report)) = read_report(answer.view()) else {
                return;
            };
            if report.contains_key("ruleReports") || report.contains_key("repPolicyCtrlReqTriggers") {
                let taken = reported(worker, id, &report, None).await;
                if let Ok(Some(Reported { before, after, .. })) = taken {
                    pushes::gx_update(worker, &before, &after);
                }
            }
        }
        (_, Some(ResultCode::UNKNOWN_SESSION_ID)) => {
            // The PCEF has lost the session (TS 29.212 §4.5.2).
            if let Ok(Some((association, _))) = change::remove(worker, id, Kind::Gx, &Value::Null).await {
                pds::close(worker, &association);
                worker.count(Event::GxDeleted);
                af_notices::ended(worker, &association);
            }
        }
        _ => {
            let doubt = async |association: &mut Association| {
                session::doubt(association);
                Ok::<_, Infallible>(())
            };
            let _ = change::rewrite(worker, id, doubt).await;
        }
    }
}

/// How the PCEF of a session that begins is reached.
fn pcef(request: &Request, ccr: &pcc::gx::Request) -> Result<PcefSession, Fault> {
    let message = &request.message;
    let host = message.require(known::ORIGIN_HOST)?.to_owned();
    let up = request.from.peer();
    Ok(PcefSession {
        session_id: ccr.session.clone(),
        realm: message.require(known::ORIGIN_REALM)?.to_owned(),
        peer: up.map_or_else(|| host.clone(), |up| up.remote.origin.host.clone()),
        host,
        number: ccr.number,
        // Usage monitoring came with Rel-9.
        measures: features(ccr).first & 1 << 1 != 0,
        doubt: false,
    })
}

/// The features that a PCEF and this PCF have.
fn features(ccr: &pcc::gx::Request) -> Features {
    Features::OURS.common(ccr.features)
}
