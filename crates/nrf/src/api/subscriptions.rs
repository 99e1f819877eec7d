//! Nnrf_NFManagement, subscriptions (TS 29.510 §6.1.3.4, §6.1.3.5).

use std::borrow::Cow;

use function::sbi::Call;
use http::{Method, StatusCode};
use model::{NfType, PlmnId, ServiceName};
use sbi::identity::Actor;
use sbi::name::LOCATION;
use sbi::problem::{Cause, Problem};
use sbi::response::no_content;
use sbi::{Request, Response};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::ForwardedOperation;
use crate::events::Event;
use crate::forwarding::{Abroad, Destination, Question};
use crate::registrar::{Done, What};
use crate::worker::Worker;

/// Subscribes.
pub(crate) async fn subscribe(call: Call<Worker>) -> Result<Response, Problem> {
    let (worker, request, by) = (&call.worker, &call.request, call.sender);
    let headers = request.headers();
    sbi::json::expect_type(headers, "application/json")?;
    let body = super::body_of(worker, headers, request.body.clone(), worker.max_subscription())?;
    if let Some(destination) = forwards_to(worker, &body, request)? {
        // A sender that may not subscribe here may not subscribe elsewhere in the name of this NRF.
        may_subscribe(&by, &body).inspect_err(|_| worker.counters().count(Event::IdentityRefused))?;
        let response = worker.forwarder().ask(&destination, request).await;
        return Ok(if destination.is_home {
            made_abroad(worker, &destination, &body, response)
        } else {
            response
        });
    }
    // A hyphen would set off a PLMN (TS 29.510 §6.1.6.2.16, subscriptionId).
    let id = uuid::Uuid::new_v4().simple().to_string();
    let source = request.peer.addr.ip();
    let done = worker.write(What::Subscribe { id, body, source, by }).await?;
    Ok(answer(worker, done))
}

/// Whether a sender may subscribe as the instance that the subscription names.
fn may_subscribe(by: &Actor, body: &[u8]) -> Result<(), Problem> {
    let subject = subject_of(body).unwrap_or_default();
    by.may_change(subject.req_nf_instance_id.as_deref().or(by.instance()))
}

/// Members of a subscription that decide which NRF serves it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    subscr_cond: SubjectCondition,
    plmn_id: Option<PlmnId>,
    nid: Option<String>,
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

/// What decides which NRF serves a subscription; `None` where that cannot be read. A member that is `null` is absent.
fn subject_of(body: &[u8]) -> Option<Subject> {
    let mut document: serde_json::Value = serde_json::from_slice(body).ok()?;
    for part in ["/subscrCond", ""] {
        if let Some(members) = document
            .pointer_mut(part)
            .and_then(serde_json::Value::as_object_mut)
        {
            members.retain(|_, value| !value.is_null());
        }
    }
    Subject::deserialize(document).ok()
}

