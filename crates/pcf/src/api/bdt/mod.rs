//! Npcf_BDTPolicyControl: `/bdtpolicies` (TS 29.554 §5.3). A provider is offered windows of the settings, and selects one.

pub(crate) mod upkeep;

use function::sbi::{Use, unserved};
use http::{Method, StatusCode};
use pcc::bdt::{Offer, Wanted};
use sbi::name::LOCATION;
use sbi::problem::{Cause, Problem};
use sbi::response::method_not_allowed;
use sbi::{Request, Response};
use serde_json::{Map, Value};
use store::{Stored, Version};

use super::fault::Fault;
use super::owner::Consumer;
use super::{bind, id_of, json_of, negotiate, not_found, sender_of};
use crate::association::AssociationId;
use crate::association::bdt::{BdtLoad, BdtPolicy, Content, RETENTION, slot_of};
use crate::change::{TRIES, pause};
use crate::events::Event;
use crate::repository::Beside;
use crate::shape::{BDT_PATCH, BDT_REQUEST};
use crate::sources::now_ms;
use crate::worker::Worker;

/// The service, and its scope.
pub(crate) const SERVICE: &str = "npcf-bdtpolicycontrol";
/// The path of its policies.
const POLICIES: &str = "/npcf-bdtpolicycontrol/v1/bdtpolicies";

/// The feature BdtNotification_5G.
const WARNINGS: usize = 1;
/// The features of this PCF (TS 29.554 §5.8): `BdtNotification_5G`, `ES3XX`, `PatchCorrection`.
const FEATURES: &[usize] = &[WARNINGS, 2, 3];

/// `/bdtpolicies` (§4.2.2).
pub(crate) async fn collection(worker: &Worker, request: &Request) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    if worker.config().bdt.windows.is_empty() {
        return Err(unserved(SERVICE, "PCF").into());
    }
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let mut members = members_of(worker, request, ("application/json", &BDT_REQUEST))?;
    let features = negotiate(&members, FEATURES);
    let has_warnings = features.as_ref().is_some_and(|features| features.has(WARNINGS));
    members.shift_remove("suppFeat");
    if has_warnings {
        check_warnings(&members)?;
    } else {
        for member in ["notifUri", "warnNotifReq"] {
            members.shift_remove(member);
        }
    }
    let asked = Value::Object(members);
    let wanted = wanted(&asked)?;
    let owner = consumer.instance().map(str::to_owned);
    if let Some(known) = equivalent(worker, &asked, owner.as_deref()).await? {
        return Ok(see_other(worker, known));
    }
    let mut policy = BdtPolicy {
        id: AssociationId::random(),
        content: Content {
            reference: AssociationId::random().to_string(),
            request: asked,
            features: features.map(|features| features.to_string()),
            owner,
            expires: micros(wanted.to).saturating_add(RETENTION),
            ..Content::default()
        },
    };
    if let Some(known) = add(worker, &mut policy, &wanted).await? {
        return Ok(see_other(worker, known));
    }
    worker.count(Event::BdtCreated);
    let body = Map::from_iter([("bdtPolData".to_owned(), policy.data())]);
    let mut response = sbi::json::response(StatusCode::CREATED, &body);
    response
        .headers_mut()
        .set_printed(LOCATION, uri(worker, policy.id));
    bind(worker, &mut response);
    Ok(response)
}

