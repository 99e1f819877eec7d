//! Spans of requests that an endpoint serves and of those that it sends for traced ones. Identifiers lead to the messages of a
//! connection in a capture.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;

use diameter_proto::{Dictionary, Message, MessageMut, Routing};
use follow::Cause;
use telemetry::trace::{self, Span};

/// The name of a command, as spans have it.
#[must_use]
pub fn name<B: AsRef<[u8]>>(message: &Message<B>) -> &'static str {
    let command = Dictionary::standard().command(message.command(), message.application());
    command.map_or("Diameter request", |command| &command.name)
}

/// Begins the span of a request that a peer has sent: one of the share that begins a trace here, or one of a followed subscriber, which
/// is linked to the exchange before it.
#[inline]
pub(crate) fn received(message: &Message) -> Option<Span> {
    let is_followed = || Cause::of_thread().is_some();
    let mut span = trace::begin_if(trace::function(), || name(message), is_followed, || None)?;
    identify(&mut span, message);
    if let (Some(cause), Some(context)) = (Cause::of_thread(), span.context()) {
        span.follows(cause.link((context.trace, context.span)));
    }
    Some(span)
}

/// Answers a traced request: what is sent meanwhile is sent on its behalf.
pub(crate) async fn served(mut span: Span, call: Pin<Box<dyn Future<Output = MessageMut>>>) -> MessageMut {
    let answer = match span.scope() {
        Some(scope) => scope.around(call).await,
        None => call.await,
    };
    result(&mut span, &answer);
    answer
}

/// Begins the span of a request that this thread sends for a traced one.
#[inline]
pub(crate) fn sent(message: &MessageMut) -> Option<Span> {
    trace::client(|| name(message), || None)
}

/// Ends the span of a request with what came of it.
#[cold]
pub fn answered<E: Display>(mut span: Span, answer: &Result<Message, E>) {
    match answer {
        Ok(answer) => {
            // An answer has the identifiers of its request (RFC 6733 §3).
            identify(&mut span, answer);
            result(&mut span, answer);
        }
        Err(error) => span.fail(error.to_string()),
    }
}

fn identify(span: &mut Span, message: &Message) {
    span.attribute("diameter.hopByHop", message.hop_by_hop().to_string());
    span.attribute("diameter.endToEnd", message.end_to_end().to_string());
}

/// What is not a success (RFC 6733 §7.1) has vendor and code, and has failed.
fn result<B: AsRef<[u8]>>(span: &mut Span, answer: &Message<B>) {
    let routing = Routing::scan(answer, b"").unwrap_or_default();
    let plain = routing.result_code.map(|code| (0, code));
    let Some((vendor, code)) = plain.or_else(|| routing.experimental_result()) else {
        return;
    };
    if code / 1_000 != 2 {
        let code = format!("{vendor}:{code}");
        span.attribute("diameter.result", code.as_str());
        span.fail(code);
    }
}
