//! Nnrf_AccessToken (TS 29.510 §6.3) and the keys that verify its tokens.

use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderValue, Method, StatusCode};
use sbi::{Request, Response};
use serde_json::json;

use crate::events::Event;
use crate::service::Worker;
use crate::tokens::{self, TokenFault};

/// `/oauth2/token`.
pub(crate) fn token(worker: &Worker, request: &Request) -> Response {
    if *request.method() != Method::POST {
        return super::method_not_allowed(request.method(), "POST");
    }
    let outcome = match sbi::json::is_type(request.headers(), "application/x-www-form-urlencoded") {
        true => tokens::parse(&request.body.to_bytes()),
        false => Err(TokenFault::request("expected application/x-www-form-urlencoded")),
    }
    .and_then(|wanted| {
        let (token, seconds) = worker.issuer().issue(&wanted, &worker.snapshot(), tokens::unix_now())?;
        Ok(json!({
            "access_token": token, "token_type": "Bearer", "expires_in": seconds, "scope": wanted.scopes.join(" ")
        }))
    });
    let mut response = match outcome {
        Ok(body) => {
            worker.counters().count(Event::TokenIssued);
            sbi::json::response(StatusCode::OK, &body)
        }
        Err(fault) => {
            worker.counters().count(Event::TokenRefused);
            let body = json!({"error": fault.error, "error_description": fault.description});
            sbi::json::response(StatusCode::BAD_REQUEST, &body)
        }
    };
    // A token is for one consumer (RFC 6749 §5.1).
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
        .headers_mut()
        .insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// `/oauth2/jwks`: the public keys (RFC 7517).
pub(crate) fn jwks(worker: &Worker, request: &Request) -> Response {
    if *request.method() != Method::GET {
        return super::method_not_allowed(request.method(), "GET");
    }
    let mut response = sbi::json::response(StatusCode::OK, worker.issuer().jwks());
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}
