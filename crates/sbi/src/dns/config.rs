use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How names are resolved, and how long answers are cached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct DnsConfig {
    /// Name servers, such as `10.0.0.10:53`. Empty: those of the system (`/etc/resolv.conf`), with its search domains.
    /// Entries of `/etc/hosts`, as read at the start, are used in both cases.
    #[schemars(with = "Vec<String>")]
    pub servers: Vec<SocketAddr>,
    /// Timeout of a query, all retries together.
    pub timeout: Period,
    /// Tries of a query at each server that does not answer.
    pub attempts: u8,
    /// Names cached at most, addresses and services counted separately.
    pub cache_size: usize,
    /// Longest time that an answer is cached, also where its time to live is longer.
    pub max_ttl: Period,
    /// Longest time that a negative answer (the name has no records) is cached.
    pub negative_ttl: Period,
    /// Pause after a failed query (no server answered) before the name is queried again.
    pub retry_after: Period,
    /// Time for which an expired answer is still used while no server answers (RFC 8767); 0: not at all.
    pub max_stale: Period,
    /// Queries in flight at the same time; further ones fail at once.
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
