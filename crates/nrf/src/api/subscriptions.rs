//! Nnrf_NFManagement, subscriptions (TS 29.510 §6.1.3.4, §6.1.3.5).

use std::rc::Rc;

use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode};
use model::{NfType, PlmnId, ServiceName};
use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde::Deserialize;

use crate::config::ForwardedOperation;
use crate::events::Event;
use crate::forwarding::{Destination, Question};
use crate::registry::registrar::{Done, What};
use crate::service::Worker;

/// `/subscriptions`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request, by: Actor) -> Response {
    if *request.method() != Method::POST {
        return super::method_not_allowed(request.method(), "POST");
    }
    let headers = request.headers();
    let body = sbi::json::expect_type(headers, "application/json")
        .and_then(|()| super::body_of(&worker, headers, request.body.clone(), worker.max_subscription()));
    let body = match body {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    match forwards_to(&worker, &body, &request) {
        Ok(Some(destination)) => {
            // Who is not let in here is not let in there in the name of this NRF.
            if let Err(problem) = may_subscribe(&by, &body) {
                worker.counters().count(Event::IdentityRefused);
                return problem.into_response();
            }
            return worker.forwarder().ask(&destination, &request).await;
        }
        Ok(None) => {}
        Err(problem) => return problem.into_response(),
    }
    // A hyphen would set off a PLMN (TS 29.510 §6.1.6.2.16, subscriptionId).
    let id = uuid::Uuid::new_v4().simple().to_string();
    let source = request.peer.addr.ip();
    let outcome = worker.write(What::Subscribe { id, body, source, by }).await;
    answer(&worker, outcome)
}

/// Whether a sender may subscribe as the instance that the subscription names.
fn may_subscribe(by: &Actor, body: &[u8]) -> Result<(), Problem> {
    let subject: Subject = serde_json::from_slice(body).unwrap_or_default();
    by.may_change(subject.req_nf_instance_id.as_deref().or(by.instance()))
}

/// What of a subscription decides whose it is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    subscr_cond: SubjectCondition,
    plmn_id: Option<PlmnId>,
    hnrf_uri: Option<String>,
    req_nf_instance_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SubjectCondition {
    nf_type: Option<NfType>,
    service_name: Option<ServiceName>,
    service_name_list: Vec<ServiceName>,
}

/// Another NRF, when the subscription is to be there: the network's that `plmnId` and `hnrfUri` name
/// (TS 29.510 §5.2.2.5.3), or that of a rule (§5.2.2.5.4). Its answer names its own resource, which the
/// consumer changes and ends there.
fn forwards_to(worker: &Worker, body: &[u8], request: &Request) -> Result<Option<Destination>, Problem> {
    // One that cannot be read is refused by whoever it is meant for, with a better word.
    let Ok(subject) = serde_json::from_slice::<Subject>(body) else {
        return Ok(None);
    };
    worker
        .check_home_nrf(subject.hnrf_uri.as_deref())
        .map_err(|expected| {
            Problem::new(Cause::OptionalIeIncorrect)
                .detail("the home NRF is not asked there")
                .invalid_param("/hnrfUri", expected)
        })?;
    let mut services = subject.subscr_cond.service_name_list;
    services.extend(subject.subscr_cond.service_name);
    let question = Question {
        operation: ForwardedOperation::Subscription,
        target: subject.subscr_cond.nf_type.as_ref(),
        services: &services,
        home_nrf: subject.hnrf_uri.as_deref(),
        target_plmns: subject.plmn_id.as_slice(),
    };
    let Some(destination) = worker.forwarder().destination(&question, request.headers()) else {
        return Ok(None);
    };
    let known_here = subject.subscr_cond.nf_type.is_some_and(|nf_type| {
        let snapshot = worker.snapshot();
        snapshot.of_type(&nf_type).is_some_and(|table| !table.is_empty())
    });
    Ok((!destination.only_when_empty || !known_here).then_some(destination))
}

/// `/subscriptions/{subscriptionID}`.
pub(crate) async fn subscription(worker: Rc<Worker>, request: Request, by: Actor, id: String) -> Response {
    let headers = &request.head.headers;
    let what = match request.head.method {
        Method::DELETE => Ok(What::Unsubscribe { id, by }),
        Method::PATCH => sbi::json::expect_type(headers, sbi::json::JSON_PATCH)
            .and_then(|()| super::body_of(&worker, headers, request.body, worker.max_subscription()))
            .map(|body| What::PatchSubscription { id, body, by }),
        ref other => return super::method_not_allowed(other, "PATCH, DELETE"),
    };
    let outcome = match what {
        Ok(what) => worker.write(what).await,
        Err(problem) => Err(problem),
    };
    answer(&worker, outcome)
}

fn answer(worker: &Worker, outcome: Result<Done, Problem>) -> Response {
    match outcome {
        Ok(Done::Subscribed(subscription)) => {
            let mut response = sbi::json::response(StatusCode::CREATED, &subscription.document);
            let uri = format!("{}/nnrf-nfm/v1/subscriptions/{}", worker.root(), subscription.id);
            if let Ok(location) = HeaderValue::from_str(&uri) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }
        Ok(Done::SubscriptionChanged(subscription)) => {
            sbi::json::response(StatusCode::OK, &subscription.document)
        }
        Ok(_) => super::management::no_content(),
        Err(problem) => problem.into_response(),
    }
}
