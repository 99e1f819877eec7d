//! Rows of the admin pages.

use serde::{Deserialize, Serialize};

/// State of a peer.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerRow {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm, while it is connected.
    pub realm: String,
    /// Name of the local node.
    pub local_node: String,
    /// Position of its message processor.
    pub worker: usize,
    /// `available`, `degraded` or `unavailable`.
    pub state: &'static str,
    /// State of its machine, by RFC 6733 §5.6.
    pub machine: String,
    /// Why it has no connection: the last error. Empty while it has one.
    pub last_error: String,
    /// Since when it has none, by RFC 3339; empty while it has one.
    pub down_since: String,
    /// Failed attempts to connect to it since then.
    pub attempts: u64,
    /// What an operator wants of it: enabled, draining, disabled, reconnecting.
    pub administration: &'static str,
    /// Address of its connection.
    pub address: String,
    /// Whether the peer is configured by name.
    pub configured: bool,
    /// Messages received.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Requests received.
    pub requests_in: u64,
    /// Requests sent.
    pub requests_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections that were open, the present one included.
    pub connections: u64,
    /// Requests pending at the peer.
    pub pending: u32,
    /// Requests that the peer did not answer in time.
    pub timeouts: u64,
    /// Requests per second that are taken from it; 0: not bounded.
    pub ingress_maximum: u32,
}

/// A throttle group, as this router has it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThrottleRow {
    /// Name.
    pub name: String,
    /// Requests per second, of all routers that share it.
    pub rate: u32,
    /// Requests per second that would go to the group, refused ones included.
    pub demand: f64,
    /// The part of the rate that this router has, 0 to 1.
    pub share: f64,
}

/// A member of a route list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteRow {
    /// Name of the list.
    pub list: String,
    /// Name of the group.
    pub group: String,
    /// Whether requests go to this group now.
    pub active: bool,
    /// The peer.
    pub host: String,
    /// State of the peer, as in [`PeerRow`].
    pub state: &'static str,
    /// Position of its message processor.
    pub worker: usize,
}

/// What a rule, a route list, a throttle group or a trace point did, or transactions of one result.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MeasureRow {
    /// What is counted.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Of transactions: the names of application, command and result.
    pub meaning: String,
    /// How often.
    pub count: u64,
}

/// A table of an application.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationRow {
    /// Name of the application.
    pub name: String,
    /// Its kind: the key in the configuration.
    pub kind: &'static str,
    /// The table.
    pub table: &'static str,
    /// Its entries.
    pub entries: usize,
    /// Memory that the entries take.
    pub bytes: usize,
}

/// Present value of an indicator.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IndicatorRow {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// Subject: a message processor, a connection, the machine.
    pub instance: String,
    /// Its value, averaged over `indicators.interval`.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// The profile that it is measured by, where one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<&'static str>,
}

/// A traced message.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceRow {
    /// When it was read or written, in microseconds since 1970.
    pub at_microseconds: u64,
    /// Origin-Host of the router; the admin endpoint of one that does not answer.
    pub router: String,
    /// Its trigger point.
    pub point: String,
    /// `request in`, `request out`, `answer in`, `answer out`; `unreachable` for a router that does not answer.
    pub what: String,
    /// The peer it came from or went to.
    pub peer: String,
    /// Address of its sender.
    pub from: String,
    /// Address of its receiver.
    pub to: String,
    /// Command code.
    pub command: u32,
    /// Result-Code or Experimental-Result-Code; 0 of a request.
    pub result: u32,
    /// Session-Id.
    pub session: String,
    /// The message as text, or why there is none.
    pub text: String,
}
