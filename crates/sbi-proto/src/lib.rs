//! The service-based interface (TS 29.500, TS 29.501) as data: no sockets, no clocks, no runtime.
//!
//! A tour:
//! * [`Request`], [`Outbound`], [`Response`], [`Service`]: complete messages. [`Fields`], their header fields, are flat
//!   memory; [`Body`] is shared segments, never copied. [`name`]: the names that signalling uses.
//! * [`problem`]: problem details with the causes of TS 29.500, and [`response`]: the other answers that every
//!   service gives.
//! * [`headers`]: the `3gpp-Sbi-*` headers as types, by the ABNF of TS 29.500.
//! * [`json`], [`coding`], [`etag`], [`query`]: bodies parsed with the JSON pointer of every mistake and patched within
//!   bounds, gzip, entity tags, query strings.
//! * [`Origin`], [`AccessTokenClaims`]: where requests go, and what an access token says.
//!
//! The crate `sbi` moves these messages over HTTP/2.

mod claims;
pub mod coding;
pub mod etag;
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod json;
mod message;
pub mod multipart;
mod origin;
pub mod path;
pub mod problem;
pub mod query;
pub mod response;

pub use claims::{AccessTokenClaims, Audience, PlmnClaim, SnssaiClaim};
pub use http2::{Body, Field, Fields, Name, RequestHead, ResponseHead, Value, name};
pub use message::{GivenUp, Outbound, Peer, Request, Response, Service, TlsPeer};
pub use origin::{Origin, OriginError, Scheme};
