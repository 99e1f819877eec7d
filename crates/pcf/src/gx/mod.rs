//! Gx (TS 29.212): sessions of PCEFs, in the same store and by the same policies as those of SMFs.

mod answer;
mod re_auth;
mod restart;

use std::rc::Rc;

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{CommandFlags, Fault, Message, MessageMut, ResultCode};
use pcc::gx::{Features, RequestKind};
use serde_json::{Map, Value};

use crate::association::gx::{self as session, PcefSession};
use crate::association::ledger::Draft;
use crate::association::{Association, AssociationId, Kind, af, applications, context, origination, usage};
use crate::change::af_notices;
use crate::change::{self, ChangeFault};
use crate::creation::{self, Created};
use crate::events::Event;
use crate::peers::bsf;
use crate::worker::Worker;
use crate::{owner, pds, pre, reassessment, renewal, restoration};

pub(crate) use answer::failed;
pub(crate) use re_auth::re_auth_answered;
pub(crate) use restart::run as end_lost;

/// Whether a request begins a session.
pub(crate) fn begins(message: &Message) -> bool {
    let kind = message.get(known::CC_REQUEST_TYPE).ok().flatten();
    message.application() == application::GX && kind == Some(RequestKind::Initial.code())
}

/// Credit-Control-Request (TS 29.212 §4.5.1).
pub(crate) async fn credit_control(worker: &Rc<Worker>, request: &Request) -> Result<MessageMut, Fault> {
    let ccr = pcc::gx::Request::read(request.message.view())?;
    restart::note(worker, request);
    match ccr.kind {
        RequestKind::Initial => initial(worker, request, ccr).await,
        RequestKind::Update => update(worker, request, ccr).await,
        RequestKind::Termination => terminate(worker, request, ccr).await,
    }
}

