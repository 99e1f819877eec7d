//! The caller of a Diameter request, for its span: it passes from the worker of T8 to the one with the Diameter node, and has one trace id
//! with the request of T8.

use diameter::proto::MessageMut;
use sbi::name::TRACEPARENT;
use telemetry::trace::{self, Span};

/// The request of T8 that something is done for; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caller<'a>(Option<&'a str>);

impl<'a> Caller<'a> {
    /// Its `traceparent` is that of its own span.
    pub(crate) fn of(request: &'a sbi::Request) -> Self {
        let parent = request.headers().get(TRACEPARENT);
        Self(parent.and_then(|parent| parent.to_str().ok()))
    }

    /// Begins the span of a request that is sent on its behalf; nothing where the caller is not traced.
    pub(crate) fn sends(self, message: &MessageMut) -> Option<Span> {
        trace::client(|| diameter::spans::name(message), || self.0)
    }
}
