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
    /// `nudr-group-id-map`.
    pub static_targets: Vec<String>,
    /// API roots of SCPs to go through, in order of preference; empty: directly.
    pub scps: Vec<String>,
    /// Location functions asked for one discovery at most.
    pub max_attempts: usize,
    /// How long one of them may take.
    pub attempt_timeout: Period,
    /// Whether requests carry an access token of this NRF, cached for its life.
    pub use_access_token: bool,
    /// How long a subscriber's group is remembered; 0: every discovery asks.
    pub cache_for: Period,
    /// Subscribers whose group a worker remembers at most.
    pub cache_size: usize,
}

impl Default for Slf {
    fn default() -> Self {
        Self {
            target_types: Vec::new(),
            static_targets: Vec::new(),
            scps: Vec::new(),
            max_attempts: 2,
            attempt_timeout: Period::from_millis(1_000),
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
        if self.max_attempts == 0 {
            faults.at("maxAttempts").say("is 0", "at least 1");
        }
    }
}
