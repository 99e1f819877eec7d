//! `/transactions` of 3gpp-device-triggering (TS 29.122 §4.4.6, §5.7).

use std::time::Duration;

use diameter::proto::{AvpWriter, known};
use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use serde_json::{Value, json};
use store::Stored;

use super::features::TRIGGERING;
use super::{
    Answer, LISTED, body_of, count_in, created, forbidden, not_found, refused_by_hss, stored,
    test_notifications, with_self,
};
use crate::clock::{after, now};
use crate::events::Event;
use crate::record::{Id, Scs, Trigger};
use crate::s6m::Served;
use crate::spans::Caller;
use crate::t4::{self, Action};
use crate::worker::Worker;
use crate::{s6m, s6t, shape};

const TYPE: &str = "application/json";
/// Members that the SCEF alone sets.
const READ_ONLY: [&str; 2] = ["self", "deliveryResult"];
/// References that are tried for a trigger, of four billion.
const TRIES: usize = 8;
/// Replacements of a trigger that the SMS-SC has not answered.
const UNANSWERED: usize = 4;

/// Creates a trigger, once the SMS-SC has accepted it.
pub(crate) async fn create(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let scs = &call.parameters[0];
    let document = checked(worker, body_of(worker, &call.request, TYPE)?)?;
    let trigger = accept(worker, Caller::of(&call.request), scs, document, None).await?;
    let uri = worker.shared().trigger_uri(&trigger);
    if TRIGGERING.asks_for_test(&trigger.document) {
        test_notifications(worker, trigger.id.to_string(), &trigger.document, &uri).await;
    }
    Ok(created(&uri, &shown(&trigger, &uri)))
}

/// Has an SMS-SC accept a trigger, of an SCS/AS or of an SCS.
pub(crate) async fn accept(
    worker: &Worker,
    caller: Caller<'_>,
    holder: &str,
    document: Value,
    scs: Option<Scs>,
) -> Result<Trigger, Problem> {
    require_sender(worker)?;
    let quota = &worker.shared().triggers;
    let (table, most) = (&worker.repository().triggers, worker.config().limits.triggers);
    count_in(
        worker,
        quota,
        table,
        Trigger::SCS,
        (holder, most),
        "QUOTA_EXCEEDED",
    )
    .await?;
    let accepted = submit_new(worker, caller, holder, document, scs).await;
    match &accepted {
        Ok(_) => worker.count(Event::Triggered),
        Err(_) => quota.sub(holder),
    }
    accepted
}

async fn submit_new(
    worker: &Worker,
    caller: Caller<'_>,
    holder: &str,
    document: Value,
    scs: Option<Scs>,
) -> Result<Trigger, Problem> {
    let served = query(worker, caller, &document).await?;
    let trigger = reserve(worker, (holder, scs), document, &served).await?;
    let submitted = submit(worker, caller, &trigger, Action::Trigger, &served.nodes).await;
    let repository = worker.repository();
    let sms_sc = match submitted {
        Ok(sms_sc) => sms_sc,
        Err(refused) => {
            let removed = repository.remove(&repository.triggers, &trigger.id.key()).await;
            removed.map_err(store_problem)?;
            return Err(refused.problem);
        }
    };
    let confirm = |trigger: &mut Trigger| {
        trigger.pending = false;
        trigger.sms_sc.clone_from(&sms_sc);
    };
    // A report may have ended it meanwhile.
    change(worker, trigger.id, confirm).await?;
    Ok(trigger)
}

/// Writes a new trigger before the SMS-SC knows of it: a report that comes at once finds it.
async fn reserve(
    worker: &Worker,
    (holder, scs): (&str, Option<Scs>),
    document: Value,
    served: &Served,
) -> Result<Trigger, Problem> {
    let repository = worker.repository();
    for _ in 0..TRIES {
        let trigger = Trigger {
            id: Id::new(now()),
            scs: holder.to_owned(),
            ends: ends(worker, &document),
            document: document.clone(),
            imsi: served.imsi.clone(),
            sms_sc: String::new(),
            references: vec![reference()],
            pending: true,
            replaced: false,
            scs_of_tsp: scs.clone(),
        };
        let inserted = repository.insert(&repository.triggers, &trigger).await;
        if inserted.map_err(store_problem)? {
            return Ok(trigger);
        }
    }
    Err(no_reference())
}

