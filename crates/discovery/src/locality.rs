//! Preferred localities, extended: an operator's map of what a preferred locality means.
//!
//! A mapping names a location (of one of the location types) and the localities that are near it, in order
//! of preference. Without a mapping the preferred locality itself comes first and all others after it.

use std::collections::BTreeMap;

use model::NfProfile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Localities {
    /// Kinds of places that `locality` values name, finest first (`DATA_CENTER`, `REGION`); for people.
    pub location_types: Vec<String>,
    /// What a `preferred-locality` of a query stands for: a location of this map.
    pub mappings: BTreeMap<String, String>,
    /// For each location, the localities of profiles in order of preference; several may share a place.
    pub preferred_locations: BTreeMap<String, Vec<PreferredLocation>>,
}

/// Localities that are equally near.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PreferredLocation {
    /// `locality` values, or values of `extLocality`.
    pub localities: Vec<String>,
}

impl Localities {
    /// How far the profile is from a preferred locality: 0 at it, larger further away.
    #[must_use]
    pub fn rank(&self, preferred: &str, profile: &NfProfile) -> u32 {
        let is = |name: &str| {
            profile.locality.as_deref() == Some(name)
                || profile.ext_locality.values().any(|known| known == name)
        };
        let location = self.mappings.get(preferred).map_or(preferred, String::as_str);
        match self.preferred_locations.get(location) {
            Some(places) => {
                let place = places
                    .iter()
                    .position(|place| place.localities.iter().any(|name| is(name)));
                // A list is far shorter than 2^32.
                place.map_or(u32::MAX, |place| place as u32)
            }
            None => u32::from(!is(preferred)),
        }
    }
}
