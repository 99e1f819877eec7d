//! One file per resource of Nbsf_Management: parse the request, call the domain, write the answer. What the resources of
//! PCFs have in common is in [`bindings`].

pub(crate) mod bindings;
pub(crate) mod fault;
mod mbs;
pub(crate) mod nf_status;
pub(crate) mod sessions;
pub(crate) mod subscriptions;
mod ues;

use http::StatusCode;
use model::SupportedFeatures;
use model::shape::Shape;
use model::tolerance::Dropped;
use sbi::name::{LOCATION, USER_AGENT};
use sbi::{Request, Response};
use serde_json::Value;

use crate::binding::{BindingId, Document, shape};
use crate::config::Tolerance;
use crate::worker::Worker;

use self::fault::Fault;
pub(crate) use self::sessions::query_of;
use sbi::response::no_content;

fn not_found(id: &str) -> Fault {
    Fault::NotFound(id.to_owned())
}

fn id_of(id: &str) -> Result<BindingId, Fault> {
    BindingId::parse(id).ok_or_else(|| not_found(id))
}

/// The body as JSON.
fn body_of(worker: &Worker, request: &Request, media_type: &str) -> Result<Value, Fault> {
    let headers = &request.head.fields;
    sbi::json::expect_type(headers, media_type)?;
    let limit = worker.max_body();
    let body = sbi::coding::decode(headers, request.body.clone(), limit)?;
    if body.len() > limit {
        return Err(Fault::BodyTooLarge(limit));
    }
    let value: Value = sbi::json::parse(&body)?;
    // What names its PCF comes from that PCF.
    if let Some(pcf) = value.get("pcfId").and_then(Value::as_str) {
        worker.may_act_for(request, pcf)?;
    }
    Ok(value)
}

/// The body of a new resource, without what counts as absent.
fn settled_body_of(worker: &Worker, request: &Request, shape: &Shape) -> Result<Value, Fault> {
    let mut value = body_of(worker, request, "application/json")?;
    let Tolerance { strict, host_names } = worker.config().tolerance;
    note(
        worker,
        request,
        &shape::settle(shape, &mut value, strict, host_names)?,
    );
    Ok(value)
}

/// Counts and logs members that count as absent.
fn note(worker: &Worker, request: &Request, dropped: &[Dropped]) {
    if !dropped.is_empty() {
        let agent = request.headers().get(USER_AGENT);
        let sender = agent.and_then(|agent| agent.to_str().ok());
        worker.tolerated().note(sender.unwrap_or("unknown"), dropped);
    }
}

/// 201 with the resource and where it is.
fn created(worker: &Worker, resource: &str, document: &Document) -> Response {
    let mut response = sbi::json::response_of(StatusCode::CREATED, document.text().clone());
    let location = format!("{}/nbsf-management/v1/{resource}/{}", worker.root(), document.id);
    // The root was parsed as a URI, an identity is hexadecimal digits.
    response.headers_mut().set_printed(LOCATION, location);
    response
}

/// 200 with a list of resources.
fn list<'a>(documents: impl Iterator<Item = &'a Document>) -> Response {
    let mut body = vec![b'['];
    for document in documents {
        if body.len() > 1 {
            body.push(b',');
        }
        body.extend_from_slice(document.text());
    }
    body.push(b']');
    sbi::json::response_of(StatusCode::OK, body)
}

fn bad_query(name: &str, expected: impl Into<String>) -> Fault {
    let (name, expected) = (name.to_owned(), expected.into());
    Fault::Query { name, expected }
}

/// A query parameter that identifies somebody.
fn text_of<'v>(name: &str, value: &'v str) -> Result<&'v str, Fault> {
    match value {
        "" => Err(bad_query(name, "expected some text")),
        value => Ok(value),
    }
}

/// The parameters of a query. None of Nbsf_Management may occur twice: which one would count? What this release does not know
/// may (TS 29.500 §5.2.9).
fn pairs<'q>(query: Option<&'q str>, known: &[&str]) -> Result<Vec<sbi::query::Pair<'q>>, Fault> {
    let pairs = sbi::query::pairs(query).map_err(|error| bad_query(&error.name, "expected UTF-8"))?;
    for name in known {
        if pairs.iter().filter(|(given, _)| given == name).count() > 1 {
            return Err(bad_query(name, "expected one value"));
        }
    }
    Ok(pairs)
}

fn features_of(name: &str, value: &str) -> Result<SupportedFeatures, Fault> {
    // As JSON in some resources, plain in others (TS 29.521 annex A).
    let text = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    SupportedFeatures::parse(text).map_err(|expected| bad_query(name, expected))
}
