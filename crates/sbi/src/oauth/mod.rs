//! OAuth 2.0 access tokens of the service-based interface (TS 33.501 §13.4.1, TS 29.510 §6.3.5.2.4).
//!
//! [`Verifier`] is what a producer switches on: it checks a token's signature, issuer, audience, expiry,
//! scope and the slice and set claims, and answers with the problem that RFC 6750 asks for. Only ES256 and
//! RS256 are accepted, whatever a token's header says. A verified token is cached until it expires, because the check
//! of a signature costs tens of microseconds and a consumer sends the same token many times.
//!
//! [`Assertions`] does the same for client credentials assertions (TS 33.501 §13.3.8).

mod assertions;
mod jws;
mod keys;
mod verifier;

pub use assertions::{
    AssertionAuthorities, AssertionClaims, AssertionFault, AssertionKey, AssertionMode, AssertionRefused,
    AssertionSettings, Assertions, since_epoch,
};
pub use keys::{KeyError, Keys, SigningKey};
pub use sbi_proto::{AccessTokenClaims, Audience, PlmnClaim, SnssaiClaim};
pub use verifier::{Denied, Expectation, Verifier, VerifierStats};
