//! Spans of requests that are sent for traced ones (OpenTelemetry's conventions for HTTP clients).

use http2::RequestHead;
use http2::name::TRACEPARENT;
use sbi_proto::{Origin, Response};
use telemetry::trace::{self, Span};

use super::error::SendError;

/// Octets of the name of a service that a span has, at most.
const SERVICE: usize = 64;

/// Begins the span of a request, which has it as its `traceparent`; nothing where it is sent for none that is traced.
#[inline]
pub(super) fn begin(origin: &Origin, head: &mut RequestHead) -> Option<Span> {
    let parent = || head.fields.get(TRACEPARENT)?.to_str().ok();
    let span = trace::client(|| name(head.method()), parent)?;
    Some(describe(span, origin, head))
}

#[cold]
fn describe(mut span: Span, origin: &Origin, head: &mut RequestHead) -> Span {
    span.attribute("http.request.method", head.method().as_str());
    span.attribute("server.address", origin.host());
    span.attribute("server.port", origin.port().to_string());
    // Not the whole path: identities of subscribers are in it.
    let service = head
        .path()
        .split('/')
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    span.attribute("rpc.service", service.chars().take(SERVICE).collect::<String>());
    if let Some(context) = span.context() {
        head.fields.set_printed(TRACEPARENT, context);
    }
    span
}

/// Ends the span of a request with what came of it.
#[cold]
pub(super) fn end(mut span: Span, outcome: &Result<Response, SendError>) {
    match outcome {
        Ok(response) => span.status(response.status().as_u16()),
        Err(error) => span.fail(error.to_string()),
    }
}

/// Names of spans are of a bounded set.
fn name(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "HTTP",
    }
}
