//! Access tokens (TS 29.510 §5.4.2, §6.3; TS 33.501 §13.4.1).
//!
//! The consumer must be registered and match its registered type; a registered producer must offer the requested scope
//! to it; the rules of the operator must not refuse it. Only then the NRF signs a token, for the granted scope.

mod issuer;
mod keys;
mod request;

pub use issuer::{Issuer, TokenFault};
pub(crate) use keys::is_due;
pub use request::{Request, parse};

/// Seconds since 1970.
#[must_use]
pub fn unix_now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map(|since| since.as_secs()).unwrap_or_default()
}
