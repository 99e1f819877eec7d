//! Bounds on clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Bound of answers over UDP for each client: a network of 24 bits (IPv4) or 56 bits (IPv6). Addresses of datagrams can be forged,
/// and an answer to a forged one harms its true owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rate {
    /// Answers a second for one client, counted by each worker for itself. 0: not bounded, for networks in which addresses cannot
    /// be forged.
    #[schemars(range(max = 1_000_000))]
    pub per_second: u32,
    /// Of the queries above the bound, one in this many is answered empty and truncated, so that an honest client asks again over
    /// TCP; the others are dropped. 0: all are dropped.
    #[schemars(range(max = 100))]
    pub slip: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            per_second: 0,
            slip: 2,
        }
    }
}

impl Validate for Rate {
    fn validate(&self, faults: &mut Faults) {
        for (key, value, most) in [
            ("perSecond", self.per_second, 1_000_000),
            ("slip", self.slip, 100),
        ] {
            if value > most {
                faults
                    .at(key)
                    .say(format!("is {value}"), format!("at most {most}"));
            }
        }
    }
}

/// Bounds of TCP connections (RFC 7766 §6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tcp {
    /// Connections of each worker. At this bound a new connection takes the position of the one that was idle for the longest time.
    #[schemars(range(min = 1, max = 100_000))]
    pub connections: usize,
    /// Of which from one address.
    #[schemars(range(min = 1))]
    pub per_address: usize,
    /// A connection without a whole query for this time ends, and so does one whose client does not read its answers.
    pub idle: Period,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            connections: 1_024,
            per_address: 256,
            idle: Period::from_secs(10),
        }
    }
}

impl Validate for Tcp {
    fn validate(&self, faults: &mut Faults) {
        if !(1..=100_000).contains(&self.connections) {
            let what = format!("is {}", self.connections);
            faults.at("connections").say(what, "1 to 100000");
        }
        if self.per_address == 0 {
            faults.at("perAddress").say("admits no client", "at least 1");
        }
        if self.idle.is_zero() {
            faults.at("idle").say("is 0", "a period such as 10s");
        }
    }
}
