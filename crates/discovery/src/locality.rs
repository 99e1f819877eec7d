//! Preferred localities, extended: an operator's map of what a preferred locality means.
//!
//! A mapping names a location and the localities that are near it, in order of preference. Location types let the same
//! `preferred-locality` stand for one location where SMFs are discovered and for another where UDMs are. Without a mapping
//! the preferred locality itself comes first and all others after it.

use std::collections::BTreeMap;

use model::{NfProfile, NfType, ServiceName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Localities {
    /// Whether answers lower the priority of profiles and services that do not match the preferred locality, so that
    /// consumers that select by `priority` heed it (TS 29.510 table 6.2.3.2.3.1-1, `alteredPriorityInd`).
    pub alter_priorities: bool,
    /// Kinds of locations, by the NF types and services that they count for. The first that matches a query is used.
    pub location_types: Vec<LocationType>,
    /// What a `preferred-locality` of a query stands for: a location of this map.
    pub mappings: BTreeMap<String, String>,
    /// For each location, the localities of profiles in order of preference; several may share a place.
    pub preferred_locations: BTreeMap<String, Vec<PreferredLocation>>,
}

/// A kind of locations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct LocationType {
    /// Its name (`DATA_CENTER`, `REGION`): of the members of `extLocality` only that of this name counts.
    pub name: String,
    /// Target NF types that it counts for; empty: all.
    pub nf_types: Vec<String>,
    /// Service names, one of which the query must name; empty: all, and queries that name none.
    pub services: Vec<String>,
    /// Mappings for these NF types and services, before the general ones.
    pub mappings: BTreeMap<String, String>,
}

/// Localities that are equally near.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PreferredLocation {
    /// `locality` values, or values of `extLocality`.
    pub localities: Vec<String>,
}

impl Default for Localities {
    fn default() -> Self {
        Self {
            alter_priorities: true,
            location_types: Vec::new(),
            mappings: BTreeMap::new(),
            preferred_locations: BTreeMap::new(),
        }
    }
}

impl Localities {
    /// What a preferred locality means where services of an NF type are discovered.
    #[must_use]
    pub fn near<'a>(
        &'a self,
        preferred: &'a str,
        target: Option<&NfType>,
        services: &[ServiceName],
    ) -> Nearness<'a> {
        let kind = self
            .location_types
            .iter()
            .find(|kind| kind.concerns(target, services));
        let mapped = kind.and_then(|kind| kind.mappings.get(preferred));
        let mapped = mapped.or_else(|| self.mappings.get(preferred));
        let location = mapped.map_or(preferred, String::as_str);
        Nearness {
            preferred,
            kind: kind.map(|kind| kind.name.as_str()),
            places: self.preferred_locations.get(location).map(Vec::as_slice),
        }
    }
}

impl LocationType {
    fn concerns(&self, target: Option<&NfType>, services: &[ServiceName]) -> bool {
        let is_target = |name: &String| target.is_some_and(|target| target.as_str() == name);
        let is_asked = |name: &String| services.iter().any(|service| service.as_str() == name);
        (self.nf_types.is_empty() || self.nf_types.iter().any(is_target))
            && (self.services.is_empty() || self.services.iter().any(is_asked))
    }
}

/// A preferred locality, and how far from it profiles are.
#[derive(Clone, Copy, Debug)]
pub struct Nearness<'a> {
    preferred: &'a str,
    kind: Option<&'a str>,
    places: Option<&'a [PreferredLocation]>,
}

impl<'a> Nearness<'a> {
    /// Of a preferred locality that nothing maps.
    #[must_use]
    pub fn unmapped(preferred: &'a str) -> Self {
        Self {
            preferred,
            kind: None,
            places: None,
        }
    }

    /// How far the profile is from the preferred locality: 0 at it, larger further away.
    #[must_use]
    pub fn rank(&self, profile: &NfProfile) -> u32 {
        let Some(places) = self.places else {
            return u32::from(!self.is_at(profile, self.preferred));
        };
        let place = places
            .iter()
            .position(|place| place.localities.iter().any(|name| self.is_at(profile, name)));
        // A list is far shorter than 2^32.
        place.map_or(u32::MAX, |place| place as u32)
    }

    fn is_at(&self, profile: &NfProfile, name: &str) -> bool {
        profile.locality.as_deref() == Some(name)
            || profile
                .ext_locality
                .iter()
                .any(|(kind, known)| known == name && self.kind.is_none_or(|wanted| wanted == kind.as_str()))
    }
}