async fn initial(worker: &Rc<Worker>, request: &Request, ccr: pcc::gx::Request) -> Result<MessageMut, Fault> {
    let dnn = ccr.document.get("dnn").and_then(Value::as_str);
    // An emergency session needs no subscriber (TS 23.203 §6.1.10).
    if !dnn.is_some_and(|dnn| worker.config().emergency.has(dnn)) {
        ccr.require_subscriber()?;
    }
    let session = pcef(request, &ccr)?;
    let known = named(worker, request, &ccr.session).await?;
    let again = known.filter(|known| is_repeated(worker, request, &ccr, known));
    if let Some(known) = again {
        // Sent again, for example over another connection: the PCEF has no decision yet.
        let decision = Value::Object(known.decision());
        return answer::success(request, &ccr, &known, &Value::Null, &decision);
    }
    let mut association = Association::new(Kind::Gx, ccr.document.clone());
    session.put(&mut association);
    let begun = request.message.get(known::ORIGINATION_TIME_STAMP)?;
    if let Some(begun) = begun.and_then(origination::of_diameter)
        && worker.config().collision_detection
    {
        origination::note(&mut association, begun);
    }
    let created = creation::create(worker, &mut association, || true).await;
    if let Created::New(replaced) = created.map_err(answer::fault)? {
        creation::close(worker, &replaced).await;
        worker.count(Event::GxCreated);
        bsf::bind(worker, &association);
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
    let id = identity(worker, request, &ccr.session).await?;
    let report = ccr.document.as_object().cloned().unwrap_or_default();
    let state = restart::state_of(request);
    let rewritten = reported(worker, id, &report, Some((ccr.number, state))).await;
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
    bsf::rebind(worker, &before, &after).await;
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

/// Puts what a PCEF reports into the association, decides again and notifies AFs. `ccr`: its number and Origin-State-Id.
async fn reported(
    worker: &Rc<Worker>,
    id: AssociationId,
    report: &Map<String, Value>,
    ccr: Option<(u32, Option<u32>)>,
) -> Result<Option<Reported>, ChangeFault<pre::Refusal>> {
    let whole = Value::Object(report.clone());
    let step = async |association: &mut Association, draft: &mut Draft| {
        let mut report = report.clone();
        session::keep_members(association, &mut report);
        let is_new = ccr.is_none_or(|(number, state)| {
            session::note_origin_state(association, state);
            session::note_number(association, number)
        });
        if is_new && ccr.is_some() {
            coherent(association, &report)?;
        }
        // A PCEF does not repeat what a trigger of N7 requires.
        let _ = context::update(association, &report);
        if let Some(reports) = report.get("accuUsageReports").filter(|_| is_new) {
            usage::add(&mut association.usage, reports);
            pre::report(worker, association, &whole, draft).await?;
        }
        if is_new {
            applications::note(association, &whole);
        }
        af_notices::plan(worker, association, &whole, draft);
        af::note_events(association, &whole);
        af::note_lost(association, &whole);
        af::drop_inactive(association, &whole);
        session::settle(association);
        pds::refresh(worker, association).await;
        let asked = context::request(association, &report);
        let decided = pre::decide(worker, "update", association, &asked, draft).await?;
        if is_new && ccr.is_some() && !context::answers_request(&association.policy, &decided.policy, &report)
        {
            return Err(pre::Refusal::Policy {
                status: 403,
                cause: "ERROR_TRAFFIC_MAPPING_INFO_REJECTED".to_owned(),
                detail: Some("the policy makes no rule of the resources that the UE requests".to_owned()),
            });
        }
        pre::keep(association, decided);
        if !is_new {
            association.messages.clear();
        }
        Ok::<_, pre::Refusal>(!is_new)
    };
    // The answer to a CCR has the change, that to a RAR causes another RAR.
    let rewritten = change::write(worker, id, ccr.is_none(), step).await?;
    Ok(rewritten.map(|rewritten| {
        reassessment::after(worker, id, &rewritten.draft);
        renewal::after(worker, &rewritten.after);
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

/// Refuses what a trigger says that contradicts the session (DIAMETER_ERROR_TRIGGER_EVENT, TS 29.212 §5.5.3).
fn coherent(association: &Association, report: &Map<String, Value>) -> Result<(), pre::Refusal> {
    let refused = |detail: &str| {
        Err(pre::Refusal::Policy {
            status: 400,
            cause: "ERROR_TRIGGER_EVENT".to_owned(),
            detail: Some(detail.to_owned()),
        })
    };
    let triggers = report.get("repPolicyCtrlReqTriggers").and_then(Value::as_array);
    let has_changed = triggers.is_some_and(|all| all.iter().any(|trigger| trigger == "RAT_TY_CH"));
    let rat = report.get("ratType");
    if has_changed && rat.is_some() && rat == association.context.get("ratType") {
        return refused("RAT_CHANGE with the RAT-Type that the session has");
    }
    for (released, member) in [
        ("relIpv4Address", "ipv4Address"),
        ("relIpv6AddressPrefix", "ipv6AddressPrefix"),
    ] {
        let gone = report.get(released);
        if gone.is_some() && gone != association.context.get(member) {
            return refused("UE_IP_ADDRESS_RELEASE of an address that the session does not have");
        }
    }
    Ok(())
}

async fn terminate(
    worker: &Rc<Worker>,
    request: &Request,
    ccr: pcc::gx::Request,
) -> Result<MessageMut, Fault> {
    let id = identity(worker, request, &ccr.session).await?;
    let removed = change::remove(worker, id, Kind::Gx, &ccr.document).await;
    let (association, draft) = removed.map_err(answer::fault)?.ok_or_else(unknown)?;
    reassessment::after(worker, id, &draft);
    close(worker, &association).await;
    answer::success(request, &ccr, &association, &Value::Null, &Value::Null)
}

/// What follows from the end of a session.
async fn close(worker: &Rc<Worker>, association: &Association) {
    pds::close(worker, association).await;
    worker.count(Event::GxDeleted);
}

async fn identity(worker: &Worker, request: &Request, session: &str) -> Result<AssociationId, Fault> {
    let found = named(worker, request, session).await?;
    found.map(|association| association.id).ok_or_else(unknown)
}

/// The session of this Session-Id. To other nodes than the one that began it there is none.
async fn named(worker: &Worker, request: &Request, session: &str) -> Result<Option<Association>, Fault> {
    let is_own = |held: &PcefSession| held.session_id == session;
    // Sessions of before are named by the bare Session-Id.
    for name in [session::name(session).as_str(), session] {
        let found = worker.repository().of_name(name).await;
        let found = found.map_err(|error| failed(&error))?.into_iter();
        let mut found = found.filter_map(|stored| {
            let held = PcefSession::get(&stored.record).filter(is_own)?;
            Some((stored.record, held))
        });
        if let Some((association, held)) = found.next() {
            if owner::owns(request, &held.host) {
                return Ok(Some(association));
            }
            worker.count(Event::DiameterForeign);
            return Err(unknown());
        }
    }
    Ok(None)
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
        prefixed: true,
        realm: message.require(known::ORIGIN_REALM)?.to_owned(),
        peer: up.map_or_else(|| host.clone(), |up| up.remote.origin.host.clone()),
        host,
        number: ccr.number,
        seen: 1,
        origin_state: restart::state_of(request),
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
    Features::OURS.common(ccr.features.unwrap_or_default())
}