/// Returns the other NRF that serves the subscription: that of the network that `plmnId` and `hnrfUri` name
/// (TS 29.510 §5.2.2.5.3), or that of a rule (§5.2.2.5.4). The answer of the latter names a resource at that
/// NRF, where the consumer changes and ends it.
fn forwards_to(worker: &Worker, body: &[u8], request: &Request) -> Result<Option<Destination>, Problem> {
    // An invalid subscription is refused by the general path, which names the fault.
    let Some(subject) = subject_of(body) else {
        return Ok(None);
    };
    worker
        .check_home_nrf(subject.hnrf_uri.as_deref())
        .map_err(|expected| {
            Problem::new(Cause::OptionalIeIncorrect)
                .detail("requests to this home NRF are not allowed")
                .invalid_param("/hnrfUri", expected)
        })?;
    let mut services = subject.subscr_cond.service_name_list;
    services.extend(subject.subscr_cond.service_name);
    let question = Question {
        operation: ForwardedOperation::Subscription,
        target: subject.subscr_cond.nf_type.as_ref(),
        services: &services,
        home_nrf: subject.hnrf_uri.as_deref(),
        // With `nid` it is that of an SNPN, which has no home NRF.
        target_plmns: subject
            .plmn_id
            .as_slice()
            .get(usize::from(subject.nid.is_some())..)
            .unwrap_or_default(),
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

/// The answer of the NRF of another network, with an id and a URI by which the consumer finds its subscription here.
fn made_abroad(worker: &Worker, destination: &Destination, asked: &[u8], response: Response) -> Response {
    let subject = subject_of(asked).unwrap_or_default();
    let Some(plmn) = subject
        .plmn_id
        .filter(|_| response.status() == StatusCode::CREATED)
    else {
        return response;
    };
    let location = response.headers().get(LOCATION);
    let root = match &*destination.targets {
        [only] => Some(only.clone()),
        _ => location
            .and_then(|uri| uri.to_str().ok())
            .and_then(crate::forwarding::root_of),
    };
    let Some(root) = root else { return response };
    let (head, body) = response.into_parts();
    let body = body.into_bytes();
    let mut document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = document.get("subscriptionId").and_then(serde_json::Value::as_str);
    let Some(id) = id.map(|id| {
        let id = id.to_owned();
        Abroad { root, id }.shown(&plmn)
    }) else {
        return Problem::new(Cause::NrfNotReachable)
            .detail("the NRF of the other network gave the subscription no id")
            .into_response();
    };
    document["subscriptionId"] = id.clone().into();
    let mut response = sbi::json::response(head.status, &document);
    let uri = format!("{}/nnrf-nfm/v1/subscriptions/{id}", worker.root());
    response.headers_mut().set_printed(LOCATION, uri);
    response
}

/// Changes or ends a subscription at the NRF of another network.
async fn change_abroad(
    worker: &Worker,
    request: &Request,
    shown: &str,
    abroad: Abroad,
) -> Result<Response, Problem> {
    let root = abroad.root.to_string();
    let unknown = || crate::registrar::no_subscription(shown);
    worker.check_home_nrf(Some(&root)).map_err(|_| unknown())?;
    let routes = worker.forwarder().routes();
    let destination = routes.home(abroad.root, request.headers()).ok_or_else(unknown)?;
    let path = format!("/nnrf-nfm/v1/subscriptions/{}", abroad.id);
    let response = worker.forwarder().ask_for(&destination, request, &path).await;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let mut document: serde_json::Value = serde_json::from_slice(&body.into_bytes()).unwrap_or_default();
    if let Some(document) = document.as_object_mut() {
        document.insert("subscriptionId".to_owned(), shown.into());
    }
    Ok(sbi::json::response(head.status, &document))
}

/// Changes or ends a subscription.
pub(crate) async fn change(call: Call<Worker>) -> Result<Response, Problem> {
    let (worker, request, by) = (&call.worker, call.request, call.sender);
    let [id, ..] = call.parameters;
    if let Some(elsewhere) = Abroad::parse(&id) {
        return change_abroad(worker, &request, &id, elsewhere).await;
    }
    if *request.method() == Method::DELETE {
        return Ok(answer(worker, worker.write(What::Unsubscribe { id, by }).await?));
    }
    let headers = &request.head.fields;
    super::expect_patch(worker, headers)?;
    let body = super::body_of(worker, headers, request.body, worker.max_subscription())?;
    let asked = validity_asked(&body);
    let done = worker.write(What::PatchSubscription { id, body, by }).await?;
    Ok(match done {
        // A validity granted as requested is answered with 204 (TS 29.510 §5.2.2.5.6).
        Done::SubscriptionChanged(subscription) if asked == Some(subscription.valid_until) => no_content(),
        done => answer(worker, done),
    })
}

/// The validity that a patch of nothing else asks for.
fn validity_asked(patch: &[u8]) -> Option<OffsetDateTime> {
    #[derive(Deserialize)]
    struct Operation<'a> {
        path: Cow<'a, str>,
        value: Option<serde_json::Value>,
    }
    let operations: Vec<Operation<'_>> = serde_json::from_slice(patch).ok()?;
    let [operation] = operations.as_slice() else {
        return None;
    };
    let value = operation
        .value
        .as_ref()
        .filter(|_| operation.path == "/validityTime")?;
    OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok()
}

fn answer(worker: &Worker, done: Done) -> Response {
    match done {
        Done::Subscribed(subscription) => {
            let mut response = sbi::json::response(StatusCode::CREATED, &subscription.document);
            let uri = format!("{}/nnrf-nfm/v1/subscriptions/{}", worker.root(), subscription.id);
            response.headers_mut().set_printed(LOCATION, uri);
            response
        }
        Done::SubscriptionChanged(subscription) => {
            sbi::json::response(StatusCode::OK, &subscription.document)
        }
        _ => no_content(),
    }
}
