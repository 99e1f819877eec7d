//! A copy of a message: in the ring, and as admin pages show it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use diameter_proto::{Dictionary, Message as Diameter, text};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::redaction;

/// Whether a message entered or left the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It came in.
    In,
    /// It went out.
    Out,
}

/// A copy of a message.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it came or went.
    pub at: SystemTime,
    /// Whether it came or went.
    pub direction: Direction,
    /// The same in a request and its answer.
    pub exchange: u64,
    /// The exchange during which the function sent this request.
    pub cause: Option<u64>,
    /// The peer by its name, where one is known.
    pub peer: String,
    /// Sender and receiver on the wire.
    pub from: SocketAddr,
    /// See `from`.
    pub to: SocketAddr,
    /// Number of the stream or Hop-by-Hop Identifier: with the addresses, it names the message at both ends.
    pub stream: u64,
    /// The message itself.
    pub content: Content,
}

/// What a copy holds of a message, credentials overwritten.
#[derive(Clone, Debug)]
pub enum Content {
    /// A request of the service-based interface.
    Request {
        /// `POST`.
        method: String,
        /// Path and query.
        target: String,
        /// Header fields, pseudo-header fields first.
        headers: Vec<(String, String)>,
        /// The body.
        body: Bytes,
    },
    /// The answer to one.
    Answer {
        /// The status.
        status: u16,
        /// Header fields.
        headers: Vec<(String, String)>,
        /// The body.
        body: Bytes,
    },
    /// A request got no answer.
    Lost {
        /// Why.
        reason: String,
    },
    /// A message of Diameter.
    Diameter {
        /// All of it.
        frame: Bytes,
        /// Whether it is a request.
        is_request: bool,
    },
}

impl Content {
    /// The copy of a request.
    pub fn request<'a>(
        (method, target): (&str, &str),
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        body: Bytes,
    ) -> Self {
        Self::Request {
            method: method.to_owned(),
            target: redaction::uri(target),
            headers: fields(headers),
            body: redacted(body),
        }
    }

    /// The copy of an answer.
    pub fn answer<'a>(status: u16, headers: impl Iterator<Item = (&'a str, &'a [u8])>, body: Bytes) -> Self {
        Self::Answer {
            status,
            headers: fields(headers),
            body: redacted(body),
        }
    }

    /// The copy of a Diameter message.
    #[must_use]
    pub fn diameter(mut frame: Vec<u8>) -> Self {
        redaction::frame(&mut frame);
        let is_request = frame.get(4).is_some_and(|flags| flags & 0x80 != 0);
        Self::Diameter {
            frame: frame.into(),
            is_request,
        }
    }

    /// Octets that it holds, roughly.
    pub(crate) fn held(&self) -> usize {
        let fields = |headers: &[(String, String)]| -> usize {
            headers
                .iter()
                .map(|(name, value)| name.len() + value.len() + 48)
                .sum()
        };
        match self {
            Self::Request {
                target,
                headers,
                body,
                ..
            } => target.len() + fields(headers) + body.len(),
            Self::Answer { headers, body, .. } => fields(headers) + body.len(),
            Self::Lost { reason } => reason.len(),
            Self::Diameter { frame, .. } => frame.len(),
        }
    }
}

fn fields<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<(String, String)> {
    let each = headers.map(|(name, value)| {
        let value = match name {
            ":path" | "location" => redaction::uri(&String::from_utf8_lossy(value)),
            _ => redaction::field(name, value),
        };
        (name.to_owned(), value)
    });
    each.collect()
}

fn redacted(body: Bytes) -> Bytes {
    redaction::body(&body).map_or(body, Bytes::from)
}

/// A page of copies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    /// Version of this form: members may be added to it.
    pub version: u32,
    /// When the function started, in microseconds since 1970: numbers begin at 1 then, and no subscriber is followed.
    pub start: u64,
    /// Where the next page begins.
    pub next: u64,
    /// Whether there is more now.
    pub more: bool,
    /// Copies that did not fit into the ring, since the start of the function.
    pub not_kept: u64,
    /// The copies, the oldest first.
    pub messages: Vec<Message>,
}

