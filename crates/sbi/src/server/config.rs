//! Limits of a server: each with its reason and its default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// What peers may ask of a server. Every limit is per connection unless it says otherwise; each is counted
/// in the server's statistics when it is passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServerConfig {
    /// Connections a worker accepts at most. A new connection beyond this count replaces the one that has been without
    /// a request for longest, which is closed with GOAWAY (NO_ERROR); if none is idle, the new connection is closed at
    /// once.
    pub max_connections: u32,
    /// Connections a worker accepts from one address (of IPv6: from one /64); more are closed at once. Proxies
    /// and SCPs that speak for many need one or a few each. 0: not limited.
    pub max_connections_per_address: u32,
    /// Connections of a worker that have not finished TLS and the HTTP/2 preface; a new connection beyond this count
    /// replaces the oldest of them. 0: not limited.
    pub max_half_open: u32,
    /// Bytes that a worker holds for all its connections, those of its clients included: heads and bodies of
    /// requests in progress, answers being collected, answers not taken, buffers of sockets. A connection that
    /// holds more than is still free gets no new requests (REFUSED_STREAM); above the limit the connection
    /// that holds most is closed with ENHANCE_YOUR_CALM. On top come about 35 KiB for each connection and
    /// 13 MiB for the one being read. 0: not limited.
    pub max_memory: ByteSize,
    /// Requests in progress at once; more are refused with REFUSED_STREAM.
    pub max_concurrent_streams: u32,
    /// Size of all headers of a request together, as RFC 9113 §6.5.2 counts it; more is answered 431.
    pub max_header_list: ByteSize,
    /// Header fields of a request; more are answered 431. Each takes about 100 bytes however short it is.
    pub max_header_fields: u32,
    /// Requests in progress whose bodies have not arrived whole; more are refused with REFUSED_STREAM.
    pub max_unfinished: u32,
    /// Size of the body of a request; more is answered 413.
    pub max_body: ByteSize,
    /// Bytes of request bodies that are still arriving, all together; a peer has to wait when they are used
    /// up. Never less than `maxBody`.
    pub max_arriving: ByteSize,
    /// Bytes of answers that the peer has not taken; beyond them requests are refused with REFUSED_STREAM.
    pub max_untaken: ByteSize,
    /// How long a peer may take to finish TLS and the HTTP/2 preface.
    pub handshake_timeout: Period,
    /// How long the headers of a request may take to arrive; then the connection is closed.
    pub header_timeout: Period,
    /// How long the body of a request may take to arrive; then it is answered 408.
    pub body_timeout: Period,
    /// How long a peer may leave an answer untaken (by its flow-control window) before its stream is reset.
    pub answer_timeout: Period,
    /// How long a peer may leave everything untaken (a full socket) before the connection is closed.
    pub write_stall_timeout: Period,
    /// How long a connection may be without a request before it is closed.
    pub idle_timeout: Period,
    /// Requests per second; more are answered 429. 0: not limited.
    pub max_request_rate: u32,
    /// Streams the peer may reset per second before the connection is closed with ENHANCE_YOUR_CALM (rapid
    /// reset, CVE-2023-44487). 0: not limited.
    pub max_reset_rate: u32,
    /// PING, SETTINGS, PRIORITY, GOAWAY and unknown frames per second, and acknowledgements of what was never
    /// sent, before the connection is closed with ENHANCE_YOUR_CALM. 0: not limited.
    pub max_control_rate: u32,
    /// WINDOW_UPDATE frames per second, beyond two for each stream, two for each DATA frame sent and one for
    /// each KiB of it, before the connection is closed with ENHANCE_YOUR_CALM. 0: not limited.
    pub max_window_update_rate: u32,
    /// Streams that may be reset for errors of the peer before the connection is closed.
    pub max_error_resets: u32,
    /// How long requests in progress may take to finish when the server stops.
    pub drain_timeout: Period,
    /// Proxies before this function that end TLS, such as the sidecars of a mesh: the addresses they connect from
    /// (`127.0.0.1`), or names in their certificates. What they say of the client's certificate in
    /// `x-forwarded-client-cert` (the names in `URI` and `DNS` of the last element) counts as if the client had shown
    /// that certificate. Each of them must remove or replace what its clients send in this header. From all others the
    /// header means nothing.
    pub certificate_proxies: Vec<String>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_connections_per_address: 5_000,
            max_half_open: 1_000,
            max_memory: ByteSize::mib(256),
            max_concurrent_streams: 4_096,
            max_header_list: ByteSize::kib(64),
            max_header_fields: 256,
            max_unfinished: 1_024,
            max_body: ByteSize::mib(1),
            max_arriving: ByteSize::mib(16),
            max_untaken: ByteSize::mib(64),
            handshake_timeout: Period::from_secs(10),
            header_timeout: Period::from_secs(10),
            body_timeout: Period::from_secs(10),
            answer_timeout: Period::from_secs(30),
            write_stall_timeout: Period::from_secs(30),
            idle_timeout: Period::from_secs(600),
            max_request_rate: 0,
            max_reset_rate: 1_000,
            max_control_rate: 100,
            max_window_update_rate: 1_000,
            max_error_resets: 1_024,
            drain_timeout: Period::from_secs(10),
            certificate_proxies: Vec::new(),
        }
    }
}

impl Validate for ServerConfig {
    fn validate(&self, faults: &mut Faults) {
        let bound = ByteSize::mib(1_024);
        if self.max_body > bound {
            faults
                .at("maxBody")
                .say("too large", format!("at most {bound}: bodies are kept whole"));
        }
        for (i, proxy) in self.certificate_proxies.iter().enumerate() {
            if proxy.trim().is_empty() || proxy.contains('/') && !proxy.contains(':') {
                faults.at(format!("certificateProxies[{i}]")).say(
                    "names no proxy",
                    "an address such as 127.0.0.1, or a name in a certificate",
                );
            }
        }
        if self.max_header_list > ByteSize::mib(16) {
            faults.at("maxHeaderList").say("too large", "at most 16MiB");
        }
        let least = ByteSize(self.max_body.bytes() * 2 + self.max_header_list.bytes() * 2);
        if self.max_memory.bytes() > 0 && self.max_memory < least {
            faults.at("maxMemory").say(
                "is too small for a single request",
                format!("at least {least}: twice maxBody and maxHeaderList"),
            );
        }
        for (name, period) in [
            ("handshakeTimeout", self.handshake_timeout),
            ("headerTimeout", self.header_timeout),
            ("bodyTimeout", self.body_timeout),
            ("answerTimeout", self.answer_timeout),
            ("writeStallTimeout", self.write_stall_timeout),
            ("idleTimeout", self.idle_timeout),
        ] {
            if period.is_zero() {
                faults.at(name).say("is 0", "a period such as 10s");
            }
        }
        for (name, number) in [
            ("maxConnections", self.max_connections),
            ("maxConcurrentStreams", self.max_concurrent_streams),
            ("maxHeaderFields", self.max_header_fields),
            ("maxUnfinished", self.max_unfinished),
        ] {
            if number == 0 {
                faults.at(name).say("refuses every peer", "1 or more");
            }
        }
    }
}
