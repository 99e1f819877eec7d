//! Limits of a server: each with its reason and its default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Period};

/// What peers may ask of a server. Every limit is per connection unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServerConfig {
    /// Connections a worker accepts at most; more are closed at once.
    pub max_connections: u32,
    /// Requests in progress at once; more are refused with REFUSED_STREAM.
    pub max_concurrent_streams: u32,
    /// Size of all headers of a request together (RFC 9113 §6.5.2).
    pub max_header_list: ByteSize,
    /// Size of the body of a request; more is answered 413.
    pub max_body: ByteSize,
    /// How long a peer may take to finish TLS and the HTTP/2 preface.
    pub handshake_timeout: Period,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Period,
    /// How long a peer may leave bytes of ours untaken before the connection is closed.
    pub write_stall_timeout: Period,
    /// How long a connection may be without a request before it is closed.
    pub idle_timeout: Period,
    /// Requests per second; more are answered 429. 0: not limited.
    pub max_request_rate: u32,
    /// Streams a peer may open and reset before we have accepted them, before the connection is closed
    /// (rapid reset, CVE-2023-44487).
    pub max_pending_resets: u32,
    /// Streams that may be reset for errors of the peer before the connection is closed.
    pub max_error_resets: u32,
    /// Flow-control window of a stream.
    pub stream_window: ByteSize,
    /// Flow-control window of a connection.
    pub connection_window: ByteSize,
    /// How long requests in progress may take to finish when the server stops.
    pub drain_timeout: Period,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_concurrent_streams: 4_096,
            max_header_list: ByteSize::kib(64),
            max_body: ByteSize::mib(1),
            handshake_timeout: Period::from_secs(10),
            body_timeout: Period::from_secs(10),
            write_stall_timeout: Period::from_secs(30),
            idle_timeout: Period::from_secs(600),
            max_request_rate: 0,
            max_pending_resets: 200,
            max_error_resets: 1_024,
            stream_window: ByteSize::mib(1),
            connection_window: ByteSize::mib(16),
            drain_timeout: Period::from_secs(10),
        }
    }
}
