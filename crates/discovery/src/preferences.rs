//! What is preferred, not demanded: how well a profile fits, and what the answer says of it.

use std::collections::BTreeMap;

use model::nf_profile::VendorSpecificFeature;
use model::{NfProfile, NfService};
use serde::Deserialize;

use super::locality::Localities;
use super::query::{Preferences, Query};

/// Vendor-specific features wanted, by private enterprise number.
pub type VendorFeatures = BTreeMap<String, Vec<VendorSpecificFeature>>;

/// An API version indication: an operator and a version, such as `>=1.2.0` or `^2`
/// (TS 29.510 §6.2.3.2.3.1, `preferred-api-versions`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct VersionWish {
    operator: Operator,
    version: [u32; 3],
    /// How many of the three fields were given: `=1` means every 1.x.y.
    given: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The same major version.
    Compatible,
}

fn version_of(text: &str) -> ([u32; 3], usize) {
    let plain = text.trim().trim_start_matches('v');
    let plain = plain.split(['-', '+']).next().unwrap_or_default();
    let mut fields = [0; 3];
    let mut given = 0;
    for (field, part) in fields.iter_mut().zip(plain.split('.')) {
        *field = part.trim().parse().unwrap_or(0);
        given += 1;
    }
    (fields, given)
}

impl From<String> for VersionWish {
    fn from(text: String) -> Self {
        const OPERATORS: [(&str, Operator); 6] = [
            (">=", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            ("<", Operator::Less),
            ("^", Operator::Compatible),
            ("=", Operator::Equal),
        ];
        let text = text.trim();
        let found = OPERATORS
            .iter()
            .find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*operator, rest)));
        // No operator, or one nobody knows, means equal.
        let (operator, rest) = found.unwrap_or_else(|| {
            let rest = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            (Operator::Equal, rest)
        });
        let (version, given) = version_of(rest);
        Self {
            operator,
            version,
            given,
        }
    }
}

impl VersionWish {
    /// Whether a service offers such a version.
    #[must_use]
    pub fn fits(&self, service: &NfService) -> bool {
        service.versions.iter().any(|known| {
            let (known, _) = version_of(&known.api_full_version);
            match self.operator {
                Operator::Equal => known[..self.given] == self.version[..self.given],
                Operator::Greater => known > self.version,
                Operator::GreaterOrEqual => known >= self.version,
                Operator::Less => known < self.version,
                Operator::LessOrEqual => known <= self.version,
                Operator::Compatible => known[0] == self.version[0],
            }
        })
    }
}

fn has_features(own: &VendorFeatures, wanted: &VendorFeatures) -> bool {
    wanted.iter().all(|(vendor, features)| {
        let own = own.get(vendor).map_or(&[][..], Vec::as_slice);
        features.iter().all(|feature| own.contains(feature))
    })
}

/// Serves the whole PLMN: no block is limited to areas.
fn serves_full_plmn(profile: &NfProfile) -> bool {
    let amf = profile.amf_infos().map(|b| (&b.tai_list, &b.tai_range_list));
    let smf = profile.smf_infos().map(|b| (&b.tai_list, &b.tai_range_list));
    let upf = profile.upf_infos().map(|b| (&b.tai_list, &b.tai_range_list));
    let lmf = profile.lmf_info.iter().map(|b| (&b.tai_list, &b.tai_range_list));
    let nwdaf = profile.nwdaf_infos().map(|b| (&b.tai_list, &b.tai_range_list));
    amf.chain(smf)
        .chain(upf)
        .chain(lmf)
        .chain(nwdaf)
        .all(|(list, ranges)| list.is_empty() && ranges.is_empty())
}

impl Preferences {
    /// How far the profile is from each preference of the query, 0 being met, in order of precedence.
    #[must_use]
    pub fn distances(&self, profile: &NfProfile, localities: &Localities) -> Vec<u32> {
        let mut found = self.each(profile, localities);
        if !self.precedence.is_empty() {
            // A stable sort: what the precedence does not name keeps its place behind what it names.
            let place = |name: &str| self.precedence.iter().position(|one| one == name);
            found.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        }
        found.into_iter().map(|(_, distance)| distance).collect()
    }

    fn each(&self, profile: &NfProfile, localities: &Localities) -> Vec<(&'static str, u32)> {
        let mut found = Vec::new();
        let mut prefer = |name: &'static str, met: bool| found.push((name, u32::from(!met)));
        if !self.instances.is_empty() {
            prefer(
                "preferred-nf-instances",
                self.instances.contains(&profile.nf_instance_id),
            );
        }
        if let Some(tai) = &self.tai {
            prefer("preferred-tai", tai.holds(profile));
        }
        if self.full_plmn == Some(true) {
            prefer("preferred-full-plmn", serves_full_plmn(profile));
        }
        if let Some(pgw) = self.pgw {
            prefer("preferred-pgw-ind", self.pgw_fits(profile, pgw));
        }
        if !self.api_versions.is_empty() {
            prefer("preferred-api-versions", self.versions_fit(profile));
        }
        if !self.collocated.is_empty() {
            prefer("preferred-collocated-nf-types", self.collocation_fits(profile));
        }
        if !self.vendor_nf_features.is_empty() {
            let fits = has_features(
                &profile.supported_vendor_specific_features,
                &self.vendor_nf_features,
            );
            prefer("preferred-vendor-specific-nf-features", fits);
        }
        if !self.vendor_features.is_empty() {
            prefer(
                "preferred-vendor-specific-features",
                self.vendor_features_fit(profile),
            );
        }
        if !self.analytics_delays.is_empty() {
            prefer("preferred-analytics-delays", self.delays_fit(profile));
        }
        if let Some(name) = &self.locality {
            found.push(("preferred-locality", localities.rank(name, profile)));
        }
        found
    }

