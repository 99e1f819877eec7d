//! How subscribers are located.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// How the group of a subscriber is found (Nudr_GroupIDmap, TS 29.504).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Slf {
    /// Target NF types whose discovery by SUPI or GPSI needs the group (`AUSF`, `UDM`, `UDR`, `PCF`, `CHF`).
    pub target_types: Vec<String>,
    /// API roots of location functions, in order of preference. Empty: registered profiles that offer
    /// `nudr-group-id-map`, by their priority, those of one priority in proportion to their capacity.
    pub static_targets: Vec<String>,
    /// API roots of SCPs to go through, in order of preference; empty: directly.
    pub scps: Vec<String>,
    /// Path of the health check at an SCP (N050); the NRF skips an SCP that does not answer, or answers with 5xx, until it
    /// answers again. Empty: no health checks.
    pub scp_health_path: String,
    /// Interval of the health checks of SCPs.
    pub scp_health_interval: Period,
    /// Whether queries name the subscriber in `3gpp-Sbi-Correlation-Info` (TS 29.500 §5.2.3.3.10).
    pub correlation_info: bool,
    /// Location functions queried for one discovery at most.
    pub max_attempts: usize,
    /// Queries per second that all workers send together, further attempts included. Beyond it the answer is that of
    /// `whenUnavailable`. 0: no bound.
    pub rate: u32,
    /// Timeout of a query.
    pub attempt_timeout: Period,
    /// Time for which other location functions precede one that failed.
    pub retry_after: Period,
    /// Answer of the NRF when no location function answers.
    pub when_unavailable: WhenUnavailable,
    /// How long such an answer is valid at most.
    pub unavailable_validity: Period,
    /// Whether requests carry an access token of this NRF, cached for its life.
    pub use_access_token: bool,
    /// Time for which a subscriber's group is cached; 0: every discovery queries a location function.
    pub cache_for: Period,
    /// Subscribers whose group a worker caches at most; identities of more than 257 bytes are not cached.
    pub cache_size: usize,
}

/// Answer of the NRF when no location function answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenUnavailable {
    /// Profiles of every group: the consumer may reach an NF that does not serve the subscriber.
    #[default]
    EveryGroup,
    /// Profiles without a group.
    NoGroup,
    /// No profile, status 504.
    Refuse,
}

impl Default for Slf {
    fn default() -> Self {
        Self {
            target_types: Vec::new(),
            static_targets: Vec::new(),
            scps: Vec::new(),
            scp_health_path: String::new(),
            scp_health_interval: Period::from_secs(2),
            correlation_info: true,
            max_attempts: 2,
            rate: 0,
            attempt_timeout: Period::from_millis(1_000),
            retry_after: Period::from_secs(5),
            when_unavailable: WhenUnavailable::EveryGroup,
            unavailable_validity: Period::from_secs(5),
            use_access_token: false,
            cache_for: Period::from_millis(0),
            cache_size: 100_000,
        }
    }
}

impl Validate for Slf {
    fn validate(&self, faults: &mut Faults) {
        for (name, list) in [("staticTargets", &self.static_targets), ("scps", &self.scps)] {
            for (i, root) in list.iter().enumerate() {
                if root.parse::<sbi::client::Origin>().is_err() {
                    let at = format!("{name}[{i}]");
                    faults
                        .at(at)
                        .say(format!("`{root}` is not an API root"), "http://host:port");
                }
            }
        }
        if !self.scp_health_path.is_empty() && !self.scp_health_path.starts_with('/') {
            faults
                .at("scpHealthPath")
                .say("is not a path", "a path such as /health, or nothing");
        }
        if self.scp_health_interval.is_zero() {
            faults.at("scpHealthInterval").say("is 0", "a period such as 2s");
        }
        if self.max_attempts == 0 {
            faults.at("maxAttempts").say("is 0", "at least 1");
        }
    }
}
