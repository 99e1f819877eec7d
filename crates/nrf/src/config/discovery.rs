//! Discovery.

use std::collections::BTreeMap;

use ::discovery::Localities;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// What answers hold and how long they are valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Discovery {
    /// Profiles in an answer at most.
    pub max_profiles: usize,
    /// Bytes of profiles in the answer to a complete search (`/searches/{searchId}/complete`) at most.
    pub max_complete_size: ByteSize,
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
    /// Distinct queries whose parsed form and answers a worker caches.
    pub cached_queries: usize,
    /// Longest query whose parsed form and answers are cached; a longer one is parsed each time.
    pub cached_query_size: ByteSize,
    /// Cached answers per query, one per group and class of subscribers.
    pub cached_answers_per_query: usize,
    /// Bytes of cached answers per worker. Answers to consumers that accept gzip are also cached in compressed form, which
    /// takes at most the same number of bytes in addition.
    pub cached_bytes: ByteSize,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            max_profiles: 12,
            max_complete_size: ByteSize::mib(16),
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

impl Validate for Discovery {
    fn validate(&self, faults: &mut Faults) {
        if self.max_profiles == 0 {
            faults
                .at("maxProfiles")
                .say("is 0, so that every answer is empty", "at least 1");
        }
        let lists: [(&str, Vec<&String>); 3] = [
            ("validityByType", self.validity_by_type.keys().collect()),
            (
                "emptyValidityByType",
                self.empty_validity_by_type.keys().collect(),
            ),
            ("suspendedFor", self.suspended_for.iter().collect()),
        ];
        for (key, names) in lists {
            for name in names.into_iter().filter(|name| !is_nf_type(name)) {
                let wrong = format!("`{name}` is not an NF type of TS 29.510");
                faults
                    .at(key)
                    .say(wrong, "a type such as UDM, or one that begins with CUSTOM_");
            }
        }
    }
}

/// Whether a name is an NF type of the standard, or one of an operator (TS 29.510 §6.1.6.3.3).
fn is_nf_type(name: &str) -> bool {
    model::NfType::from(name).is_known() || name.starts_with("CUSTOM_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nf_types_that_do_not_exist_are_found() {
        let of = |name: &str| {
            let mut faults = Faults::default();
            let validity_by_type = [(name.to_owned(), Period::from_secs(60))].into();
            Discovery {
                validity_by_type,
                ..Discovery::default()
            }
            .validate(&mut faults);
            faults.is_empty()
        };
        assert!(of("UDM") && of("5G_EIR") && of("CUSTOM_X") && !of("UDMM") && !of("udm"));
    }
}
