use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How names are resolved, and what of it is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct DnsConfig {
    /// Name servers, such as `10.0.0.10:53`. Empty: those of the system (`/etc/resolv.conf`), with its search
    /// domains. `/etc/hosts` as it was at the start counts in both cases.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// How long an answer may take, all tries together.
    pub timeout: Period,
    /// How often a server is asked when it does not answer.
    pub attempts: u8,
    /// Names that are remembered at most, those with addresses and those with services each.
    pub cache_size: usize,
    /// Longest time an answer is used, whatever its time to live says.
    pub max_ttl: Period,
    /// Longest time it is remembered that a name has no records.
    pub negative_ttl: Period,
    /// How long to wait before a name is asked again that no server has answered.
    pub retry_after: Period,
    /// How long an answer is still used after its time when no server answers (RFC 8767); 0: not at all.
    pub max_stale: Period,
    /// Names that may be asked at the same time; further ones fail at once.
    pub max_asking: usize,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            timeout: Period::from_secs(1),
            attempts: 2,
            cache_size: 10_000,
            max_ttl: Period::from_secs(3_600),
            negative_ttl: Period::from_secs(5),
            retry_after: Period::from_secs(1),
            max_stale: Period::from_secs(3_600),
            max_asking: 1_000,
        }
    }
}

impl Validate for DnsConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "a period such as 1s");
        }
        for (key, value) in [
            ("attempts", usize::from(self.attempts)),
            ("cacheSize", self.cache_size),
            ("maxAsking", self.max_asking),
        ] {
            if value == 0 {
                faults.at(key).say("is 0", "at least 1");
            }
        }
    }
}
