//! Who may ask an admin endpoint, and how many at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// What the admin endpoints of all functions of a process share; where each listens is a setting of its function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Names by which clients may address the endpoints (`Host`), beside `localhost` and any IP address; `*` for
    /// any name. A request for another name is refused (421): a page of a foreign site could have had its own
    /// name resolved to this machine (DNS rebinding).
    pub hosts: Vec<String>,
    /// Connections at the same time to each endpoint. A newcomer beyond takes the place of the one that is idle
    /// longest (`signalbox_admin_connections_closed_total`).
    pub connections: usize,
    /// How long the head of a request may take, the wait for it included: slow and idle connections are closed.
    pub head_timeout: Period,
    /// Size of the copies of messages of followed subscribers that each function holds (`signalbox follow`). The oldest copies
    /// are dropped beyond it. 0 holds none.
    pub follow_bytes: ByteSize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            connections: 64,
            head_timeout: Period::from_secs(2),
            follow_bytes: ByteSize(64 << 20),
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        for (index, host) in self.hosts.iter().enumerate() {
            let is_name = !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
            if host != "*" && !is_name {
                faults.at(format!("hosts[{index}]")).say(
                    format!("`{host}` is not a host name"),
                    "a name without port, or *",
                );
            }
        }
        if self.connections == 0 {
            faults.at("connections").say("admits no connection", "at least 1");
        }
        if self.head_timeout.is_zero() {
            faults.at("headTimeout").say("is zero", "a period such as 2s");
        }
    }
}
