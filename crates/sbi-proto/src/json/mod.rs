//! JSON bodies: parsed once, with the place of every mistake; patched within bounds.

mod depth;
pub mod patch;
pub mod text;
pub mod unique;

use http::StatusCode;
use http2::Fields;
use http2::name::CONTENT_TYPE;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::depth::{MOST_LEVELS, is_deeper_than};
use crate::Body;
use crate::message::Response;
use crate::problem::{Cause, Problem};

/// Media type of JSON.
pub const JSON: http2::Value<'static> = http2::Value::from_static("application/json");
/// Media type of JSON Patch (RFC 6902).
pub const JSON_PATCH: &str = "application/json-patch+json";
/// Media type of JSON Merge Patch (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// Parses a body; a fault is reported with its JSON pointer and what was expected.
///
/// # Errors
/// `INVALID_MSG_FORMAT` when the body is not JSON, not of the type or nested deeper than [`MOST_LEVELS`],
/// `MANDATORY_IE_MISSING` when a member is missing.
pub fn parse<T: DeserializeOwned>(body: &Body) -> Result<T, Problem> {
    parse_slice(&body.to_bytes())
}

/// As [`parse`], of bytes.
///
/// # Errors
/// As [`parse`].
pub fn parse_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    refuse_depth(bytes)?;
    // Keeping track of the place takes half as long again as parsing: only a body with a mistake is parsed with it.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(parsed) = serde_json::from_str(text)
    {
        return Ok(parsed);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer_of(error.path());
        invalid(&pointer, error.inner())
    })?;
    deserializer.end().map_err(|error| invalid("", &error))?;
    Ok(parsed)
}

/// As [`parse`] of a value, in which each object has each member once, at every depth: an SCP or a firewall in between may
/// have judged the other one.
///
/// # Errors
/// As [`parse`], and `INVALID_MSG_FORMAT` with the member that comes twice.
pub fn parse_unique(body: &Body) -> Result<Value, Problem> {
    let bytes = body.to_bytes();
    refuse_depth(&bytes)?;
    match unique::parse(&bytes) {
        Ok(value) => Ok(value),
        Err(unique::Fault::Syntax(_)) => parse_slice(&bytes),
        Err(unique::Fault::Twice(place)) => Err(Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("{place}: the member comes twice"))
            .invalid_param(place, "expected each member once")),
    }
}

fn refuse_depth(bytes: &[u8]) -> Result<(), Problem> {
    match is_deeper_than(bytes, MOST_LEVELS) {
        true => Err(Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("the body is nested deeper than {MOST_LEVELS} levels"))),
        false => Ok(()),
    }
}

fn invalid(pointer: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    if error.is_syntax() || error.is_eof() {
        return Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("the body is not JSON: {text}"))
            .invalid_param(pointer, text);
    }
    // serde has no other way to say which member is missing than this text.
    let missing = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next());
    match missing {
        Some(member) => Problem::new(Cause::MandatoryIeMissing)
            .detail(format!("the body has no `{member}`"))
            .invalid_param(
                format!("{pointer}/{}", escape(member)),
                "is mandatory and missing",
            ),
        None => Problem::new(Cause::InvalidMsgFormat)
            .detail("a member of the body is invalid")
            .invalid_param(pointer, text),
    }
}

/// A member's name as a part of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The JSON pointer (RFC 6901) of a place in a document.
fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => escape(key),
            // Variants and unknown parts are not members of the document.
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&token);
    }
    pointer
}

/// Refuses a body that does not say it is of this media type (parameters do not matter).
///
/// # Errors
/// 415 with the type that would be right.
pub fn expect_type(headers: &Fields, media_type: &str) -> Result<(), Problem> {
    if is_type(headers, media_type) {
        return Ok(());
    }
    Err(Problem::new(Cause::UnsupportedMediaType).detail(format!("expected a body of type {media_type}")))
}

/// Whether the body is said to be of this media type.
#[must_use]
pub fn is_type(headers: &Fields, media_type: &str) -> bool {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(media_type)
}

/// A response with a JSON body.
#[must_use]
pub fn response<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => response_of(status, bytes),
        Err(error) => {
            tracing::error!(%error, "failed to serialise a response");
            Problem::new(Cause::SystemFailure).into_response()
        }
    }
}

/// A response with a body that is JSON already.
#[must_use]
pub fn response_of(status: StatusCode, body: impl Into<Body>) -> Response {
    Response::new(status).with(CONTENT_TYPE, JSON).with_body(body)
}

