//! Gx (TS 29.212): sessions of PCEFs, in the same store and by the same policies as those of SMFs.

mod answer;
mod re_auth;
mod sweep;

use std::rc::Rc;

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{CommandFlags, Fault, Message, MessageMut, ResultCode};
use pcc::gx::{Features, RequestKind};
use serde_json::{Map, Value};

use crate::association::gx::{self as session, PcefSession};
use crate::association::ledger::Draft;
use crate::association::{Association, AssociationId, Kind, af, applications, context, origination, usage};
use crate::change::{self, ChangeFault};
use crate::creation::{self, Created};
use crate::events::Event;
use crate::worker::Worker;
use crate::{af_notices, binding, pds, pre, reassessment, renewal, restoration};

pub(crate) use answer::failed;
pub(crate) use re_auth::re_auth_answered;
pub(crate) use sweep::run;

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
    let again = known.filter(|stored| is_repeated(worker, request, &ccr, &stored.record));
    if let Some(stored) = again {
        // Sent again, for example over another connection: the PCEF has no decision yet.
        let decision = Value::Object(stored.record.decision());
        return answer::success(request, &ccr, &stored.record, &Value::Null, &decision);
    }
    let mut association = Association::new(Kind::Gx, ccr.document.clone());
    session.put(&mut association);
    let begun = request.message.get(known::ORIGINATION_TIME_STAMP)?;
    if let Some(begun) = begun.and_then(origination::of_diameter)
        && worker.config().collision_detection
    {
        origination::note(&mut association, begun);
    }
    let created = creation::create(worker, &mut association).await;
    if let Created::New(replaced) = created.map_err(answer::fault)? {
        creation::close(worker, &replaced).await;
        worker.count(Event::GxCreated);
    }
    let decision = Value::Object(association.decision());
    answer::success(request, &ccr, &association, &Value::Null, &decision)
}

/// Whether a CCR of a known Session-Id establishes that session, and not one in its place: it says so (flag T), or is the same.
fn is_repeated(worker: &Worker, request: &Request, ccr: &pcc::gx::Request, known: &Association) -> bool {
    let says_so = request.message.flags().contains(CommandFlags::RETRANSMITTED);
    !worker.config().collision_detection || says_so || known.context == ccr.document
}

async fn update(worker: &Rc<Worker>, request: &Request, ccr: pcc::gx::Request) -> Result<MessageMut, Fault> {
    let id = identity(worker, &ccr.session).await?;
    let report = ccr.document.as_object().cloned().unwrap_or_default();
    let rewritten = reported(worker, id, &report, Some(ccr.number)).await;
    let Reported {
        before,
        after,
        is_repeated,
        ..
    } = match rewritten {
        Ok(Some(reported)) => reported,
        Ok(None) => return Err(unknown()),
        Err(fault) => return Err(answer::fault(fault)),
    };
    worker.count(Event::GxUpdated);
    // The PCEF may not have got the answer to a request that it sends again.
    let has = match is_repeated {
        true => Value::Null,
        false => had(&before, &after, &ccr.document),
    };
    let shall = Value::Object(after.decision());
    answer::success(request, &ccr, &after, &has, &shall)
}

/// The decision that a PCEF has, without the thresholds that it has used up.
fn had(before: &Association, after: &Association, report: &Value) -> Value {
    if let Some(stale) = session::may_have(before, after) {
        return stale;
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
    /// The RAR that was written with it.
    record: Option<u64>,
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
        if is_new {
            applications::note(association, &whole);
        }
        af::note_events(association, &whole);
        af::drop_inactive(association, &whole);
        session::settle(association);
        pds::refresh(worker, association).await;
        let asked = context::request(association, &report);
        let decided = pre::decide(worker, "update", association, &asked, draft).await?;
        pre::keep(association, decided);
        if !is_new {
            association.messages.clear();
        }
        Ok::<_, pre::Refusal>(!is_new)
    };
    // The answer to a CCR has the change, that to a RAR causes another RAR.
    let rewritten = change::write(worker, id, number.is_none(), step).await?;
    Ok(rewritten.map(|rewritten| {
        reassessment::after(worker, id, &rewritten.draft);
        renewal::after(worker, &rewritten.after);
        af_notices::reported(worker, &rewritten.before, &rewritten.after, &whole);
        if rewritten.answer && report.contains_key("accuUsageReports") {
            worker.count(Event::UsageRepeated);
        }
        Reported {
            before: rewritten.before,
            after: rewritten.after,
            is_repeated: rewritten.answer,
            record: rewritten.record,
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
    pds::close(worker, &association).await;
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
        restores: restoration::of_gx(features(ccr)),
        doubt: false,
        doubts: 0,
        stale: Value::Null,
    })
}

/// The features that a PCEF and this PCF have.
fn features(ccr: &pcc::gx::Request) -> Features {
    Features::OURS.common(ccr.features)
}
