//! Requests of access tokens, and what an NRF grants (`AccessTokenReq`, `AccessTokenRsp`, TS 29.510 §6.3.5.2).

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderValue;
use serde::Deserialize;

/// Media type of `AccessTokenReq` (TS 29.510 §6.3.3.2.2).
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
/// Path of the token endpoint of an NRF (TS 29.510 §6.3.3).
pub(crate) const PATH: &str = "/oauth2/token";
/// Time before its expiry from which a token is not used: requests take time to arrive, and clocks differ.
const MARGIN: Duration = Duration::from_secs(5);
/// Life of a token without `expires_in`, in seconds.
const DEFAULT_LIFE_SECONDS: u64 = 30;
/// Longest life of a cached token, in seconds: one day, the longest that an NRF of Signalbox grants.
const MAX_LIFE_SECONDS: u64 = 86_400;

/// A token as the header of a request, and until when it is used.
pub(crate) struct Grant {
    pub(crate) value: HeaderValue,
    pub(crate) ends: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<u64>,
}

/// The form of a request for a token by the type of the producer.
pub(crate) fn form(instance: &str, nf_type: &str, target: &str, scope: &str) -> String {
    format!(
        "grant_type=client_credentials&nfInstanceId={instance}&nfType={nf_type}&targetNfType={target}&scope={scope}"
    )
}

/// Reads the body of a 200 to such a request.
pub(crate) fn read(body: &[u8]) -> Option<Grant> {
    let granted: Granted = serde_json::from_slice(body).ok()?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", granted.access_token)).ok()?;
    // Tokens are secrets and do not appear in logs.
    value.set_sensitive(true);
    let life = granted.expires_in.unwrap_or(DEFAULT_LIFE_SECONDS);
    let life = Duration::from_secs(life.min(MAX_LIFE_SECONDS));
    Some(Grant {
        value,
        ends: Instant::now() + life.saturating_sub(MARGIN),
    })
}

/// The start of a refusal, for the log.
pub(crate) fn shown(body: &Bytes) -> String {
    String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned()
}
