//! Distance of producers from this SCP: same locality (site), same region, elsewhere.

use ahash::AHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sites and regions, by the `locality` that NF profiles carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Places {
    /// Locality of this SCP. Empty: every producer counts as being on this site.
    pub locality: String,
    /// Localities of each region, by the region's name. The region that holds `locality` is the own one.
    pub regions: std::collections::BTreeMap<String, Vec<String>>,
}

/// Look-up table made of [`Places`].
#[derive(Clone, Debug, Default)]
pub struct Distances {
    own: String,
    /// Localities of the own region.
    near: AHashMap<String, ()>,
}

impl Places {
    /// On this site.
    pub const SITE: u8 = 0;
    /// In this region.
    pub const REGION: u8 = 1;
    /// In another region, or in an unknown locality.
    pub const ELSEWHERE: u8 = 2;

    /// Makes the look-up table.
    #[must_use]
    pub fn distances(&self) -> Distances {
        let own_region = self
            .regions
            .values()
            .find(|localities| localities.contains(&self.locality));
        let near = own_region
            .into_iter()
            .flatten()
            .map(|locality| (locality.clone(), ()))
            .collect();
        Distances {
            own: self.locality.clone(),
            near,
        }
    }
}

impl Distances {
    /// Distance of a producer of this locality: [`Places::SITE`], [`Places::REGION`] or [`Places::ELSEWHERE`].
    #[must_use]
    pub fn of(&self, locality: Option<&str>) -> u8 {
        match locality {
            _ if self.own.is_empty() => Places::SITE,
            Some(locality) if locality == self.own => Places::SITE,
            Some(locality) if self.near.contains_key(locality) => Places::REGION,
            _ => Places::ELSEWHERE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_follow_sites_and_regions() {
        let places: Places = serde_json::from_str(
            r#"{"locality": "east1", "regions": {"east": ["east1", "east2"], "west": ["west1"]}}"#,
        )
        .unwrap();
        let distances = places.distances();
        let of = |locality| distances.of(locality);
        assert_eq!(
            (of(Some("east1")), of(Some("east2")), of(Some("west1")), of(None)),
            (0, 1, 2, 2)
        );
        assert_eq!(Places::default().distances().of(Some("anywhere")), Places::SITE);
    }
}
