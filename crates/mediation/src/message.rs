//! The message as rules access it.

use bytes::Bytes;
use http::{Method, StatusCode};
use sbi_proto::Fields;
use sbi_proto::name::CONTENT_TYPE;
use serde_json::Value;

/// A message at a trigger point: what rules may read, and the parts they may change.
#[derive(Debug)]
pub struct Mediated<'a> {
    /// Method of the request.
    pub method: &'a Method,
    /// Path of the request without its query.
    pub path: &'a str,
    /// Query of the request, if it has one.
    pub query: Option<&'a str>,
    /// Status, at response points.
    pub status: Option<StatusCode>,
    /// Headers of the message at hand.
    pub headers: &'a mut Fields,
    /// Body of the message at hand.
    pub document: &'a mut Document,
}

/// A JSON body that is parsed when a rule first reads it, and serialised again only if a rule changed it.
#[derive(Debug, Default)]
pub struct Document {
    raw: Bytes,
    parsed: Parsed,
}

#[derive(Debug, Default)]
enum Parsed {
    /// Not parsed yet.
    #[default]
    NotYet,
    /// Not JSON by its content type, empty, or malformed: rules find no members.
    Opaque,
    /// As received.
    Json(Value),
    /// Changed since.
    Changed(Value),
}

impl Document {
    /// A body as received.
    #[must_use]
    pub fn new(raw: Bytes) -> Self {
        Self {
            raw,
            parsed: Parsed::NotYet,
        }
    }

    /// The JSON value, if the body is JSON by its content type and its syntax.
    pub(super) fn value(&mut self, headers: &Fields) -> Option<&Value> {
        self.parse(headers);
        match &self.parsed {
            Parsed::Json(value) | Parsed::Changed(value) => Some(value),
            Parsed::NotYet | Parsed::Opaque => None,
        }
    }

    /// Applies `change` to the JSON value; `change` returns whether it changed anything.
    pub(super) fn change(&mut self, headers: &Fields, change: impl FnOnce(&mut Value) -> bool) {
        self.parse(headers);
        let changed = match &mut self.parsed {
            Parsed::Json(value) => change(value),
            Parsed::Changed(value) => {
                change(value);
                false
            }
            Parsed::NotYet | Parsed::Opaque => false,
        };
        if changed && let Parsed::Json(value) = std::mem::take(&mut self.parsed) {
            self.parsed = Parsed::Changed(value);
        }
    }

    /// Whether a rule changed the body.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(self.parsed, Parsed::Changed(_))
    }

    /// The body to forward: the received bytes if no rule changed it.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self.parsed {
            // A `Value` has only text keys, so it always serialises.
            Parsed::Changed(value) => serde_json::to_vec(&value).map(Bytes::from).unwrap_or(self.raw),
            _ => self.raw,
        }
    }

    fn parse(&mut self, headers: &Fields) {
        if !matches!(self.parsed, Parsed::NotYet) {
            return;
        }
        let is_json = headers
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(is_json_type);
        self.parsed = match is_json.then(|| serde_json::from_slice(&self.raw)) {
            Some(Ok(value)) => Parsed::Json(value),
            _ => Parsed::Opaque,
        };
    }
}

/// `application/json` and every `…+json` (TS 29.501 §5.2.2: merge patch, JSON Patch, problem details, HAL).
fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}
