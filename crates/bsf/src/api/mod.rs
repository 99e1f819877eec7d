//! One file per resource of Nbsf_Management: parse the request, call the domain, write the answer.

pub(crate) mod mbs;
pub(crate) mod nf_status;
pub(crate) mod sessions;
pub(crate) mod subscriptions;
pub(crate) mod ues;

use http::header::{ALLOW, LOCATION};
use http::{HeaderValue, Method, StatusCode, Uri};
use model::SupportedFeatures;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::Value;

use crate::binding::{BindingId, Document};
use crate::service::Worker;

/// 405 with the methods that would be right.
fn method_not_allowed(method: &Method, allowed: &'static str) -> Response {
    let problem = Problem::new(Cause::MethodNotAllowed).detail(format!(
        "{method} is not a method of this resource; {allowed} are"
    ));
    let mut response = problem.into_response();
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn no_content() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn not_found(id: &str) -> Problem {
    let shown: String = id.chars().take(64).collect();
    Problem::new(Cause::ResourceNotFound).detail(format!("there is no {shown} here"))
}

fn id_of(id: &str) -> Result<BindingId, Problem> {
    BindingId::parse(id).ok_or_else(|| not_found(id))
}

/// The body as JSON.
fn body_of(worker: &Worker, request: Request, media_type: &str) -> Result<Value, Problem> {
    let headers = &request.head.headers;
    sbi::json::expect_type(headers, media_type)?;
    let limit = worker.max_body();
    let body = sbi::coding::decode(headers, request.body.clone(), limit)?;
    if body.len() > limit {
        return Err(Problem::new(Cause::PayloadTooLarge)
            .detail(format!("a body of more than {limit} bytes (maxBodySize)")));
    }
    let value: Value = sbi::json::parse(&body)?;
    // What names its PCF comes from that PCF.
    if let Some(pcf) = value.get("pcfId").and_then(Value::as_str) {
        worker.may_act_for(&request, pcf)?;
    }
    Ok(value)
}

/// 201 with the resource and where it is.
fn created(worker: &Worker, resource: &str, document: &Document) -> Response {
    let mut response = sbi::json::response_of(StatusCode::CREATED, document.text().clone());
    let location = format!("{}/nbsf-management/v1/{resource}/{}", worker.root(), document.id);
    // The root was parsed as a URI, an identity is hexadecimal digits.
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
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

fn bad_query(name: &str, expected: impl Into<String>) -> Problem {
    Problem::new(Cause::InvalidQueryParam).invalid_param(format!("query {name}"), expected)
}

/// The parameters of a query.
fn pairs(uri: &Uri) -> Result<Vec<sbi::query::Pair<'_>>, Problem> {
    sbi::query::pairs(uri).map_err(|error| bad_query(&error.name, "expected UTF-8"))
}

fn features_of(name: &str, value: &str) -> Result<SupportedFeatures, Problem> {
    // As JSON in some resources, plain in others (TS 29.521 annex A).
    let text = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    SupportedFeatures::parse(text).map_err(|expected| bad_query(name, expected))
}
