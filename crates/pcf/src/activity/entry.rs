//! Entries of the activity of a subscriber: messages, decisions, writes.

use std::net::SocketAddr;

use diameter::proto::known::{self, application};
use diameter::proto::{Dictionary, Message, text};
use http::HeaderMap;
use sbi::{Body, Request, RequestHead, Response};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// What has happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: OffsetDateTime,
    /// `in`, `out`, `decision`, `write`.
    pub(crate) what: &'static str,
    /// Name of a reference point or service; empty for entries that are not messages.
    pub(crate) interface: &'static str,
    /// The other side of a message.
    pub(crate) peer: String,
    /// Method and path, command, or what was decided or written.
    pub(crate) text: String,
    /// Status or Result-Code of an answer.
    pub(crate) status: Option<u32>,
    /// Content, decision, or what has changed.
    pub(crate) body: Value,
}

impl Entry {
    /// Something that happens now.
    pub(crate) fn new(what: &'static str, text: impl Into<String>) -> Self {
        Self {
            at: OffsetDateTime::now_utc(),
            what,
            interface: "",
            peer: String::new(),
            text: text.into(),
            status: None,
            body: Value::Null,
        }
    }

    /// Its content.
    pub(crate) fn body(self, body: Value) -> Self {
        Self { body, ..self }
    }

    /// Where a message goes to or comes from.
    pub(crate) fn over(self, interface: &'static str, peer: impl Into<String>) -> Self {
        Self {
            interface,
            peer: peer.into(),
            ..self
        }
    }

    /// The members of a line; of a content that makes it larger than `most` bytes the beginning.
    pub(super) fn complete(self, mut line: Value, most: usize) -> Value {
        line["what"] = self.what.into();
        for (name, value) in [
            ("interface", self.interface),
            ("peer", &self.peer),
            ("text", &self.text),
        ] {
            if !value.is_empty() {
                line[name] = value.into();
            }
        }
        if let Some(status) = self.status {
            line["status"] = status.into();
        }
        match self.body {
            Value::Null => {}
            body => {
                let text = match &body {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                // A text grows by what JSON escapes.
                let most = most / 2;
                line["body"] = match text.len() > most {
                    true => {
                        line["bodyBytes"] = text.len().into();
                        beginning(&text, most).into()
                    }
                    false => body,
                };
            }
        }
        line
    }
}

/// The beginning of a text of at most this number of bytes, in whole characters.
fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A request of a consumer or a notification that came in.
pub(super) fn of_request(
    (head, body): (&RequestHead, Body),
    peer: SocketAddr,
    at: OffsetDateTime,
    limit: usize,
) -> Entry {
    let body = sbi::coding::decode(&head.fields, body, limit);
    let path = head.path();
    Entry {
        at,
        ..Entry::new("in", format!("{} {path}", head.method()))
            .over(interface_of(path), peer.to_string())
            .body(body.map_or(Value::Null, |body| content(&body)))
    }
}

/// A request to another function.
pub(crate) fn of_outbound(service: &str, origin: &str, request: &http::Request<Body>) -> Entry {
    let text = format!("{} {}", request.method(), path_of(request.uri()));
    let headers: &HeaderMap = request.headers();
    let is_json = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_none_or(|kind| kind.contains("json"));
    let body = match is_json {
        true => content(request.body()),
        false => json!(format!("{} bytes", request.body().len())),
    };
    Entry::new("out", text)
        .over(interface_of_service(service), origin)
        .body(body)
}

/// The answer of another function.
pub(crate) fn of_response(service: &str, origin: &str, response: &Response) -> Entry {
    Entry {
        status: Some(response.status().as_u16().into()),
        ..Entry::new("in", "")
            .over(interface_of_service(service), origin)
            .body(content(response.body()))
    }
}

/// The answer of the PCF to a request.
pub(super) fn of_answer(request: &Request, response: &Response) -> Entry {
    Entry {
        status: Some(response.status().as_u16().into()),
        ..Entry::new("out", "")
            .over(interface_of(request.path()), request.peer.addr.to_string())
            .body(content(response.body()))
    }
}

/// A Diameter message.
pub(crate) fn of_diameter<B: AsRef<[u8]>>(what: &'static str, peer: &str, message: &Message<B>) -> Entry {
    let printed = text::print(message, Dictionary::standard()).to_string();
    let command = printed.split([' ', '\n']).next().unwrap_or_default().to_owned();
    Entry {
        status: result(message),
        ..Entry::new(what, command)
            .over(interface_of_application(message.application()), peer)
            .body(printed.into())
    }
}

/// Result-Code or Experimental-Result-Code of an answer.
fn result<B: AsRef<[u8]>>(message: &Message<B>) -> Option<u32> {
    if let Ok(Some(code)) = message.get(known::RESULT_CODE) {
        return Some(code);
    }
    let group = message.get(known::EXPERIMENTAL_RESULT).ok().flatten()?;
    group.get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten()
}

/// JSON as it is; of other contents their size.
fn content(body: &Body) -> Value {
    match body.is_empty() {
        true => Value::Null,
        false => sbi::json::parse(body).unwrap_or_else(|_| json!(format!("{} bytes", body.len()))),
    }
}

fn path_of(uri: &http::Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

/// The interface that a path of the PCF belongs to.
fn interface_of(path: &str) -> &'static str {
    let mut segments = path.trim_start_matches('/').splitn(4, '/');
    match (segments.next(), segments.nth(1)) {
        (Some("npcf-smpolicycontrol"), _) => "N7",
        (Some("npcf-am-policy-control"), _) => "N15 AM",
        (Some("npcf-ue-policy-control"), _) => "N15 UE",
        (Some("npcf-policyauthorization"), _) => "N5",
        (_, Some("policy-data-change")) => "UDR",
        (_, Some("spending-limits")) => "CHF",
        (_, Some("ue-policy")) => "AMF",
        _ => "SBI",
    }
}

fn interface_of_service(service: &str) -> &'static str {
    match service {
        "nudr-dr" => "UDR",
        "nchf-spendinglimitcontrol" => "CHF",
        "nbsf-management" => "BSF",
        "namf-comm" => "AMF",
        _ => "SBI",
    }
}

/// Application-Id of Sd (TS 29.212 §5b.1).
const SD: u32 = 16_777_303;

fn interface_of_application(id: u32) -> &'static str {
    match id {
        application::GX => "Gx",
        application::RX => "Rx",
        application::SY => "Sy",
        SD => "Sd",
        _ => "Diameter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_content_is_cut_at_a_character() {
        let line = Entry::new("in", "POST /x").body(json!("ä".repeat(1_000)));
        let line = line.complete(json!({}), 1_025);
        assert_eq!(line["bodyBytes"], 2_000);
        assert_eq!(line["body"].as_str().map(str::len), Some(512));
    }

    #[test]
    fn paths_name_their_interfaces() {
        for (path, expected) in [
            ("/npcf-smpolicycontrol/v1/sm-policies", "N7"),
            ("/npcf-policyauthorization/v1/app-sessions/7", "N5"),
            ("/signalbox-pcf/v1/policy-data-change/7", "UDR"),
            ("/signalbox-pcf/v1/ue-policy/7/n1", "AMF"),
            ("/", "SBI"),
        ] {
            assert_eq!(interface_of(path), expected, "{path}");
        }
    }
}
