use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// How a client connects and what it bounds, per worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ClientConfig {
    /// `User-Agent` of requests that have none: the NF type, optionally with `-` and the instance
    /// (TS 29.500 §5.2.2.2).
    pub user_agent: String,
    /// Connections to one origin.
    pub connections_per_origin: u16,
    /// Origins that connections are kept to; a new origin evicts an unused one.
    pub max_origins: u32,
    /// Requests in flight on one connection, where the peer allows more.
    pub max_streams_per_connection: u32,
    /// Requests per second on one connection; further requests go to another connection of the origin, which is made
    /// where there are fewer than `connectionsPerOrigin`. A request beyond the rate of all connections is not sent: an
    /// SCP tries another producer, or answers 429. 0: not limited.
    pub max_request_rate: u32,
    /// Requests that are pending for a connection to one origin; further requests fail at once.
    pub max_waiting: u32,
    /// Timeout of connection setup, TLS included.
    pub connect_timeout: Period,
    /// First pause after a failed connection attempt, or after the client closed a connection because the peer sent too
    /// many frames; doubles up to `backoffMax`. Requests fail at once during the pause.
    pub backoff_min: Period,
    /// Longest pause after failed connections.
    pub backoff_max: Period,
    /// Interval of probes (PING) on a silent connection while requests are in flight. 0: never.
    pub ping_interval: Period,
    /// Timeout of the answer to a probe; the client closes the connection after it.
    pub ping_timeout: Period,
    /// Idle time after which a connection is closed.
    pub idle_timeout: Period,
    /// Size of the body of a response.
    pub max_body: ByteSize,
    /// Size of all headers of a response together.
    pub max_header_list: ByteSize,
    /// Bytes of responses that are still arriving on one connection, all together; never less than `maxBody`.
    pub max_arriving: ByteSize,
    /// Requests given up by their sender whose answers the client still awaits and discards, per connection; beyond
    /// this count their streams are reset as soon as `maxCancelRate` allows.
    pub max_abandoned: u32,
    /// Time for which the client awaits the answer to a request that was given up, before it resets the stream.
    pub abandoned_wait: Period,
    /// Streams per second and connection that are reset because their sender gave up. A peer takes a higher rate for an
    /// attack (rapid reset) and would close a connection that other requests use. 0: none.
    pub max_cancel_rate: u32,
    /// PING, SETTINGS, PRIORITY, GOAWAY and unknown frames per second that a peer may send, and resets and
    /// informational responses beyond what its requests give reason for, before its connection is closed with
    /// ENHANCE_YOUR_CALM. 0: not limited.
    pub max_control_rate: u32,
    /// WINDOW_UPDATE frames per second that a peer may send, beyond two for each request, two for each DATA
    /// frame sent and one for each KiB of it, before its connection is closed with ENHANCE_YOUR_CALM. 0: not
    /// limited.
    pub max_window_update_rate: u32,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            user_agent: String::new(),
            connections_per_origin: 2,
            max_origins: 4_096,
            max_streams_per_connection: 2_000,
            max_request_rate: 0,
            max_waiting: 10_000,
            connect_timeout: Period::from_secs(2),
            backoff_min: Period::from_millis(50),
            backoff_max: Period::from_secs(5),
            ping_interval: Period::from_secs(10),
            ping_timeout: Period::from_secs(5),
            idle_timeout: Period::from_secs(300),
            max_body: ByteSize::mib(4),
            max_header_list: ByteSize::kib(64),
            max_arriving: ByteSize::mib(16),
            max_abandoned: 1_000,
            abandoned_wait: Period::from_secs(30),
            max_cancel_rate: 50,
            max_control_rate: 100,
            max_window_update_rate: 1_000,
        }
    }
}

impl Validate for ClientConfig {
    fn validate(&self, faults: &mut Faults) {
        let bad = self.user_agent.bytes().any(|b| !(0x20..=0x7e).contains(&b));
        if bad {
            faults
                .at("userAgent")
                .say("is not a valid header value", "printable ASCII, such as NRF-1");
        }
        if self.connections_per_origin == 0 {
            faults
                .at("connectionsPerOrigin")
                .say("permits no connection to any origin", "1 or more");
        }
        if self.max_streams_per_connection == 0 {
            faults
                .at("maxStreamsPerConnection")
                .say("permits no request", "1 or more");
        }
        if self.backoff_min > self.backoff_max {
            faults
                .at("backoffMin")
                .say("is longer than backoffMax", "at most backoffMax");
        }
        if self.connect_timeout.is_zero() {
            faults
                .at("connectTimeout")
                .say("is 0, so that every attempt fails", "a period such as 2s");
        }
    }
}
