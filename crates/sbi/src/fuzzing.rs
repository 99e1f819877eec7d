//! Bodies of the fuzz targets of this crate: operations on bytes from the network, and what must hold afterwards. Not part
//! of its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use std::sync::Arc;

use sbi_proto::name::AUTHORIZATION;
use sbi_proto::{Fields, Value};

use crate::oauth::{Expectation, Keys, Verifier};

/// Bytes as a token and as a set of keys. A token without a known key is never accepted.
pub fn token(bytes: &[u8]) {
    const JWKS: &[u8] = br#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256",
        "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;
    let mut keys = Keys::new();
    let _ = Keys::new().add_jwks(bytes);
    assert_eq!(keys.add_jwks(JWKS).ok(), Some(1));
    let mut headers = Fields::new();
    let text = [b"Bearer ", bytes].concat();
    let Ok(value) = Value::new(&text) else {
        return;
    };
    headers.set(AUTHORIZATION, value);
    let verifier = Verifier::new(Arc::new(keys), Expectation::default(), 4);
    assert!(verifier.check(&headers, &["nudm-sdm"], 0).is_err());
}
