//! The service-based interface that every 5G function shares (TS 29.500, TS 29.501).
//!
//! A tour:
//! * [`Body`], [`Request`], [`Response`], [`Service`]: complete messages; bodies are shared segments, never
//!   copied.
//! * [`server`]: HTTP/2 with prior knowledge or over TLS, one listener per worker, every limit a setting.
//! * [`client`]: a pool of connections per origin; errors say whether another try is safe.
//! * [`dns`]: names of hosts and services, remembered for all workers, resolved on a thread of its own.
//! * [`problem`]: problem details with the causes of TS 29.500, made in one place.
//! * [`headers`]: the `3gpp-Sbi-*` headers as types, by the ABNF of TS 29.500.
//! * [`json`], [`coding`], [`etag`], [`query`]: bodies parsed with the place of every mistake and patched,
//!   gzip, entity tags, query strings.
//! * [`tls`], [`oauth`], [`identity`]: who the peer is, what its token allows, and which NF instance it has proved.
//!
//! The way of bytes: `io` reads large pieces, counts what frames come (floods), and hands whole frames to the
//! HTTP/2 engine; what all streams of a connection write while it is polled leaves in one system call, large
//! segments of bodies without a copy.
//!
//! What the connections of a worker hold, of its server and of its client, is counted in `memory` and has one
//! limit; the connection that holds most gives way first.
//!
//! The HTTP/2 engine is the `h2` crate behind a gathering IO layer (`io`): no type of it is public, so that
//! a faster one can take its place.

mod body;
pub mod client;
pub mod coding;
mod collect;
pub mod dns;
pub mod etag;
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod identity;
mod io;
pub mod json;
mod memory;
mod message;
pub mod oauth;
pub mod problem;
pub mod query;
pub mod server;
pub mod tls;

pub use body::Body;
pub use message::{Peer, Request, Response, Service, TlsPeer};
