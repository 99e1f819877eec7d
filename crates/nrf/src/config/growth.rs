//! Other NRF sets whose state this one shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Growth: NRF sets that retrieve each other's state (N006), so that each answers for the NFs of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Growth {
    /// The other sets. This NRF discovers, lists and notifies the NFs registered with them, and grants them tokens; only
    /// the other set changes their registrations.
    pub sets: Vec<GrowthSet>,
    /// Interval at which another set is polled for changes.
    pub interval: Period,
    /// Timeout of a request to one of its NRFs.
    pub timeout: Period,
    /// Profiles of one other set at most; the state of a larger set is not retrieved.
    pub max_profiles: usize,
}

/// Another set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct GrowthSet {
    /// Its name, in logs and metrics.
    pub name: String,
    /// API roots of its NRFs, in order of preference.
    pub nrfs: Vec<String>,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            sets: Vec::new(),
            interval: Period::from_secs(1),
            timeout: Period::from_secs(2),
            max_profiles: 100_000,
        }
    }
}

impl Validate for Growth {
    fn validate(&self, faults: &mut Faults) {
        for (i, set) in self.sets.iter().enumerate() {
            let at = |key: &str| format!("sets[{i}].{key}");
            if set.name.is_empty() {
                faults.at(at("name")).say("is empty", "a name such as region-2");
            }
            if self.sets[..i].iter().any(|other| other.name == set.name) {
                faults
                    .at(at("name"))
                    .say("is the name of another set as well", "a unique name");
            }
            if set.nrfs.is_empty() {
                faults.at(at("nrfs")).say("is empty", "at least one API root");
            }
            for (j, root) in set.nrfs.iter().enumerate() {
                if root.parse::<sbi::client::Origin>().is_err() {
                    faults
                        .at(format!("sets[{i}].nrfs[{j}]"))
                        .say(format!("`{root}` is not an API root"), "http://host:port");
                }
            }
        }
        if self.interval.is_zero() {
            faults.at("interval").say("is 0", "a period such as 1s");
        }
    }
}
