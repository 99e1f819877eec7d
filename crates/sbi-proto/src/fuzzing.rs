//! Bodies of the fuzz targets of this crate: operations on bytes from the network, and what must hold afterwards. Not part
//! of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use http::Uri;
use http2::name::CONTENT_ENCODING;
use http2::{Fields, Name, Value};

use crate::Body;
use crate::headers::{self, SbiHeader};
use crate::origin::Origin;

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
    let mut all = Fields::new();
    for line in text.lines() {
        let (name, value) = line.split_once(": ").unwrap_or(("3gpp-sbi-discovery-supi", line));
        if let (Ok(name), Ok(value)) = (Name::new(name.as_bytes()), Value::try_from(value)) {
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
        if let Ok(pairs) = crate::query::pairs(uri.query()) {
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
    let mut headers = Fields::new();
    headers.set(CONTENT_ENCODING, Value::from_static("gzip"));
    if let Ok(plain) = crate::coding::decode(&headers, Body::from(bytes.to_vec()), LIMIT) {
        assert!(plain.to_bytes().len() <= LIMIT);
    }
}