/// Offers transfer policies, and writes the new policy. What alone is offered is selected (TS 23.502 §4.16.7.2, step 7). The policy of
/// another copy of the request that was faster; `None`: this one is written.
async fn add(
    worker: &Worker,
    policy: &mut BdtPolicy,
    wanted: &Wanted,
) -> Result<Option<AssociationId>, Fault> {
    let empty = policy.content.clone();
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        policy.content = empty.clone();
        if offer(worker, policy, wanted).await? == 0 {
            worker.count(Event::BdtNotOffered);
            let problem = Problem::of_status(StatusCode::FORBIDDEN);
            return Err(problem.detail("no transfer policy fits the request").into());
        }
        if let [only] = policy.content.offered.as_slice() {
            let id = only.policy.get("transPolicyId").and_then(Value::as_i64);
            policy.select(id);
        }
        owe(worker, policy, true);
        let beside = Beside {
            loads: reserved(worker, (None, policy.slot()), wanted.volume(), policy).await?,
            warning: None,
        };
        match worker.repository().put_bdt(policy, None, &beside).await {
            Ok(true) => return Ok(None),
            Ok(false) => worker.count(Event::Retried),
            Err(store::Error::Conflict { .. }) => {
                let content = &policy.content;
                let known = equivalent(worker, &content.request, content.owner.as_deref()).await?;
                return known.map(Some).ok_or(Fault::Overtaken);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Fault::Overtaken)
}

/// `/bdtpolicies/{bdtPolicyId}`.
pub(crate) async fn individual(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let stored = find(worker, id).await?;
    consumer
        .may_use(worker, stored.record.content.owner.as_deref())
        .await?;
    match *request.method() {
        Method::GET => Ok(sbi::json::response(StatusCode::OK, &stored.record.shown())),
        Method::PATCH => {
            let kind = ("application/merge-patch+json", &BDT_PATCH);
            let patch = members_of(worker, request, kind)?;
            let changed = patched(worker, id, &patch).await?;
            worker.count(Event::BdtUpdated);
            Ok(sbi::json::response(StatusCode::OK, &changed.shown()))
        }
        ref other => Ok(method_not_allowed(other, "GET, PATCH")),
    }
}

/// Changes a policy as its consumer wants (§4.2.3), durably.
async fn patched(worker: &Worker, id: &str, patch: &Map<String, Value>) -> Result<BdtPolicy, Fault> {
    let member = |part: &str, name: &str| {
        let nested = patch.get(part).and_then(|part| part.get(name));
        nested.or_else(|| patch.get(name)).cloned()
    };
    let selected = member("bdtPolData", "selTransPolicyId").and_then(|id| id.as_i64());
    let warns = member("bdtReqData", "warnNotifReq").and_then(|warns| warns.as_bool());
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let Stored {
            record: before,
            version,
            ..
        } = find(worker, id).await?;
        let mut after = before.clone();
        let has_warnings = has_warnings(&before);
        if let Some(warns) = warns.filter(|_| has_warnings) {
            after.want_warnings(warns);
        }
        if let Some(selected) = selected {
            let none = has_warnings && selected == 0;
            if !none && before.offered(selected).is_none() {
                return Err(wrong(
                    "/bdtPolData/selTransPolicyId",
                    "expected the identity of an offered transfer policy",
                ));
            }
            after.select((!none).then_some(selected));
        }
        let is_changed = before.content.selected != after.content.selected
            || before.content.is_invalid != after.content.is_invalid;
        owe(worker, &mut after, is_changed);
        let volume = Wanted::read(&after.content.request).map_or(0, |wanted| wanted.volume());
        let beside = Beside {
            loads: reserved(worker, (before.slot(), after.slot()), volume, &after).await?,
            warning: None,
        };
        if worker
            .repository()
            .put_bdt(&after, Some(version), &beside)
            .await?
        {
            return Ok(after);
        }
        worker.count(Event::Retried);
    }
    Err(Fault::Overtaken)
}

