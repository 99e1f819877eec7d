//! Spans of Diameter requests, where a collector is set (`traces`). A request of T8 and those that are sent on its behalf have one trace
//! id; the Hop-by-Hop Identifier leads to the messages of a connection in a capture.

use diameter::endpoint::{Request, RequestError};
use diameter::proto::known::command;
use diameter::proto::{Message, MessageMut};
use sbi::name::TRACEPARENT;
use telemetry::trace::{self, Span};

use crate::s6t;

const FUNCTION: &str = "scef";
/// What a span has as its status: those of HTTP, of which 500 is a failure.
const SUCCESS: u16 = 200;
const FAILURE: u16 = 500;

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
        let parent = self.0?;
        trace::begin(FUNCTION, name_of(message.command()), || Some(parent))
    }
}

/// Begins the span of a request that a peer has sent.
pub(crate) fn received(request: &Request) -> Option<Span> {
    let message = &request.message;
    let mut span = trace::begin(FUNCTION, name_of(message.command()), || None)?;
    identify(&mut span, message);
    Some(span)
}

/// Ends the span of a request with what came of it.
pub(crate) fn answered(span: Option<Span>, answer: &Result<Message, RequestError>) {
    let Some(mut span) = span else { return };
    match answer {
        Ok(answer) => {
            // An answer has the identifiers of its request (RFC 6733 §3).
            identify(&mut span, answer);
            end(span, s6t::refusal(answer));
        }
        Err(error) => {
            span.attribute("error", error.to_string());
            span.status(FAILURE);
        }
    }
}

/// Ends the span of a request that was answered; `refusal` has vendor and code.
pub(crate) fn end(mut span: Span, refusal: Option<(u32, u32)>) {
    if let Some((vendor, code)) = refusal {
        span.attribute("diameter.result", format!("{vendor}:{code}"));
    }
    span.status(refusal.map_or(SUCCESS, |_| FAILURE));
}

fn identify(span: &mut Span, message: &Message) {
    span.attribute("diameter.hopByHop", message.hop_by_hop().to_string());
    span.attribute("diameter.endToEnd", message.end_to_end().to_string());
}

fn name_of(code: u32) -> &'static str {
    match code {
        command::CONFIGURATION_INFORMATION => "Configuration-Information",
        command::REPORTING_INFORMATION => "Reporting-Information",
        command::NIDD_INFORMATION => "NIDD-Information",
        command::SUBSCRIBER_INFORMATION => "Subscriber-Information",
        command::CONNECTION_MANAGEMENT => "Connection-Management",
        command::MO_DATA => "MO-Data",
        command::MT_DATA => "MT-Data",
        command::DEVICE_ACTION => "Device-Action",
        command::DEVICE_TRIGGER => "Device-Trigger",
        command::DELIVERY_REPORT => "Delivery-Report",
        _ => "Diameter request",
    }
}
