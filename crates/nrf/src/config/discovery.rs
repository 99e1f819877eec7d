//! Discovery.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Period};

use crate::discovery::{Localities, Policy};

/// What answers hold and how long they are valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Discovery {
    /// Profiles in an answer at most.
    pub max_profiles: usize,
    /// How long an answer is valid.
    pub validity: Period,
    /// How long an answer is valid, by target NF type.
    pub validity_by_type: BTreeMap<String, Period>,
    /// How long an empty answer is valid, by target NF type; others as `validity`.
    pub empty_validity_by_type: BTreeMap<String, Period>,
    /// Target NF types whose suspended NFs are answered when no other fits.
    pub suspended_for: Vec<String>,
    /// What preferred localities mean.
    pub localities: Localities,
    /// Distinct queries whose parsed form and answers a worker keeps.
    pub cached_queries: usize,
    /// Longest query whose parsed form and answers are kept; a longer one is worked on each time.
    pub cached_query_size: ByteSize,
    /// Answers (one per group and class of subscribers) kept for a query.
    pub cached_answers_per_query: usize,
    /// Bytes of answers that a worker keeps.
    pub cached_bytes: ByteSize,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            max_profiles: 12,
            validity: Period::from_secs(60),
            validity_by_type: BTreeMap::new(),
            empty_validity_by_type: BTreeMap::new(),
            suspended_for: Vec::new(),
            localities: Localities::default(),
            cached_queries: 4_096,
            cached_query_size: ByteSize::kib(4),
            cached_answers_per_query: 256,
            cached_bytes: ByteSize::mib(64),
        }
    }
}

impl Discovery {
    /// As discovery takes it.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let seconds = |period: &Period| u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
        let table = |map: &BTreeMap<String, Period>| -> BTreeMap<String, u32> {
            map.iter()
                .map(|(nf_type, period)| (nf_type.clone(), seconds(period)))
                .collect()
        };
        Policy {
            max_profiles: self.max_profiles.max(1),
            validity: table(&self.validity_by_type),
            default_validity: seconds(&self.validity),
            empty_validity: table(&self.empty_validity_by_type),
            suspended_for: self.suspended_for.clone(),
            localities: self.localities.clone(),
        }
    }
}