/// Adds offers to a policy: how many.
async fn offer(worker: &Worker, policy: &mut BdtPolicy, wanted: &Wanted) -> Result<usize, store::Error> {
    let model = &worker.config().bdt;
    let mut offers: Vec<(Offer<'_>, Option<String>)> = Vec::new();
    for offer in model.offers(wanted, now()) {
        if offers.len() >= model.max_policies {
            break;
        }
        let slot = slot_of(&offer.window.name, offer.begins);
        let Some(most) = offer.window.volume else {
            offers.push((offer, None));
            continue;
        };
        // What this policy has reserved itself is free for it.
        let own = match policy.slot() == Some(&*slot) {
            true => wanted.volume(),
            false => 0,
        };
        let load = worker.repository().bdt_load(&slot).await?;
        let held = load.map_or(0, |load| load.record.bytes).saturating_sub(own);
        if held.saturating_add(wanted.volume()) <= most.bytes() {
            offers.push((offer, Some(slot)));
        }
    }
    let count = offers.len();
    let make = offers
        .iter()
        .map(|(offer, slot)| (move |id: i64| offer.policy(id), slot.clone()));
    policy.offer(make);
    Ok(count)
}

/// What occurrences of windows have reserved after a policy has gone from one to another.
async fn reserved(
    worker: &Worker,
    (before, after): (Option<&str>, Option<&str>),
    volume: u64,
    policy: &BdtPolicy,
) -> Result<Vec<(BdtLoad, Option<Version>)>, store::Error> {
    let mut loads = Vec::new();
    if before == after {
        return Ok(loads);
    }
    for (slot, is_added) in [(before, false), (after, true)] {
        let Some(slot) = slot else { continue };
        let stored = worker.repository().bdt_load(slot).await?;
        let version = stored.as_ref().map(|stored| stored.version);
        let mut load = stored.map_or_else(
            || BdtLoad {
                slot: slot.to_owned(),
                bytes: 0,
                expires: 0,
            },
            |stored| stored.record,
        );
        load.bytes = match is_added {
            true => load.bytes.saturating_add(volume),
            false => load.bytes.saturating_sub(volume),
        };
        load.expires = load.expires.max(policy.content.expires);
        loads.push((load, version));
    }
    Ok(loads)
}

/// Marks a changed selection for the UDR, and the policy as due now.
fn owe(worker: &Worker, policy: &mut BdtPolicy, is_changed: bool) {
    let is_stored = worker.config().bdt.update_udr && worker.sources().udrs.is_some();
    if is_changed && is_stored {
        policy.content.udr.lacks = true;
        policy.content.udr.failures = 0;
    }
    policy.content.due = Some(now_ms());
}

/// The stored policy of the segment of a URI.
async fn find(worker: &Worker, id: &str) -> Result<Stored<BdtPolicy>, Fault> {
    let stored = worker.repository().bdt_policy(id_of(id)?).await?;
    stored.ok_or_else(|| not_found(id))
}

/// A policy that the same consumer has got for the same request (303, TS 29.554 §5.3.2.3.1).
async fn equivalent(
    worker: &Worker,
    asked: &Value,
    owner: Option<&str>,
) -> Result<Option<AssociationId>, store::Error> {
    let key = BdtPolicy::request_key(asked, owner);
    let found = worker.repository().bdt_of_request(key).await?;
    let known = found
        .into_iter()
        .find(|stored| stored.record.answers(asked, owner));
    Ok(known.map(|stored| stored.record.id))
}

fn see_other(worker: &Worker, id: AssociationId) -> Response {
    let mut response = Response::new(StatusCode::SEE_OTHER);
    response.headers_mut().set_printed(LOCATION, uri(worker, id));
    response
}

fn uri(worker: &Worker, id: AssociationId) -> String {
    format!("{}{POLICIES}/{id}", worker.root())
}

/// The body of a request. Its `notifUri` is the target itself, to which nothing is appended (§5.5.2.2).
fn members_of(
    worker: &Worker,
    request: &Request,
    (content_type, shape): (&str, &'static model::shape::Shape),
) -> Result<Map<String, Value>, Fault> {
    let mut value = json_of(worker, request, content_type)?;
    let sender = sender_of(request);
    worker.settle(shape, &mut value, &sender).map_err(Fault::Shape)?;
    if let Some(uri) = value.get("notifUri").and_then(Value::as_str) {
        worker.check_target("/notifUri", uri, Use::Whole)?;
    }
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Fault::NotAnObject),
    }
}

/// What a request asks for, in a window of time that is not over.
fn wanted(asked: &Value) -> Result<Wanted, Fault> {
    let wanted = Wanted::read(asked);
    let is_ahead = |wanted: &Wanted| wanted.from < wanted.to && wanted.to > now();
    wanted.filter(is_ahead).ok_or_else(|| {
        wrong(
            "/desTimeInt",
            "expected a time window that ends after it begins, and in the future",
        )
    })
}

/// A consumer that wants warnings says where.
fn check_warnings(members: &Map<String, Value>) -> Result<(), Fault> {
    let is_wanted = members.get("warnNotifReq").and_then(Value::as_bool) == Some(true);
    match is_wanted && !members.contains_key("notifUri") {
        true => {
            let problem = Problem::new(Cause::MandatoryIeMissing)
                .detail("warnings are wanted and no notifUri is given");
            Err(problem
                .invalid_param("/notifUri", "expected a URI for warnings (warnNotifReq)")
                .into())
        }
        false => Ok(()),
    }
}

fn has_warnings(policy: &BdtPolicy) -> bool {
    let features = policy.content.features.as_deref();
    let features = features.and_then(|features| ::model::SupportedFeatures::parse(features).ok());
    features.is_some_and(|features| features.has(WARNINGS))
}

fn wrong(pointer: &str, expected: &str) -> Fault {
    let problem = Problem::new(Cause::MandatoryIeIncorrect).detail(format!("{pointer}: {expected}"));
    problem.invalid_param(pointer, expected).into()
}

/// The present time in seconds since 1970.
fn now() -> i64 {
    i64::try_from(now_ms() / 1_000).unwrap_or(i64::MAX)
}

fn micros(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000)
}
