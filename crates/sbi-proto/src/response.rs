//! Responses that every service gives.

use http::{Method, StatusCode};
use http2::Value;
use http2::name::ALLOW;

use crate::message::Response;
use crate::problem::{Cause, Problem};

/// 204 without a body.
#[must_use]
pub fn no_content() -> Response {
    Response::new(StatusCode::NO_CONTENT)
}

/// 405 with the methods that the resource supports.
#[must_use]
pub fn method_not_allowed(method: &Method, allowed: &'static str) -> Response {
    let problem = Problem::new(Cause::MethodNotAllowed).detail(format!(
        "{method} is not allowed on this resource, only {allowed}"
    ));
    problem.into_response().with(ALLOW, Value::from_static(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_method_names_the_allowed_ones() {
        let response = method_not_allowed(&Method::PUT, "GET, POST");
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(
            response.headers().get(ALLOW),
            Some(Value::from_static("GET, POST"))
        );
        assert_eq!(no_content().status(), StatusCode::NO_CONTENT);
    }
}
