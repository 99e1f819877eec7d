//! One file per 3GPP service: parse the request, call the domain, write the answer.

pub(crate) mod access_token;
pub(crate) mod bootstrapping;
pub(crate) mod discovery;
pub(crate) mod management;
pub(crate) mod searches;
pub(crate) mod subscriptions;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Response};

use crate::events::Event;
use crate::service::Worker;

/// The body of a write as it was before its content coding, of `limit` bytes at most.
pub(crate) fn body_of(
    worker: &Worker,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    let decoded = sbi::coding::decode(headers, body, limit).and_then(|body| {
        if body.len() <= limit {
            return Ok(body.into_bytes());
        }
        Err(Problem::new(Cause::PayloadTooLarge).detail(format!("a body of more than {limit} bytes")))
    });
    decoded.inspect_err(|problem| {
        if problem.status() == Cause::PayloadTooLarge.status() {
            worker.counters().count(Event::TooLarge);
        }
    })
}

/// 405 with the methods that would be right.
pub(crate) fn method_not_allowed(method: &Method, allowed: &'static str) -> Response {
    let problem = Problem::new(Cause::MethodNotAllowed).detail(format!(
        "{method} is not a method of this resource; {allowed} are"
    ));
    let mut response = problem.into_response();
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
