//! Npcf_SMPolicyControl: `/sm-policies` (TS 29.512 §5.3).

use std::rc::Rc;

use http::{Method, StatusCode};
use sbi::headers::{OriginationTimestamp, SbiHeader as _};
use sbi::problem::Problem;
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::{Map, Value, json};

use super::callbacks;
use super::fault::Fault;
use super::owner::Consumer;
use super::{body_of, check_size, created, id_of, mark_of, negotiate, not_found, remove, update_of};
use crate::activity::trail;
use crate::association::ledger::Draft;
use crate::association::repetition::Mark;
use crate::association::{
    Association, AssociationId, Kind, af, applications, consumer, context, decision, origination, repetition,
    usage,
};
use crate::change::af_notices;
use crate::change::{self, Rewritten};
use crate::creation::{self, Created};
use crate::events::Event;
use crate::pds;
use crate::peers::bsf;
use crate::pre::{self, Decision};
use crate::reassessment;
use crate::renewal;
use crate::reports::{Content, Report};
use crate::shape::{SM_CONTEXT, SM_DELETE, SM_UPDATE};
use crate::worker::Worker;

/// The features of this PCF (TS 29.512 §5.8): `TSC`, `3GPP-PS-Data-Off`, `ADC`, `UMC`, `NetLoc`, `RAN-NAS-Cause`,
/// `PCSCF-Restoration-Enhancement`, `SponsoredConnectivity`, `MultiIpv6AddrPrefix`, `SessionRuleErrorHandling`, `AF_Charging_Identifier`,
/// `PDUSessionRelCause`, `DNNSelectionMode`.
const FEATURES: &[usize] = &[
    1,
    3,
    4,
    5,
    6,
    7,
    crate::restoration::FEATURE,
    12,
    16,
    17,
    18,
    28,
    34,
];

const SERVICE: &str = "npcf-smpolicycontrol";

/// `/sm-policies`.
pub(crate) async fn collection(worker: &Rc<Worker>, request: &Request) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let mut members = body_of(worker, request, &SM_CONTEXT)?;
    let features = negotiate(&members, FEATURES).map(|features| features.to_string());
    if let Some(features) = &features {
        members.insert("suppFeat".to_owned(), json!(features));
    }
    let mut association = Association::new(Kind::Sm, Value::Object(members));
    consumer.own(&mut association);
    // A value that cannot be read counts as none.
    if let Some(OriginationTimestamp(begun)) = OriginationTimestamp::of(request.headers()).ok().flatten()
        && worker.config().collision_detection
        && let Ok(begun) = i64::try_from(begun.unix_timestamp_nanos() / 1_000_000)
    {
        origination::note(&mut association, begun);
    }
    let version = pds::version(worker, &association);
    let is_awaited = || function::sbi::is_awaited(request);
    if let Created::New(replaced) = creation::create(worker, &mut association, is_awaited).await? {
        creation::close(worker, &replaced).await;
    }
    worker.count(Event::SmCreated);
    bsf::bind(worker, &association);
    if pds::version(worker, &association) != version {
        // The data have changed before the UDR could notify of an association.
        callbacks::after_creation(worker, association.id).await;
    }
    if request.is_given_up() {
        // The SMF does not learn the URI, so that it could never end the session.
        abandon(worker, association.id).await;
    }
    let mut body = association.take_decision();
    if let Some(features) = features {
        body.insert("suppFeat".to_owned(), Value::String(features));
    }
    Ok(created(worker, &association, &body))
}

/// `/sm-policies/{smPolicyId}`.
pub(crate) async fn individual(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::GET {
        return Ok(method_not_allowed(request.method(), "GET"));
    }
    let stored = worker.repository().get(id_of(id)?).await?;
    let association = stored
        .map(|stored| stored.record)
        .filter(|association| association.kind == Kind::Sm)
        .ok_or_else(|| not_found(id))?;
    let consumer = Consumer::of(worker, request, SERVICE)?;
    consumer.may_use(worker, consumer::of(&association)).await?;
    trail::concerns(&association);
    let policy = association.decision();
    let body = json!({"context": association.context, "policy": policy});
    Ok(sbi::json::response(StatusCode::OK, &body))
}

/// `/sm-policies/{smPolicyId}/update` (§4.2.4): the answer has what the update changes of the decision.
pub(crate) async fn update(worker: &Rc<Worker>, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let update = update_of(worker, request, (&SM_CONTEXT, &SM_UPDATE))?;
    let rewritten = reported(worker, id_of(id)?, &update, Some((&consumer, &mark_of(request))))
        .await?
        .ok_or_else(|| not_found(id))?;
    worker.count(Event::SmUpdated);
    let (before, after) = (rewritten.before.decision(), rewritten.after.decision());
    let difference = match rewritten.answer {
        // The SMF may not have got the answer: it gets the whole decision, and what that answer removed.
        Some(removed) => {
            if update.contains_key("accuUsageReports") {
                worker.count(Event::UsageRepeated);
            }
            decision::difference(removed, after)
        }
        None => decision::after_report(before, after, &update),
    };
    Ok(sbi::json::response(StatusCode::OK, &difference))
}

