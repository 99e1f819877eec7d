//! The service-based interface that every 5G function shares (TS 29.500, TS 29.501).
//!
//! A tour:
//! * [`Body`], [`Request`], [`Response`], [`Service`]: complete messages; bodies are shared segments, never
//!   copied.
//! * [`server`]: HTTP/2 with prior knowledge or over TLS, one listener per worker, every limit a setting.
//! * [`client`]: a pool of connections per origin; errors say whether another try is safe.
//! * [`problem`]: problem details with the causes of TS 29.500, made in one place.
//! * [`query`], [`tls`]: what handlers and wiring need besides.
//!
//! The HTTP/2 engine is the `h2` crate behind a gathering IO layer (`io`): no type of it is public, so that
//! a faster one can take its place.

mod body;
pub mod client;
pub mod coding;
mod collect;
pub mod etag;
pub mod headers;
mod io;
pub mod json;
mod message;
pub mod oauth;
pub mod problem;
pub mod query;
pub mod server;
pub mod tls;

pub use body::Body;
pub use message::{Peer, Request, Response, Service, TlsPeer};
