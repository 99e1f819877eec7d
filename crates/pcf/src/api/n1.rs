//! Notifications of AMFs about the delivery of UE policies: N1 messages of UEs (TS 29.518 §5.2.2.3.5), and transfers that
//! failed (§5.2.2.3.2).

use http::Method;
use sbi::multipart;
use sbi::name::CONTENT_TYPE;
use sbi::problem::{Cause, Problem};
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::Value;

use super::callbacks::found;
use super::fault::Fault;
use super::{json_of, not_found};
use crate::association::callbacks::Producer;
use crate::delivery;
use crate::events::Event;
use crate::updp;
use crate::worker::Worker;

/// Characters of a cause that are kept.
const LONGEST_CAUSE: usize = 64;

fn malformed(detail: impl Into<String>) -> Fault {
    Problem::new(Cause::InvalidMsgFormat).detail(detail.into()).into()
}

/// An N1 message of a UE: `N1MessageNotification` with the message as a binary part.
pub(crate) async fn message(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let headers = request.headers();
    let limit = worker.max_body();
    let body = sbi::coding::decode(headers, request.body.clone(), limit)?;
    if body.len() > limit {
        return Err(Fault::BodyTooLarge(limit));
    }
    let body = body.to_bytes();
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let parts = multipart::read(content_type.unwrap_or_default(), &body)
        .map_err(|error| malformed(error.to_string()))?;
    let data = parts.iter().find(|part| {
        let kind = part.content_type.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    });
    let data: Value = match data {
        Some(part) => sbi::json::parse(&sbi::Body::from(part.body.to_vec()))?,
        None => {
            return Err(malformed(
                "expected a part of application/json with N1MessageNotification",
            ));
        }
    };
    let container = data.get("n1MessageContainer");
    let text = |pointer: &str| container?.pointer(pointer)?.as_str();
    let (Some(class), Some(content)) = (text("/n1MessageClass"), text("/n1MessageContent/contentId")) else {
        return Err(malformed(
            "expected n1MessageContainer with n1MessageClass and n1MessageContent",
        ));
    };
    let octets = parts.iter().find(|part| part.id == Some(content));
    let octets = octets.ok_or_else(|| malformed("no part has the Content-Id that n1MessageContent names"))?;
    let association = found(worker, Producer::Amf, id).await?;
    let association = association.ok_or_else(|| not_found(id))?.id;
    let message = updp::read(octets.body).filter(|_| class == "UPDP");
    let Some(message) = message else {
        // TS 24.501 §D.8.2: a message that is too short, or no message of the service, is ignored.
        worker.count(Event::UePolicyStray);
        return Ok(no_content());
    };
    match delivery::answered(worker, association, message).await? {
        true => Ok(no_content()),
        false => Err(not_found(id)),
    }
}

/// A command that did not reach its UE: `N1N2MsgTxfrFailureNotification`.
pub(crate) async fn failure(
    worker: &Worker,
    request: &Request,
    (id, pti): (&str, &str),
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let data = json_of(worker, request, "application/json")?;
    let cause = data.get("cause").and_then(Value::as_str);
    let cause = cause.ok_or_else(|| malformed("expected N1N2MsgTxfrFailureNotification with a cause"))?;
    let cause: String = cause.chars().take(LONGEST_CAUSE).collect();
    let association = found(worker, Producer::Amf, id).await?;
    let association = association.ok_or_else(|| not_found(id))?.id;
    let pti: u8 = pti.parse().map_err(|_| not_found(id))?;
    match delivery::unreached(worker, association, (pti, &cause)).await? {
        true => Ok(no_content()),
        false => Err(not_found(id)),
    }
}
