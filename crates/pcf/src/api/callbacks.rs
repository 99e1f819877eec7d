//! Notifications that the PCF receives: policy data of the UDR have changed (TS 29.519 §5.2.11), policy counters of the CHF
//! have (TS 29.594 §5.3.2.3.2), or a subscription has ended. Each one decides again and notifies the consumer of what
//! changes.
//!
//! Producers send no tokens. Each subscription has a random path, which its producer alone has got, and what comes there is a
//! hint: the UDR is queried, the CHF asked for the counters of the subscription, and their answers count.

use http::Method;
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::{Map, Value};

use super::fault::Fault;
use super::{json_of, not_found};
use crate::association::callbacks::{self, Producer};
use crate::association::ue_policy::Delivery;
use crate::association::{Association, AssociationId};
use crate::binding;
use crate::events::Event;
use crate::pds::{self, Held};
use crate::reassessment;
use crate::sources::chf::Present;
use crate::worker::Worker;
use sbi::problem::{Cause, Problem};

/// Changes in one notification of a UDR.
const MOST_CHANGES: usize = 64;

/// The association that a producer may notify of at a path with this segment.
pub(super) async fn found(
    worker: &Worker,
    producer: Producer,
    segment: &str,
) -> Result<Option<Association>, Fault> {
    // An association that an earlier release has written has its own identity there.
    let earlier = AssociationId::parse(segment).filter(|_| segment.contains('-'));
    let stored = match earlier {
        Some(id) => worker.repository().get(id).await?,
        None => binding::named(worker, &callbacks::name(producer, segment)).await?,
    };
    let is_open = |association: &Association| match (callbacks::token(association, producer), earlier) {
        (Some(token), _) => token == segment,
        (None, Some(_)) => is_subscribed(association, producer),
        (None, None) => false,
    };
    Ok(stored.map(|stored| stored.record).filter(is_open))
}

/// Refuses a notification whose sender proves to be another NF than such a producer: by its certificate or its assertion, and the
/// type that the NRF knows it by. While no NRF answers the path opens it.
pub(crate) async fn check_sender(
    worker: &Worker,
    request: &Request,
    producer: Producer,
) -> Result<(), Fault> {
    let sender = worker.actor(request, &[])?;
    let Some(instance) = sender.instance() else {
        return Ok(());
    };
    match worker.peers().nf_type_of(instance).await {
        Some(nf_type) if nf_type != producer.nf_type() && nf_type != "SCP" => {
            worker.count(Event::Denied);
            let detail = format!(
                "{instance} is of type {nf_type}, this notification is of {}",
                producer.nf_type()
            );
            Err(Problem::new(Cause::Forbidden).detail(detail).into())
        }
        _ => Ok(()),
    }
}

fn is_subscribed(association: &Association, producer: Producer) -> bool {
    let held = Held::of(association);
    match producer {
        Producer::Udr => held.udr.is_some(),
        Producer::Chf => held.chf.is_some(),
        Producer::Amf => Delivery::of(association).is_some_and(|delivery| delivery.subscription.is_some()),
    }
}

/// Policy data have changed: an array of `PolicyDataChangeNotification`.
pub(crate) async fn policy_data(
    worker: &Worker,
    request: &Request,
    segment: &str,
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    match json_of(worker, request, "application/json")? {
        Value::Array(changes) if changes.len() <= MOST_CHANGES => {}
        _ => {
            let expected = format!("an array of at most {MOST_CHANGES} PolicyDataChangeNotification");
            return Err(Problem::new(Cause::InvalidMsgFormat).detail(expected).into());
        }
    }
    let Some(association) = found(worker, Producer::Udr, segment).await? else {
        // An association that is still to be stored compares the version after that.
        return match worker.versions().changed_before(segment) {
            true => {
                worker.count(Event::UdrNotified);
                Ok(no_content())
            }
            false => Err(not_found(segment)),
        };
    };
    worker.count(Event::UdrNotified);
    if let Some(supi) = association.text_of("supi") {
        // What workers have cached is queried again.
        worker.versions().changed(supi);
    }
    again(worker, association.id, "subscriberData", |_| {}).await?;
    Ok(no_content())
}

/// Policy counters have changed: `SpendingLimitStatus` with the counters that have.
pub(crate) async fn spending_limits(
    worker: &Worker,
    request: &Request,
    segment: &str,
) -> Result<Response, Fault> {
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
    let association = found(worker, Producer::Chf, segment).await?;
    let association = association.ok_or_else(|| not_found(segment))?;
    worker.count(Event::ChfNotified);
    let step = async |association: &mut Association| {
        let present = pds::counters_now(worker, association).await;
        let mut held = Held::of(association);
        match present {
            Present::Counters(counters) => held.counters = counters,
            // One that does not say has notified at a path that it alone knows.
            Present::Gone | Present::Unknown => held.counters.extend(changed.clone()),
        }
        held.keep(association);
    };
    counters_changed(worker, association.id, step).await
}

/// The CHF has ended a subscription: `SubscriptionTerminationInfo`. Its counters hold no more.
pub(crate) async fn spending_limits_end(
    worker: &Worker,
    request: &Request,
    segment: &str,
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    json_of(worker, request, "application/json")?;
    let association = found(worker, Producer::Chf, segment).await?;
    let association = association.ok_or_else(|| not_found(segment))?;
    worker.count(Event::ChfTerminated);
    let step = async |association: &mut Association| {
        let present = pds::counters_now(worker, association).await;
        let mut held = Held::of(association);
        match present {
            Present::Counters(counters) => held.counters = counters,
            Present::Gone | Present::Unknown => {
                held.chf = None;
                held.counters = Map::new();
            }
        }
        held.keep(association);
    };
    counters_changed(worker, association.id, step).await
}

async fn counters_changed(
    worker: &Worker,
    id: AssociationId,
    step: impl AsyncFn(&mut Association),
) -> Result<Response, Fault> {
    match reassessment::reassess_after(worker, id, "counters", step).await? {
        true => Ok(no_content()),
        false => Err(not_found(&id.to_string())),
    }
}

/// Decides again for an association that is written, because its data have changed meanwhile. Where that fails the association stands
/// with the decision that its consumer gets in the answer: without the answer it could never end it.
pub(super) async fn after_creation(worker: &Worker, id: AssociationId) {
    if let Err(fault) = again(worker, id, "subscriberData", |_| {}).await {
        tracing::warn!(?fault, %id, "data that changed during a creation were not decided on");
    }
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