/// Applies a JSON Patch (RFC 6902) to `document`, within limits; all of it or nothing.
///
/// # Errors
/// `INVALID_MSG_FORMAT` when the body is not a patch; `MANDATORY_IE_INCORRECT` with the operation that failed
/// when it does not fit the document; 413 when it asks for more than the limits allow.
pub fn apply_patch(document: &mut Value, body: &[u8], limits: &patch::Limits) -> Result<(), Problem> {
    let operations = patch::operations(body, limits.operations)?;
    let patched = patch::apply(&document.to_string(), &operations, limits).map_err(|fault| {
        Problem::new(fault.blame.cause())
            .detail(format!("the patch does not fit the resource: {fault}"))
            .invalid_param(format!("/{}", fault.index), fault.expected)
    })?;
    *document = parse_slice(patched.as_bytes())?;
    Ok(())
}

/// Applies a JSON Merge Patch (RFC 7396) to `document`; the result has at most `size` bytes. A document that is
/// larger already may be changed, but not grow.
///
/// # Errors
/// 413 when the result would be larger; `document` is not to be used then.
pub fn merge(document: &mut Value, patch: &Value, size: usize) -> Result<(), Problem> {
    let before = length(document);
    json_patch::merge(document, patch);
    let after = length(document);
    if after > size && after > before {
        return Err(Problem::new(Cause::PayloadTooLarge)
            .detail(format!("the patch makes the resource larger than {size} bytes")));
    }
    Ok(())
}

/// Bytes of a document.
#[must_use]
pub fn length(document: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value of JSON can be written, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, document);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    struct Sample {
        #[allow(dead_code)]
        list: Vec<Inner>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Inner {
        #[allow(dead_code)]
        nf_type: String,
    }

    fn first_fault(text: &str) -> (String, String) {
        let problem = parse_slice::<Sample>(text.as_bytes()).unwrap_err();
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
        let fault = problem.details().invalid_params[0].clone();
        (fault.param, fault.reason.unwrap())
    }

    #[test]
    fn the_place_of_a_mistake() {
        let (place, expected) = first_fault(r#"{"list": [{"nfType": "UDM"}, {"nfType": 7}]}"#);
        assert_eq!(place, "/list/1/nfType");
        assert!(expected.contains("expected a string"), "{expected}");
        let (place, expected) = first_fault(r#"{"list": [{}]}"#);
        assert_eq!(
            (&*place, &*expected),
            ("/list/0/nfType", "is mandatory and missing")
        );
        assert_eq!(first_fault(r#"{"list": ["#).0, "/list");
        assert_eq!(first_fault(r#"{"list": []} x"#).0, "");
    }

    #[test]
    fn a_body_that_is_nested_too_deep_or_has_a_member_twice_is_refused() {
        let nested = |levels: usize| Body::from(format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
        for (levels, good) in [(64, true), (65, false), (127, false), (20_000, false)] {
            assert_eq!(parse::<Value>(&nested(levels)).is_ok(), good, "{levels}");
            assert_eq!(parse_unique(&nested(levels)).is_ok(), good, "{levels}");
        }
        let twice = parse_unique(&Body::from(r#"{"supi": 1, "\u0073upi": 2}"#)).unwrap_err();
        assert_eq!(twice.details().invalid_params[0].param, "/supi");
        assert!(parse_unique(&Body::from("{")).is_err());
    }

    #[test]
    fn patches() {
        let mut document = json!({"a": 1, "b": [1, 2]});
        let before = document.clone();
        let twice = br#"[{"op":"replace","path":"/a","value":2},{"op":"remove","path":"/b/7"}]"#;
        let limits = patch::Limits {
            operations: 10,
            size: 60,
            work: 10_000,
        };
        let problem = apply_patch(&mut document, twice, &limits).unwrap_err();
        assert_eq!(problem.details().invalid_params[0].param, "/1");
        assert_eq!(document, before, "all or nothing");
        let add = br#"[{"op":"add","path":"/b/-","value":3}]"#;
        apply_patch(&mut document, add, &limits).unwrap();
        merge(&mut document, &json!({"a": null, "c": {"d": 1}}), 60).unwrap();
        assert_eq!(document, json!({"b": [1, 2, 3], "c": {"d": 1}}));
        assert!(apply_patch(&mut document, br#"{"op":"add"}"#, &limits).is_err());
        assert_eq!(length(&document), document.to_string().len());
        let refused = merge(&mut document, &json!({"e": "x".repeat(60)}), 60).unwrap_err();
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn media_types() {
        let mut headers = Fields::new();
        assert!(!is_type(&headers, JSON_PATCH));
        headers.set(
            CONTENT_TYPE,
            http2::Value::from_static("Application/JSON-Patch+json; charset=utf-8"),
        );
        assert!(expect_type(&headers, JSON_PATCH).is_ok());
        assert_eq!(
            expect_type(&headers, MERGE_PATCH).unwrap_err().status(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse_slice::<Sample>(&bytes);
        }
    }
}