/// A copy as an admin page shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Message {
    /// Its number in the function.
    pub number: u64,
    /// When it came or went (RFC 3339).
    pub time: String,
    /// The same in microseconds since 1970.
    pub microseconds: u64,
    /// The function that has it.
    pub function: String,
    /// The followed identity.
    pub identity: String,
    /// The identity by which it was found; none: it was sent for a message that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
    /// Whether it came or went.
    pub direction: Option<Direction>,
    /// `sbi` or `diameter`.
    pub interface: String,
    /// `request`, `answer`, or `lost`: no answer came.
    pub kind: String,
    /// The same in a request and its answer.
    pub exchange: u64,
    /// The exchange for which the function sent this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u64>,
    /// The other side.
    pub peer: String,
    /// Sender on the wire.
    pub from: String,
    /// Receiver on the wire.
    pub to: String,
    /// Number of the stream, or Hop-by-Hop Identifier.
    pub stream: u64,
    /// Method and target, status, command and result, or the reason for a missing answer.
    pub title: String,
    /// Whether it reports a failure.
    pub is_failure: bool,
    /// Header fields, credentials overwritten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body as text, or the AVPs of a Diameter message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The bytes of a Diameter message, or of a body that is not UTF-8, in hexadecimal digits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hex: String,
}

/// A stored copy.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    pub(crate) owner: u64,
    pub(crate) identity: Arc<str>,
    pub(crate) found_by: Option<Arc<str>>,
    pub(crate) record: Record,
}

impl Stored {
    pub(crate) fn show(&self, function: &str) -> Message {
        let record = &self.record;
        let mut shown = Message {
            number: self.number,
            time: rfc3339(record.at),
            microseconds: microseconds(record.at),
            function: function.to_owned(),
            identity: self.identity.to_string(),
            found_by: self.found_by.as_deref().map(str::to_owned),
            direction: Some(record.direction),
            interface: "sbi".to_owned(),
            exchange: record.exchange,
            cause: record.cause,
            peer: record.peer.clone(),
            from: record.from.to_string(),
            to: record.to.to_string(),
            stream: record.stream,
            ..Message::default()
        };
        match &record.content {
            Content::Request {
                method,
                target,
                headers,
                body,
            } => {
                shown.kind = "request".to_owned();
                shown.title = format!("{method} {target}");
                shown.headers.clone_from(headers);
                shown.put_body(body);
            }
            Content::Answer {
                status,
                headers,
                body,
            } => {
                shown.kind = "answer".to_owned();
                shown.title = status.to_string();
                shown.is_failure = *status >= 400;
                shown.headers.clone_from(headers);
                shown.put_body(body);
            }
            Content::Lost { reason } => {
                shown.kind = "lost".to_owned();
                shown.title.clone_from(reason);
                shown.is_failure = true;
            }
            Content::Diameter { frame, is_request } => shown.put_frame(frame, *is_request),
        }
        shown
    }
}

impl Message {
    fn put_body(&mut self, body: &Bytes) {
        match std::str::from_utf8(body) {
            Ok(text) => text.clone_into(&mut self.text),
            Err(_) => self.hex = format!("{body:x}"),
        }
    }

    fn put_frame(&mut self, frame: &Bytes, is_request: bool) {
        self.interface = "diameter".to_owned();
        self.kind = if is_request { "request" } else { "answer" }.to_owned();
        self.hex = format!("{frame:x}");
        let Ok(message) = Diameter::parse(&frame[..]) else {
            self.title = "a message that cannot be parsed".to_owned();
            return;
        };
        self.text = text::print(&message, Dictionary::standard()).to_string();
        let command = self.text.split([' ', '\n']).next().unwrap_or_default();
        self.title = command.to_owned();
        if let Some(result) = result(&message) {
            self.title = format!("{command} {result}");
            self.is_failure = result >= 3_000;
        }
    }

    /// The bytes of `hex`.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
        let pairs = self.hex.as_bytes().chunks_exact(2);
        pairs.map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }
}

/// Result-Code or Experimental-Result-Code of an answer.
fn result(message: &Diameter<&[u8]>) -> Option<u32> {
    use diameter_proto::known;
    if let Ok(Some(code)) = message.get(known::RESULT_CODE) {
        return Some(code);
    }
    let group = message.get(known::EXPERIMENTAL_RESULT).ok().flatten()?;
    group.get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten()
}

/// A moment in microseconds since 1970.
pub(crate) fn microseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A moment to the microsecond.
#[must_use]
pub fn rfc3339(at: SystemTime) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    OffsetDateTime::from(at).format(&form).unwrap_or_default()
}
