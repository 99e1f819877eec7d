//! The service-based interface that every 5G function shares (TS 29.500, TS 29.501).
//!
//! A tour:
//! * [`Body`], [`Request`], [`Response`], [`Service`], [`problem`], [`headers`], [`json`] and the rest of what needs
//!   no runtime: crate `sbi-proto`, whose names are those of this crate too.
//! * [`server`]: HTTP/2 with prior knowledge or over TLS, one listener per worker, every limit a setting.
//! * [`client`]: a pool of connections per origin; errors say whether another try is safe.
//! * [`dns`]: names of hosts and services, cached for all workers, resolved on a thread of its own.
//! * [`tls`], [`oauth`], [`identity`]: who the peer is, what its token allows, and which NF instance it has proved.
//!
//! Data path: the `reactor` of a worker runs everything that is ready. A `link` reads what a socket has into the HTTP/2
//! engine (crate `http2`); whole requests run at once, and their output leaves in one system call for each connection
//! and turn, large segments of bodies without a copy.
//!
//! `memory` counts the bytes that the connections of a worker hold, of its server and of its client, against one limit;
//! the connection that holds most is closed first.

pub mod client;
pub mod dns;
#[doc(hidden)]
pub mod fuzzing;
pub mod identity;
mod link;
mod memory;
pub mod oauth;
mod reactor;
pub mod server;
mod stats;
mod tap;
pub mod tls;
mod wire;

pub use sbi_proto::{Body, Field, Fields, Name, RequestHead, ResponseHead, Value, name};
pub use sbi_proto::{GivenUp, Outbound, Peer, Request, Response, Service, TlsPeer};
pub use sbi_proto::{coding, etag, headers, json, multipart, path, problem, query, response};
