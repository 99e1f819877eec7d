//! Content coding: gzip both ways (TS 29.500 §6.9), bounded.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http2::name::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http2::{Fields, Value};

use crate::Body;
use crate::message::Response;
use crate::problem::{Cause, Problem};

/// Gives a body as it was before its `Content-Encoding`, at most `limit` bytes of it.
///
/// # Errors
/// 415 for a coding other than gzip, 400 for broken gzip, 413 for more than `limit` bytes.
pub fn decode(headers: &Fields, body: Body, limit: usize) -> Result<Body, Problem> {
    let coding = match headers.get(CONTENT_ENCODING) {
        None => return Ok(body),
        Some(value) => value.to_str().unwrap_or_default().trim(),
    };
    if coding.is_empty() || coding.eq_ignore_ascii_case("identity") {
        return Ok(body);
    }
    if !coding.eq_ignore_ascii_case("gzip") {
        let problem = Problem::new(Cause::UnsupportedMediaType).detail(format!(
            "content coding `{coding}` is not supported; gzip and identity are"
        ));
        return Err(problem.accepts("gzip, identity"));
    }
    let packed = body.into_bytes();
    let mut plain = Vec::new();
    let read = GzDecoder::new(&packed[..])
        .take(limit as u64 + 1)
        .read_to_end(&mut plain);
    match read {
        Err(error) => {
            Err(Problem::new(Cause::InvalidMsgFormat).detail(format!("the body is not valid gzip: {error}")))
        }
        Ok(_) if plain.len() > limit => Err(Problem::new(Cause::PayloadTooLarge)
            .detail(format!("the body is larger than {limit} bytes when unpacked"))),
        Ok(_) => Ok(Body::from(plain)),
    }
}

/// Whether a sender accepts gzip (`Accept-Encoding`, RFC 9110 §12.5.3).
#[must_use]
pub fn accepts_gzip(headers: &Fields) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|item| {
                let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
                let refused = matches!(weight.trim().trim_start_matches("q=").parse(), Ok(0.0_f32));
                matches!(coding.trim(), "gzip" | "*") && !refused
            })
        })
}

/// Packs the body of a response with gzip, if that makes it smaller.
#[must_use]
pub fn encode(mut response: Response) -> Response {
    response
        .headers_mut()
        .append(VARY, Value::from_static("accept-encoding"));
    if response.headers().contains(CONTENT_ENCODING) || response.body().is_empty() {
        return response;
    }
    let Some(packed) = pack(response.body()) else {
        return response;
    };
    *response.body_mut() = Body::from(packed);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
        .headers_mut()
        .set(CONTENT_ENCODING, Value::from_static("gzip"));
    response
}

/// The bytes packed with gzip; `None` when that would not be smaller.
#[must_use]
pub fn pack(body: &Body) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    for segment in body.segments() {
        encoder.write_all(segment).ok()?;
    }
    let packed = encoder.finish().ok()?;
    (packed.len() < body.len()).then(|| packed.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn with(name: http2::Name<'_>, value: &'static str) -> Fields {
        let mut fields = Fields::new();
        fields.append(name, Value::from_static(value));
        fields
    }

    #[test]
    fn there_and_back() {
        let plain = Body::from(vec![b'x'; 10_000]);
        let response = encode(Response::default().with_body(plain.clone()));
        assert!(response.body().len() < 200);
        assert_eq!(
            decode(response.headers(), response.body().clone(), 10_000).unwrap(),
            plain
        );
        let tight = decode(response.headers(), response.body().clone(), 9_999).unwrap_err();
        assert_eq!(tight.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn what_cannot_be_unpacked() {
        let refused = |coding, body: &'static str| {
            decode(&with(CONTENT_ENCODING, coding), Body::from(body), 100)
                .unwrap_err()
                .status()
        };
        assert_eq!(refused("br", "x"), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(refused("gzip", "not gzip"), StatusCode::BAD_REQUEST);
        assert!(decode(&with(CONTENT_ENCODING, "identity"), Body::from("x"), 100).is_ok());
    }

    #[test]
    fn who_accepts_it() {
        for (value, accepted) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("*", true),
        ] {
            assert_eq!(accepts_gzip(&with(ACCEPT_ENCODING, value)), accepted, "{value}");
        }
    }
}
