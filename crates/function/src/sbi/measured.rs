//! Spans and figures of requests.

use std::time::Instant;

use ::sbi::name::TRACEPARENT;
use ::sbi::{Request, Response};
use follow::Cause;
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
        // Those of a followed subscriber are traced in any case.
        let is_followed = || Cause::of_thread().is_some();
        let mut span = trace::begin_if(function, || self.0.name(operation), is_followed, parent)?;
        let context = span.context()?;
        // A function that relays the request passes it on.
        request.headers_mut().set_printed(TRACEPARENT, context);
        if let Some(cause) = Cause::of_thread() {
            span.follows(cause.link((context.trace, context.span)));
        }
        Some(span)
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
            Some(mut span) => {
                span.status(status);
                if let Some(context) = span.context() {
                    self.0.exemplify(operation, received, context.trace);
                }
            }
            None => trace::late(function, self.0.name(operation), received, status),
        }
    }
}