fn reference() -> u32 {
    let (_, chance) = uuid::Uuid::new_v4().as_u64_pair();
    chance as u32
}

/// When no report about a trigger is awaited any more.
fn ends(worker: &Worker, document: &Value) -> u64 {
    let validity = document.get("validityPeriod").and_then(Value::as_u64);
    let grace = worker.config().triggering.report_time.duration();
    after(Duration::from_secs(validity.unwrap_or_default()).saturating_add(grace))
}

/// Where the HSS says the device is served.
async fn query(worker: &Worker, caller: Caller<'_>, document: &Value) -> Result<Served, Problem> {
    worker.count(Event::TriggerMessage);
    let answer = worker
        .ask_hss(caller, s6m::query(worker.config(), document))
        .await?;
    if let Some(refusal) = s6t::refusal(&answer) {
        return Err(refused_by_hss(refusal));
    }
    match s6m::served(&answer) {
        Ok(Some(served)) => Ok(served),
        Ok(None) => Err(forbidden(
            "OPERATION_PROHIBITED",
            "the device has no short messages, or they are barred",
        )),
        Err(fault) => {
            tracing::warn!(%fault, "the HSS has answered a SIR with something else than a device");
            let problem = Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR);
            Err(problem.detail("the answer of the HSS cannot be read"))
        }
    }
}

/// Why a DTR was of no use.
struct Refused {
    problem: Problem,
    /// The SMS-SC does not have the trigger of this DTR.
    is_certain: bool,
}

/// Sends a DTR, which brings the last reference of the trigger unless it is a recall; returns the SMS-SC that has accepted it.
async fn submit(
    worker: &Worker,
    caller: Caller<'_>,
    trigger: &Trigger,
    action: Action,
    nodes: &AvpWriter,
) -> Result<String, Refused> {
    worker.count(Event::TriggerMessage);
    let reference = trigger.references.last().copied();
    let reference = reference.filter(|_| action != Action::Recall);
    let message = t4::submit(worker.config(), trigger, action, reference, nodes);
    let certain = |problem| Refused {
        problem,
        is_certain: true,
    };
    let answer = worker
        .ask(caller, &worker.shared().sms_sc, message)
        .await
        .map_err(certain)?;
    let answer = answer.map_err(|error| Refused {
        problem: Problem::of_status(StatusCode::SERVICE_UNAVAILABLE)
            .detail("the SMS-SC does not answer; try later"),
        is_certain: error.is_unsent(),
    })?;
    match s6t::refusal(&answer) {
        None => Ok(answer
            .get(known::ORIGIN_HOST)
            .ok()
            .flatten()
            .unwrap_or_default()
            .to_owned()),
        Some(refusal) => Err(refused_by_sms_sc(action, refusal)),
    }
}

/// What an SCS/AS learns of a refusal by the SMS-SC (TS 29.337 §7.3).
fn refused_by_sms_sc(action: Action, (vendor, code): (u32, u32)) -> Refused {
    tracing::info!(vendor, code, "the SMS-SC has refused a request");
    let detail = format!("the SMS-SC answers {code}");
    let problem = match (vendor, code) {
        (known::VENDOR_3GPP, 5001) => Problem::with_cause(StatusCode::NOT_FOUND, "USER_UNKNOWN"),
        (known::VENDOR_3GPP, t4::NOT_PENDING) => {
            Problem::with_cause(StatusCode::NOT_FOUND, "ALREADY_DELIVERED")
        }
        (known::VENDOR_3GPP, t4::CONGESTION) | (0, 3002 | 3004) => {
            Problem::of_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        _ => Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR),
    };
    // An SMS-SC takes the replacement of a trigger that it has delivered as a new one (TS 23.682 §5.2.3).
    let is_stored = action == Action::Replace && (vendor, code) == (known::VENDOR_3GPP, t4::NOT_PENDING);
    Refused {
        problem: problem.detail(detail),
        is_certain: !is_stored,
    }
}

