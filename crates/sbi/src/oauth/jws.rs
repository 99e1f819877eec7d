//! The header of a compact JWS (RFC 7515 §4), read by one rule for tokens and assertions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Header;
use serde_json::{Map, Value};

/// By how many seconds the clock of the signer may be ahead when `nbf` is judged (RFC 7519 §4.1.5).
pub(super) const LEEWAY: u64 = 5;

/// Why a header is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not the header of a signed JWT.
    NotSigned,
    /// It names extensions that must be understood. None is understood here, and an empty list is invalid
    /// (RFC 7515 §4.1.11).
    Critical,
}

/// The header of a token, if nothing in it must be understood that is not understood here.
pub(super) fn header(token: &str) -> Result<Header, Unusable> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| Unusable::NotSigned)?;
    let text = token.split('.').next().unwrap_or_default();
    let members: Map<String, Value> = URL_SAFE_NO_PAD
        .decode(text)
        .ok()
        .and_then(|json| serde_json::from_slice(&json).ok())
        .ok_or(Unusable::NotSigned)?;
    match members.contains_key("crit") {
        true => Err(Unusable::Critical),
        false => Ok(header),
    }
}

/// Whether a time before which a token is not to be accepted lies ahead.
pub(super) fn lies_ahead(not_before: Option<u64>, now: u64, leeway: u64) -> bool {
    not_before.is_some_and(|from| from > now.saturating_add(leeway))
}
