//! One file per 3GPP service: parse the request, call the domain, write the answer.

pub(crate) mod access_token;
pub(crate) mod bootstrapping;
pub(crate) mod discovery;
pub(crate) mod management;
pub(crate) mod searches;
pub(crate) mod subscriptions;

use http::header::ALLOW;
use http::{HeaderValue, Method};
use sbi::Response;
use sbi::problem::{Cause, Problem};

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
