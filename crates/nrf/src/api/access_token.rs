//! Nnrf_AccessToken (TS 29.510 §6.3) and the keys that verify its tokens.

use function::sbi::Call;
use http::StatusCode;
use model::ServiceName;
use sbi::name::{CACHE_CONTROL, PRAGMA};
use sbi::problem::Problem;
use sbi::{Request, Response, Value};
use serde_json::json;

use crate::config::ForwardedOperation;
use crate::events::Event;
use crate::forwarding::{Destination, Question};
use crate::tokens::{self, TokenFault};
use crate::worker::Worker;

/// `/oauth2/token`.
pub(crate) async fn token(call: Call<Worker>) -> Result<Response, Problem> {
    let (worker, request, sender) = (&*call.worker, &call.request, &call.sender);
    let wanted = match sbi::json::is_type(request.headers(), "application/x-www-form-urlencoded") {
        true => tokens::parse(&request.body.to_bytes()),
        false => Err(TokenFault::request("expected application/x-www-form-urlencoded")),
    };
    // The sender gets a token only for itself (TS 33.501 §13.4.1.1.1).
    if let Ok(wanted) = &wanted
        && let Err(problem) = sender.may_act_for(&wanted.nf_instance_id.to_string())
    {
        worker.counters().count(Event::IdentityRefused);
        worker.counters().count(Event::TokenRefused);
        return Err(problem);
    }
    let wanted = wanted.and_then(|wanted| {
        worker
            .check_home_nrf(wanted.home_nrf.as_deref())
            .map_err(|expected| TokenFault::request(format!("hnrfAccessTokenUri: {expected}")))?;
        Ok(wanted)
    });
    let destination = wanted
        .as_ref()
        .ok()
        .and_then(|wanted| forwards_to(worker, wanted, request));
    if let Some(destination) = destination.as_ref().filter(|one| !one.only_when_empty) {
        return Ok(worker.forwarder().ask(destination, request).await);
    }
    let outcome = wanted.and_then(|wanted| {
        let (token, seconds) = worker.issuer().issue(&wanted, &worker.snapshot(), tokens::unix_now())?;
        Ok(json!({
            "access_token": token, "token_type": "Bearer", "expires_in": seconds, "scope": wanted.scopes.join(" ")
        }))
    });
    // No producer here offers the scope, or the consumer is unknown here: another NRF may know it.
    if let (Some(destination), Err(fault)) = (&destination, &outcome)
        && matches!(fault.error, "invalid_scope" | "invalid_client")
    {
        return Ok(worker.forwarder().ask(destination, request).await);
    }
    let response = match outcome {
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
    // Tokens must not be cached by intermediaries (RFC 6749 §5.1).
    Ok(response
        .with(CACHE_CONTROL, Value::from_static("no-store"))
        .with(PRAGMA, Value::from_static("no-cache")))
}

fn forwards_to(worker: &Worker, wanted: &tokens::Request, request: &Request) -> Option<Destination> {
    let services: Vec<ServiceName> = wanted
        .scopes
        .iter()
        .map(|scope| ServiceName::from(scope.split(':').next().unwrap_or(scope)))
        .collect();
    let question = Question {
        operation: ForwardedOperation::AccessToken,
        target: wanted.target_nf_type.as_ref(),
        services: &services,
        home_nrf: wanted.home_nrf.as_deref(),
        target_plmns: wanted.target_plmn.as_slice(),
    };
    worker.forwarder().destination(&question, request.headers())
}

/// `/oauth2/jwks`: the public keys (RFC 7517).
pub(crate) fn jwks(call: &Call<Worker>) -> Response {
    let fresh = Value::from_static("max-age=300");
    sbi::json::response(StatusCode::OK, call.worker.issuer().jwks()).with(CACHE_CONTROL, fresh)
}