/// Changes a trigger as it is stored now; `None` if it has ended.
async fn change(
    worker: &Worker,
    id: Id,
    with: impl Fn(&mut Trigger),
) -> Result<Option<Stored<Trigger>>, Problem> {
    let repository = worker.repository();
    let table = &repository.triggers;
    while let Some(before) = table.get(&id.key()).await.map_err(store_problem)? {
        let mut changed = before.record.clone();
        with(&mut changed);
        let updated = repository.update(table, &before, changed).await;
        if let Some(changed) = updated.map_err(store_problem)? {
            return Ok(Some(changed));
        }
    }
    Ok(None)
}

/// Lists the triggers of an SCS/AS whose delivery is not reported yet.
pub(crate) async fn list(call: Call<Worker>) -> Answer {
    let (worker, scs) = (&*call.worker, &call.parameters[0]);
    let found = find_by_holder(worker, scs).await?;
    let own = found.iter().filter(|one| !one.pending);
    let shown: Vec<Value> = own
        .map(|one| shown(one, &worker.shared().trigger_uri(one)))
        .collect();
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// The triggers of an SCS/AS, or of an SCS, 10,000 at most.
pub(crate) async fn find_by_holder(worker: &Worker, holder: &str) -> Result<Vec<Stored<Trigger>>, Problem> {
    let table = &worker.repository().triggers;
    let found = table.find(Trigger::SCS, holder.as_bytes(), LISTED).await;
    let mut found = found.map_err(store_problem)?;
    found.retain(|one| one.scs == holder);
    Ok(found)
}

/// Reads a trigger.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let uri = worker.shared().trigger_uri(&found);
    Ok(sbi::json::response(StatusCode::OK, &shown(&found, &uri)))
}

/// Replaces a trigger that is not delivered yet (TS 23.682 §5.2.3).
pub(crate) async fn replace(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let document = body_of(worker, &call.request, TYPE)?;
    replace_by(worker, Caller::of(&call.request), found, document).await
}

/// Changes a trigger that is not delivered yet (`DeviceTriggeringPatch`, RFC 7396).
pub(crate) async fn modify(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let patch = body_of(worker, &call.request, TYPE)?;
    let mut document = found.document.clone();
    sbi::json::merge(&mut document, &patch, worker.config().max_body_size.as_usize())?;
    replace_by(worker, Caller::of(&call.request), found, document).await
}

async fn replace_by(worker: &Worker, caller: Caller<'_>, found: Stored<Trigger>, document: Value) -> Answer {
    let document = checked(worker, document)?;
    let tests = TRIGGERING.begins_to_ask(&document, &found.document);
    let shown_as = exchange(worker, caller, found, document, None).await?;
    let uri = worker.shared().trigger_uri(&shown_as);
    if tests {
        test_notifications(worker, shown_as.id.to_string(), &shown_as.document, &uri).await;
    }
    Ok(sbi::json::response(StatusCode::OK, &shown(&shown_as, &uri)))
}

/// Has the SMS-SC replace a trigger by another one for the same device.
pub(crate) async fn exchange(
    worker: &Worker,
    caller: Caller<'_>,
    found: Stored<Trigger>,
    document: Value,
    scs: Option<Scs>,
) -> Result<Trigger, Problem> {
    let same = |name: &str| document.get(name) == found.document.get(name);
    if !same("externalId") || !same("msisdn") {
        return Err(
            Problem::new(Cause::ModificationNotAllowed).detail("the device of a trigger cannot be changed")
        );
    }
    require_sender(worker)?;
    let served = query(worker, caller, &document).await?;
    let (begun, new) = begin_replacing(worker, &found).await?;
    let replacement = Trigger {
        document,
        scs_of_tsp: scs,
        ..begun
    };
    let sms_sc = match submit(worker, caller, &replacement, Action::Replace, &served.nodes).await {
        Ok(sms_sc) => sms_sc,
        Err(refused) => {
            if refused.is_certain {
                let forget = |trigger: &mut Trigger| trigger.references.retain(|one| *one != new);
                change(worker, found.id, forget).await?;
            }
            return Err(refused.problem);
        }
    };
    let ends = ends(worker, &replacement.document);
    let confirm = |trigger: &mut Trigger| {
        trigger.document = replacement.document.clone();
        trigger.scs_of_tsp.clone_from(&replacement.scs_of_tsp);
        trigger.references = vec![new];
        trigger.sms_sc.clone_from(&sms_sc);
        trigger.replaced = true;
        trigger.ends = ends;
    };
    let changed = change(worker, found.id, confirm).await?;
    Ok(changed.map_or(
        Trigger {
            replaced: true,
            ..replacement.clone()
        },
        |changed| changed.record,
    ))
}

