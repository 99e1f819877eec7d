//! Bodies of the fuzz targets of this crate: what may be done with bytes from a stranger, and what must hold then. No
//! part of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use std::sync::Arc;
use std::time::Instant;

use http::header::{AUTHORIZATION, CONTENT_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::body::Body;
use crate::client::Origin;
use crate::headers::{self, SbiHeader};
use crate::io::FrameSample;
use crate::oauth::{Expectation, Keys, Verifier};

/// What is printed of a header is read again as the same, and is not much longer than what was sent.
fn header<H: SbiHeader>(text: &str) {
    let Ok(read) = H::parse(text) else { return };
    let printed = read.to_string();
    assert!(
        printed.len() <= 4 * text.len() + 64,
        "{} grows from {} to {} bytes",
        H::NAME,
        text.len(),
        printed.len()
    );
    let again = H::parse(&printed);
    let again = again.unwrap_or_else(|error| panic!("{} prints {printed:?}: {error}", H::NAME));
    assert_eq!(again.to_string(), printed, "{}", H::NAME);
}

/// A text as the value of each `3gpp-Sbi-*` header, and of discovery headers.
pub fn headers(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    macro_rules! each {
        ($($type:ident)+) => { $(header::<headers::$type>(text);)+ };
    }
    each! {
        Binding RoutingBinding Lci Oci RequestInfo ResponseInfo NfPeerInfo SelectionInfo CorrelationInfo
        ConsumerInfo NrfUri AccessScope ClientCredentials SourceNfClientCredentials MaxForwardHops MaxRspTime
        MessagePriority OriginatingNetworkId SenderTimestamp Callback ProducerId TargetApiRoot TargetNfId
    }
    let mut all = HeaderMap::new();
    for line in text.lines() {
        let (name, value) = line.split_once(": ").unwrap_or(("3gpp-sbi-discovery-supi", line));
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            all.append(name, value);
        }
    }
    let _ = headers::discovery::parameters(&all);
    let _ = crate::etag::none_match_hits(&all, "\"a\"");
    headers::discovery::remove(&mut all);
    assert!(!headers::discovery::has_parameters(&all));
}

/// A text as a URI, an origin and a query.
pub fn uris(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(origin) = text.parse::<Origin>() {
        let printed = origin.to_string();
        assert_eq!(printed.parse::<Origin>().ok(), Some(origin), "{printed}");
    }
    if let Ok(uri) = text.parse::<Uri>() {
        let _ = Origin::of_uri(&uri);
        if let Ok(pairs) = crate::query::pairs(&uri) {
            let decoded: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(decoded <= text.len());
        }
    }
}

/// The first line as a document, the rest as a patch of it: all of the patch or nothing, and within its limits.
pub fn patch(bytes: &[u8]) {
    const LIMITS: crate::json::patch::Limits = crate::json::patch::Limits {
        operations: 16,
        size: 4 * 1024,
        work: 256 * 1024,
    };
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (document, patch) = bytes.split_at(end);
    let Ok(before) = crate::json::parse_slice::<serde_json::Value>(document) else {
        return;
    };
    let bound = LIMITS.size.max(crate::json::length(&before));
    if let Ok(patch) = crate::json::parse_slice::<serde_json::Value>(patch) {
        let mut merged = before.clone();
        if crate::json::merge(&mut merged, &patch, LIMITS.size).is_ok() {
            assert!(crate::json::length(&merged) <= bound);
        }
    }
    let mut patched = before.clone();
    match crate::json::apply_patch(&mut patched, patch, &LIMITS) {
        Ok(()) => assert!(crate::json::length(&patched) <= bound),
        Err(_) => assert_eq!(patched, before, "all or nothing"),
    }
}

/// Bytes as a compressed body: what comes out keeps to its bound.
pub fn gzip(bytes: &[u8]) {
    const LIMIT: usize = 64 * 1024;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    if let Ok(plain) = crate::coding::decode(&headers, Body::from(bytes.to_vec()), LIMIT) {
        assert!(plain.to_bytes().len() <= LIMIT);
    }
}

/// Bytes as a token and as a set of keys. Whoever holds no key makes no token that is accepted.
pub fn token(bytes: &[u8]) {
    const JWKS: &[u8] = br#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256",
        "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;
    let mut keys = Keys::new();
    let _ = Keys::new().add_jwks(bytes);
    assert_eq!(keys.add_jwks(JWKS).ok(), Some(1));
    let mut headers = HeaderMap::new();
    let Ok(value) = HeaderValue::from_bytes(&[b"Bearer ", bytes].concat()) else {
        return;
    };
    headers.insert(AUTHORIZATION, value);
    let verifier = Verifier::new(Arc::new(keys), Expectation::default(), 4);
    assert!(verifier.check(&headers, &["nudm-sdm"], 0).is_err());
}

/// The frames of a client: in whatever pieces they come, the same is seen.
pub fn frames(bytes: &[u8]) {
    let now = Instant::now();
    let whole = FrameSample::of([bytes], now);
    for size in [1, 9, 10, 64] {
        assert_eq!(
            FrameSample::of(bytes.chunks(size), now),
            whole,
            "in pieces of {size}"
        );
    }
}