    fn pgw_fits(&self, profile: &NfProfile, wanted: bool) -> bool {
        profile.smf_infos().any(model::nf_profile::SmfInfo::is_pgw) == wanted
    }

    fn versions_fit(&self, profile: &NfProfile) -> bool {
        self.api_versions.iter().all(|(name, wish)| {
            let mut named = profile.services().filter(|service| service.service_name == *name);
            named.any(|service| wish.fits(service))
        })
    }

    fn collocation_fits(&self, profile: &NfProfile) -> bool {
        let here = &profile.collocated_nf_instances;
        self.collocated
            .iter()
            .all(|wanted| here.iter().any(|one| one.nf_type == *wanted))
    }

    fn vendor_features_fit(&self, profile: &NfProfile) -> bool {
        self.vendor_features.iter().all(|(name, features)| {
            let mut named = profile.services().filter(|service| service.service_name == *name);
            named.any(|service| has_features(&service.supported_vendor_specific_features, features))
        })
    }

    /// An NWDAF needs no longer than wanted for every event it offers of those asked.
    fn delays_fit(&self, profile: &NfProfile) -> bool {
        self.analytics_delays.iter().all(|(event, wanted)| {
            let offers = |list: &[String]| list.is_empty() || list.contains(event);
            profile.nwdaf_infos().any(|b| {
                (offers(&b.event_ids) || offers(&b.nwdaf_events))
                    && b.analytics_delay.is_none_or(|delay| delay <= *wanted)
            })
        })
    }
}

/// What `preferredSearch` says of an answer with these profiles (TS 29.510 §6.2.6.2.6).
#[must_use]
pub fn preferred_search<'a>(
    query: &Query,
    localities: &Localities,
    profiles: impl Iterator<Item = &'a NfProfile> + Clone,
) -> Vec<(&'static str, bool)> {
    let wanted = &query.preferences;
    let mut said = Vec::new();
    let all = |fits: &dyn Fn(&NfProfile) -> bool| {
        let mut profiles = profiles.clone().peekable();
        profiles.peek().is_some() && profiles.all(fits)
    };
    if let Some(tai) = &wanted.tai {
        said.push(("preferredTaiMatchInd", all(&|p| tai.holds(p))));
    }
    if wanted.full_plmn == Some(true) {
        said.push(("preferredFullPlmnMatchInd", all(&serves_full_plmn)));
    }
    if !wanted.api_versions.is_empty() {
        let fits = |p: &NfProfile| wanted.versions_fit(p);
        said.push(("preferredApiVersionsMatchInd", profiles.clone().any(fits)));
        said.push(("otherApiVersionsInd", !profiles.clone().all(fits)));
    }
    if let Some(name) = &wanted.locality {
        let near = |p: &NfProfile| localities.rank(name, p) == 0;
        said.push(("preferredLocalityMatchInd", profiles.clone().any(near)));
        said.push(("otherLocalityInd", !profiles.clone().all(near)));
    }
    if !wanted.vendor_features.is_empty() || !wanted.vendor_nf_features.is_empty() {
        let fits = |p: &NfProfile| {
            wanted.vendor_features_fit(p)
                && has_features(&p.supported_vendor_specific_features, &wanted.vendor_nf_features)
        };
        said.push(("preferredVendorSpecificFeaturesInd", all(&fits)));
    }
    if !wanted.collocated.is_empty() {
        said.push((
            "preferredCollocatedNfTypeInd",
            all(&|p| wanted.collocation_fits(p)),
        ));
    }
    if let Some(pgw) = wanted.pgw {
        said.push(("preferredPgwMatchInd", all(&|p| wanted.pgw_fits(p, pgw))));
    }
    if !wanted.analytics_delays.is_empty() {
        said.push(("preferredAnalyticsDelaysInd", all(&|p| wanted.delays_fit(p))));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_indications() {
        let service: NfService = serde_json::from_value(serde_json::json!({
            "serviceInstanceId": "1", "serviceName": "x", "scheme": "http", "nfServiceStatus": "REGISTERED",
            "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.1.3-alpha.1"}]
        }))
        .unwrap();
        for (wish, fits) in [
            ("2.1.3", true),
            ("=2", true),
            ("2.2", false),
            ("^2.9.9", true),
            ("^1.0.0", false),
            (">2.1.2", true),
            (">2.1.3", false),
            (">=2.1.3", true),
            ("<3", true),
            ("<=2.1.2", false),
            ("~2.1", true),
        ] {
            assert_eq!(VersionWish::from(wish.to_owned()).fits(&service), fits, "{wish}");
        }
    }
}