/// Writes a new reference of a replacement, and returns it with the trigger, before the SMS-SC knows of it: after a crash its report finds the trigger.
async fn begin_replacing(worker: &Worker, found: &Trigger) -> Result<(Trigger, u32), Problem> {
    if found.references.len() > UNANSWERED {
        return Err(Problem::with_cause(StatusCode::CONFLICT, "SENDING")
            .detail("the SMS-SC has not answered earlier replacements of this trigger"));
    }
    let repository = worker.repository();
    let table = &repository.triggers;
    for _ in 0..TRIES {
        let before = table.get(&found.id.key()).await.map_err(store_problem)?;
        let (before, new) = (before.ok_or_else(ended)?, reference());
        let mut changed = before.record.clone();
        changed.references.push(new);
        let updated = repository.update(table, &before, changed).await;
        if let Some(changed) = updated.map_err(store_problem)? {
            return Ok((changed.record, new));
        }
    }
    Err(no_reference())
}

fn no_reference() -> Problem {
    Problem::new(Cause::InsufficientResources).detail("no reference for a trigger is free")
}

/// Recalls a trigger that is not delivered yet (TS 23.682 §5.2.2).
pub(crate) async fn recall(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    withdraw(worker, Caller::of(&call.request), &found).await?;
    let mut shown = with_self(&found.document, &worker.shared().trigger_uri(&found));
    shown["deliveryResult"] = json!("TERMINATE");
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Has the SMS-SC delete a trigger, which ends it without a report.
pub(crate) async fn withdraw(
    worker: &Worker,
    caller: Caller<'_>,
    found: &Stored<Trigger>,
) -> Result<(), Problem> {
    let nodes = AvpWriter::with_capacity(0);
    let recalled = submit(worker, caller, found, Action::Recall, &nodes).await;
    recalled.map_err(|refused| refused.problem)?;
    let repository = worker.repository();
    let removed = repository.remove(&repository.triggers, &found.id.key()).await;
    if !removed.map_err(store_problem)? {
        return Err(ended());
    }
    worker.shared().triggers.sub(&found.scs);
    worker.count(Event::Recalled);
    Ok(())
}

/// The trigger of a path, where its SCS/AS has it.
async fn existing(worker: &Worker, [scs, id, _]: &[String; 3]) -> Result<Stored<Trigger>, Problem> {
    let id = Id::parse(id).ok_or_else(|| not_found("transaction"))?;
    let found = worker.repository().triggers.get(&id.key()).await;
    let found = found.map_err(store_problem)?;
    found
        .filter(|one| one.scs == *scs && !one.pending)
        .ok_or_else(ended)
}

pub(crate) fn ended() -> Problem {
    Problem::new(Cause::ResourceNotFound)
        .detail("no such trigger is pending: its delivery was reported, or it never existed")
}

fn shown(trigger: &Trigger, uri: &str) -> Value {
    let mut shown = with_self(&trigger.document, uri);
    shown["deliveryResult"] = json!(if trigger.replaced { "REPLACED" } else { "TRIGGERED" });
    shown
}

/// Refuses triggers without the address of their sender.
fn require_sender(worker: &Worker) -> Result<(), Problem> {
    match worker.config().triggering.sme_address.is_empty() {
        true => Err(forbidden(
            "OPERATION_PROHIBITED",
            "devices are not triggered here: triggering.smeAddress is not set",
        )),
        false => Ok(()),
    }
}

/// A body that can be submitted.
fn checked(worker: &Worker, document: Value) -> Result<Value, Problem> {
    shape::trigger(&document)?;
    worker.check_target(&document)?;
    Ok(stored(document, &READ_ONLY, Some(&TRIGGERING)))
}