/// What an SMF reports in its answer to a notification (§4.2.3.2) is treated as an update with these members. What that changes
/// of the decision is notified, but for the removal of rules that the SMF says it does not have.
pub(crate) async fn answered(worker: &Rc<Worker>, report: Report) {
    let Report { id, content } = report;
    let members = match content {
        Content::Members(members) => members,
        Content::Unknown => return abandon(worker, id).await,
        Content::Undelivered(rules) => {
            if let Ok(Some(stored)) = worker.repository().get(id).await {
                af_notices::failed(worker, &stored.record, &rules).await;
            }
            return;
        }
    };
    let rewritten = match reported(worker, id, &members, None).await {
        Ok(Some(rewritten)) => rewritten,
        Ok(None) => return,
        Err(fault) => return tracing::debug!(?fault, %id, "what an SMF reports in an answer is not applied"),
    };
    let (before, after) = (rewritten.before.decision(), rewritten.after.decision());
    let mut difference = decision::after_report(before, after, &members);
    if let Some(Value::Object(rules)) = difference.get_mut("pccRules") {
        for inactive in pcc::event::inactive_rules(&Value::Object(members)) {
            if rules.get(inactive).is_some_and(Value::is_null) {
                rules.shift_remove(inactive);
            }
        }
        if rules.is_empty() {
            difference.shift_remove("pccRules");
        }
    }
    change::notify(worker, &rewritten.after, difference, rewritten.record);
}

/// Ends a session that its SMF does not have, as its deletion would.
async fn abandon(worker: &Rc<Worker>, id: AssociationId) {
    let removed = change::remove(worker, id, Kind::Sm, &Value::Null).await;
    if let Ok(Some((association, draft))) = removed {
        tracing::info!(%id, "a session has ended that its SMF does not know");
        worker.count(Event::SmLost);
        reassessment::after(worker, id, &draft);
        pds::close(worker, &association).await;
    }
}

/// Puts what an SMF reports, in a request of its with a mark or in an answer, into the association, decides again and notifies AFs.
/// A request that repeats an earlier one by its mark changes no quota, and the answer is what the earlier one removed. `None`: there is
/// no such association.
async fn reported(
    worker: &Rc<Worker>,
    id: AssociationId,
    update: &Map<String, Value>,
    request: Option<(&Consumer, &Mark)>,
) -> Result<Option<Rewritten<Option<Map<String, Value>>>>, Fault> {
    let report = Value::Object(update.clone());
    let step = async |association: &mut Association, draft: &mut Draft| {
        if association.kind != Kind::Sm {
            return Err(not_found(&id.to_string()));
        }
        if let Some((consumer, _)) = request {
            consumer.may_use(worker, consumer::of(association)).await?;
        }
        let earlier = request.and_then(|(_, mark)| repetition::earlier(association, mark));
        let before = association.decision();
        // A request that is sent again says what its first copy has said, which may have released what it releases.
        if let Some((_, mark)) = request
            && earlier.is_none()
            && !mark.is_retransmitted
        {
            context::triggered(association, update)?;
        }
        let updated = context::update(association, update);
        if earlier.is_none() {
            updated?;
            check_size(worker, &association.context)?;
            if let Some(reports) = update.get("accuUsageReports") {
                usage::add(&mut association.usage, reports);
            }
            pre::report(worker, association, &report, draft).await?;
            applications::note(association, &report);
        }
        af_notices::plan(worker, association, &report, draft);
        af::note_events(association, &report);
        af::note_lost(association, &report);
        af::drop_inactive(association, &report);
        pds::refresh(worker, association).await;
        let asked = context::request(association, update);
        let decided = pre::decide(worker, "update", association, &asked, draft).await?;
        if earlier.is_none() {
            check_answered(&association.policy, &decided, update)?;
        }
        // What of the answer may be missed.
        let reports = ["accuUsageReports", "ruleReports", "sessRuleReports"];
        let changes =
            decided.policy != association.policy || reports.iter().any(|report| update.contains_key(*report));
        pre::keep(association, decided);
        if earlier.is_some() {
            association.messages.clear();
        }
        if let Some((_, mark)) = request
            && earlier.is_none()
            && changes
        {
            repetition::note(association, mark, &before);
        }
        Ok::<_, Fault>(earlier)
    };
    // The answer to an update has the change.
    let rewritten = change::write(worker, id, request.is_none(), step).await?;
    if let Some(rewritten) = &rewritten {
        reassessment::after(worker, rewritten.after.id, &rewritten.draft);
        renewal::after(worker, &rewritten.after);
        bsf::rebind(worker, &rewritten.before, &rewritten.after).await;
    }
    Ok(rewritten)
}

/// Refuses a UE's request for resources that the decision does not answer by a rule.
fn check_answered(
    before: &Map<String, Value>,
    decided: &Decision,
    update: &Map<String, Value>,
) -> Result<(), Fault> {
    if context::answers_request(before, &decided.policy, update) {
        return Ok(());
    }
    let problem = Problem::with_cause(StatusCode::FORBIDDEN, "ERROR_TRAFFIC_MAPPING_INFO_REJECTED");
    let detail = "the policy makes no rule of the resources that the UE requests";
    Err(problem
        .invalid_param("/ueInitResReq".to_owned(), detail.to_owned())
        .detail(detail)
        .into())
}

/// `/sm-policies/{smPolicyId}/delete` (§4.2.5).
pub(crate) async fn delete(worker: &Rc<Worker>, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let report = Value::Object(body_of(worker, request, &SM_DELETE)?);
    consumer.may_use_stored(worker, id).await?;
    let Some((association, draft)) = remove(worker, id, Kind::Sm, &report).await? else {
        worker.count(Event::SmDeleted);
        return Ok(no_content());
    };
    reassessment::after(worker, association.id, &draft);
    pds::close(worker, &association).await;
    worker.count(Event::SmDeleted);
    Ok(no_content())
}
