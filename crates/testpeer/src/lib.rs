//! Scripted peers for tests: connect as, send, expect, stay silent, break off.
//!
//! A well-behaved client or server of a library cannot break the rules. These peers put raw frames on the
//! wire, in any order and any state, and report what came back; a hostile peer is ten lines of a test.

#[cfg(feature = "diameter")]
pub mod diameter;
#[cfg(feature = "dns")]
pub mod dns;
#[cfg(feature = "diameter")]
pub mod freediameter;
pub mod http2;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "tokens")]
pub mod tokens;
