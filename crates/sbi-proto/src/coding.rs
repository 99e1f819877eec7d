//! Content coding: gzip both ways (TS 29.500 §6.9), bounded.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
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
    if !is_gzip(coding) {
        let problem = Problem::new(Cause::UnsupportedMediaType).detail(format!(
            "content coding `{coding}` is not supported; gzip and identity are"
        ));
        return Err(problem.accepts("gzip, identity"));
    }
    let packed = body.into_bytes();
    let mut plain = Vec::new();
    // A body may have several members (RFC 1952 §2.2); the bound is that of all of them.
    let read = MultiGzDecoder::new(&packed[..])
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

/// Whether a coding is gzip; `x-gzip` is the same (RFC 9110 §8.4.1.3), and codings have no case (§8.4.1).
fn is_gzip(coding: &str) -> bool {
    coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip")
}

/// Whether a sender accepts gzip (`Accept-Encoding`, RFC 9110 §12.5.3): what it says of gzip counts, else what it says of
/// `*`, the codings that it does not name.
#[must_use]
pub fn accepts_gzip(headers: &Fields) -> bool {
    let values = headers
        .get_all(ACCEPT_ENCODING)
        .filter_map(|value| value.to_str().ok());
    let (mut named, mut others) = (None, None);
    for item in values.flat_map(|value| value.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let accepted = !parts.any(is_weight_of_none);
        if is_gzip(coding) {
            named = Some(named.unwrap_or(false) || accepted);
        } else if coding == "*" {
            others = Some(accepted);
        }
    }
    named.or(others).unwrap_or(false)
}

/// Whether a parameter is a weight of 0 (RFC 9110 §12.4.2), whose name has no case.
fn is_weight_of_none(parameter: &str) -> bool {
    let weight = parameter
        .split_once('=')
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, weight)| matches!(weight.trim().parse(), Ok(0.0_f32)))
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
    fn several_members_are_one_body_within_one_bound() {
        let member = |byte: u8| pack(&Body::from(vec![byte; 1_000])).unwrap();
        let mut packed = member(b'a').to_vec();
        packed.extend_from_slice(&member(b'b'));
        for coding in ["gzip", "x-gzip", "GZIP"] {
            let unpack =
                |body: Vec<u8>, limit| decode(&with(CONTENT_ENCODING, coding), Body::from(body), limit);
            let plain = unpack(packed.clone(), 2_000).unwrap();
            assert_eq!((plain.len(), plain.into_bytes()[1_999]), (2_000, b'b'));
            let tight = unpack(packed.clone(), 1_999).unwrap_err();
            assert_eq!(tight.status(), StatusCode::PAYLOAD_TOO_LARGE);
            let mut broken = packed.clone();
            broken.truncate(packed.len() - 4);
            assert_eq!(
                unpack(broken, 2_000).unwrap_err().status(),
                StatusCode::BAD_REQUEST
            );
        }
    }

    #[test]
    fn who_accepts_it() {
        for (value, accepted) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("*", true),
            ("gzip;q=0, *", false),
            ("*, gzip;q=0", false),
            ("*;q=0", false),
            ("*;q=0, gzip", true),
            ("gzip;Q=0", false),
            ("gzip ; q = 0.000", false),
            ("gzip;q=0.001", true),
            ("GZIP", true),
            ("x-gzip", true),
            ("br, X-GZip;q=0", false),
            ("gzipped", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&with(ACCEPT_ENCODING, value)), accepted, "{value}");
        }
    }
}
