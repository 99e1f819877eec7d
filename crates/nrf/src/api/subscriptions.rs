//! Nnrf_NFManagement, subscriptions (TS 29.510 §6.1.3.4, §6.1.3.5).

use std::rc::Rc;

use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode};
use model::{NfType, PlmnId, ServiceName};
use sbi::identity::Actor;
use sbi::problem::Problem;
use sbi::{Request, Response};
use serde::Deserialize;

use crate::config::ForwardedOperation;
use crate::forwarding::{Destination, Question};
use crate::registry::registrar::{Done, What};
use crate::service::Worker;

/// Largest subscription.
const MAX_SIZE: usize = 256 * 1024;

/// `/subscriptions`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request, by: Actor) -> Response {
    if *request.method() != Method::POST {
        return super::method_not_allowed(request.method(), "POST");
    }
    let headers = request.headers();
    let body = sbi::json::expect_type(headers, "application/json")
        .and_then(|()| sbi::coding::decode(headers, request.body.clone(), MAX_SIZE));
    let body = match body {
        Ok(body) => body.into_bytes(),
        Err(problem) => return problem.into_response(),
    };
    if let Some(destination) = forwards_to(&worker, &body, &request) {
        return worker.forwarder().ask(&destination, &request).await;
    }
    // A hyphen would set off a PLMN (TS 29.510 §6.1.6.2.16, subscriptionId).
    let id = uuid::Uuid::new_v4().simple().to_string();
    let outcome = worker.write(What::Subscribe { id, body, by }).await;
    answer(&worker, outcome)
}

/// What of a subscription decides whose it is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    subscr_cond: SubjectCondition,
    plmn_id: Option<PlmnId>,
    hnrf_uri: Option<String>,
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
fn forwards_to(worker: &Worker, body: &[u8], request: &Request) -> Option<Destination> {
    // One that cannot be read is refused by whoever it is meant for, with a better word.
    let subject: Subject = serde_json::from_slice(body).ok()?;
    let mut services = subject.subscr_cond.service_name_list;
    services.extend(subject.subscr_cond.service_name);
    let question = Question {
        operation: ForwardedOperation::Subscription,
        target: subject.subscr_cond.nf_type.as_ref(),
        services: &services,
        home_nrf: subject.hnrf_uri.as_deref(),
        target_plmns: subject.plmn_id.as_slice(),
    };
    let destination = worker.forwarder().destination(&question, request.headers())?;
    let known_here = subject.subscr_cond.nf_type.is_some_and(|nf_type| {
        let snapshot = worker.snapshot();
        snapshot.of_type(&nf_type).is_some_and(|table| !table.is_empty())
    });
    (!destination.only_when_empty || !known_here).then_some(destination)
}

/// `/subscriptions/{subscriptionID}`.
pub(crate) async fn subscription(worker: Rc<Worker>, request: Request, by: Actor, id: String) -> Response {
    let headers = &request.head.headers;
    let what = match request.head.method {
        Method::DELETE => Ok(What::Unsubscribe { id, by }),
        Method::PATCH => sbi::json::expect_type(headers, sbi::json::JSON_PATCH)
            .and_then(|()| sbi::coding::decode(headers, request.body, MAX_SIZE))
            .map(|body| What::PatchSubscription {
                id,
                body: body.into_bytes(),
                by,
            }),
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
