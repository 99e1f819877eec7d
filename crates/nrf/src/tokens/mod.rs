//! Access tokens (TS 29.510 §5.4.2, §6.3; TS 33.501 §13.4.1).
//!
//! Who asks must be registered and be what it says; what it asks for must be there to be asked for; the rules
//! of the operator must not refuse it. Only then is a token signed, and its scope is only what was granted.

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
