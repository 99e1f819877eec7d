//! Spans and figures of requests.

use std::time::Instant;

use ::sbi::name::TRACEPARENT;
use ::sbi::{Request, Response};
use telemetry::trace;

use super::operations::Operations;

/// Each request has a span, a latency and a status.
pub(super) struct Measured(pub(super) Operations);

impl Measured {
    /// A request of an operation begins.
    pub(super) fn begin(
        &self,
        function: &'static str,
        operation: usize,
        request: &mut Request,
    ) -> Option<trace::Span> {
        let parent = || request.headers().get(TRACEPARENT)?.to_str().ok();
        let span = trace::begin(function, self.0.name(operation), parent);
        // A function that relays the request passes it on.
        if let Some(context) = span.as_ref().and_then(trace::Span::context) {
            request.headers_mut().set_printed(TRACEPARENT, context);
        }
        span
    }

    /// A request that was received at this moment is answered now.
    pub(super) fn end(
        &self,
        function: &'static str,
        span: Option<trace::Span>,
        operation: usize,
        response: &Response,
        received: Instant,
    ) {
        let status = response.status().as_u16();
        self.0.answered(operation, status, received);
        match span {
            Some(mut span) => span.status(status),
            None => trace::late(function, self.0.name(operation), received, status),
        }
    }
}
