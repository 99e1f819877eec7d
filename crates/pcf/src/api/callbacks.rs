//! Notifications that the PCF receives: policy data of the UDR have changed (TS 29.519 §5.2.11), policy counters of the CHF
//! have (TS 29.594 §5.3.2.3.2), or a subscription has ended. Each one decides again and notifies the consumer of what
//! changes.

use std::rc::Rc;
use std::time::Instant;

use http::Method;
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::{Map, Value};

use super::fault::Fault;
use super::{id_of, json_of, not_found};
use crate::association::{Association, AssociationId};
use crate::events::Event;
use crate::pds::Held;
use crate::reassessment;
use crate::worker::Worker;
use sbi::problem::{Cause, Problem};

/// Changes in one notification of a UDR.
const MOST_CHANGES: usize = 64;

/// Policy data have changed: an array of `PolicyDataChangeNotification`.
pub(crate) async fn policy_data(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let changes = match json_of(worker, request, "application/json")? {
        Value::Array(changes) if changes.len() <= MOST_CHANGES => changes,
        _ => {
            let expected = format!("an array of at most {MOST_CHANGES} PolicyDataChangeNotification");
            return Err(Problem::new(Cause::InvalidMsgFormat).detail(expected).into());
        }
    };
    worker.count(Event::UdrNotified);
    // Also for an association that is still to be stored, which compares the version after that.
    for supi in changes.iter().filter_map(|change| change.get("ueId")?.as_str()) {
        worker.versions().changed(supi);
    }
    let id = id_of(id)?;
    let stored = worker.repository().get(id).await?;
    let association = stored.map(|stored| stored.record);
    let association = association.ok_or_else(|| not_found(&id.to_string()))?;
    if let Some(supi) = association.text_of("supi") {
        let version = worker.versions().changed(supi);
        if let Some(document) = whole_document(&association, supi, &changes) {
            let mut cache = worker.sources().cache.borrow_mut();
            let service = association.kind.service();
            cache.hold(supi, service, Rc::new(document), (version, Instant::now()));
        }
    }
    again(worker, id, "subscriberData", |_| {}).await?;
    Ok(no_content())
}

/// The document of the association's service, where a change has all of it.
fn whole_document(association: &Association, supi: &str, changes: &[Value]) -> Option<Value> {
    let member = match association.kind.service() {
        policy::Service::Sm => "smPolicyData",
        policy::Service::Am => "amPolicyData",
        policy::Service::Ue => "uePolicySet",
    };
    let [change] = changes else { return None };
    if change.get("ueId").is_some_and(|ue| ue != supi) || change.get("reportedFragments").is_some() {
        return None;
    }
    change
        .get(member)
        .filter(|document| document.is_object())
        .cloned()
}

/// Policy counters have changed: `SpendingLimitStatus` with the counters that have.
pub(crate) async fn spending_limits(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let mut status = json_of(worker, request, "application/json")?;
    let changed = match status.get_mut("statusInfos").map(Value::take) {
        Some(Value::Object(changed)) => changed,
        None if status.is_object() => Map::new(),
        _ => {
            let problem = Problem::new(Cause::InvalidMsgFormat).detail("expected a SpendingLimitStatus");
            return Err(problem.into());
        }
    };
    worker.count(Event::ChfNotified);
    let step = |association: &mut Association| {
        let mut held = Held::of(association);
        held.counters.extend(changed.clone());
        held.keep(association);
    };
    again(worker, id_of(id)?, "counters", step).await?;
    Ok(no_content())
}

/// The CHF has ended a subscription: `SubscriptionTerminationInfo`. Its counters hold no more.
pub(crate) async fn spending_limits_end(
    worker: &Worker,
    request: &Request,
    id: &str,
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    json_of(worker, request, "application/json")?;
    worker.count(Event::ChfTerminated);
    let step = |association: &mut Association| {
        let mut held = Held::of(association);
        held.chf = None;
        held.counters = Map::new();
        held.keep(association);
    };
    again(worker, id_of(id)?, "counters", step).await?;
    Ok(no_content())
}

/// Decides again for an association and notifies its consumer of the difference.
pub(super) async fn again(
    worker: &Worker,
    id: AssociationId,
    event: &str,
    step: impl Fn(&mut Association),
) -> Result<(), Fault> {
    match reassessment::reassess(worker, id, event, step).await? {
        true => Ok(()),
        false => Err(not_found(&id.to_string())),
    }
}
