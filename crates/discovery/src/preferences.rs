//! Preferences of a query: how well a profile fits them, and what the answer says of it.

use model::NfProfile;

use super::locality::Nearness;
use super::query::{Preferences, VendorFeatures};

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

const LOCALITY: &str = "preferred-locality";

impl Preferences {
    /// The preferred locality of the query, where nothing maps it.
    #[must_use]
    pub fn nearness(&self) -> Option<Nearness<'_>> {
        self.locality.as_deref().map(Nearness::unmapped)
    }

    /// How far the profile is from each preference of the query, 0 being met, in order of precedence.
    #[must_use]
    pub fn distances(&self, profile: &NfProfile, near: Option<Nearness<'_>>) -> Vec<u32> {
        let found = self.in_order(profile, near);
        found.into_iter().map(|(_, distance)| distance).collect()
    }

    /// What lowers the priority of the profile in an answer: its distance from the preferred locality, behind the
    /// preferences that `preferences-precedence` puts before that.
    #[must_use]
    pub fn tier(&self, profile: &NfProfile, near: Nearness<'_>) -> Vec<u32> {
        if !self.precedence.iter().any(|name| name == LOCALITY) {
            return vec![near.rank(profile)];
        }
        let mut tier = Vec::new();
        for (name, distance) in self.in_order(profile, Some(near)) {
            tier.push(distance);
            if name == LOCALITY {
                break;
            }
        }
        tier
    }

    fn in_order(&self, profile: &NfProfile, near: Option<Nearness<'_>>) -> Vec<(&'static str, u32)> {
        let mut found = self.each(profile, near);
        if !self.precedence.is_empty() {
            // A stable sort: what the precedence does not name keeps its place behind what it names.
            let place = |name: &str| self.precedence.iter().position(|one| one == name);
            found.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        }
        found
    }

    fn each(&self, profile: &NfProfile, near: Option<Nearness<'_>>) -> Vec<(&'static str, u32)> {
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
        if let Some(pgw) = &self.pgw_test {
            prefer("preferred-pgw-ind", pgw.holds(profile));
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
        if let Some(near) = near {
            found.push((LOCALITY, near.rank(profile)));
        }
        found
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

/// Preferences whose profiles are answered alone where there are any, and the others only where there are none
/// (TS 29.510 table 6.2.3.2.3.1-1, notes 5 and 8).
const NARROWING: &[&str] = &["preferred-nf-instances", "preferred-tai", "preferred-full-plmn"];

impl Preferences {
    /// Keeps of `candidates` those that fit, unless none does. A preference that `preferences-precedence` names behind
    /// one that only orders does the same: it must not leave out what fits the other better.
    pub fn narrow<T>(&self, candidates: &mut Vec<T>, profile: impl Fn(&T) -> &NfProfile) {
        let first = self
            .precedence
            .iter()
            .take_while(|name| NARROWING.contains(&&***name));
        let narrows = |name| self.precedence.is_empty() || first.clone().any(|one| one == name);
        if !self.instances.is_empty() && narrows("preferred-nf-instances") {
            keep_any(candidates, |one| {
                self.instances.contains(&profile(one).nf_instance_id)
            });
        }
        if let Some(tai) = self.tai.as_ref().filter(|_| narrows("preferred-tai")) {
            keep_any(candidates, |one| tai.holds(profile(one)));
        }
        if self.full_plmn == Some(true) && narrows("preferred-full-plmn") {
            keep_any(candidates, |one| serves_full_plmn(profile(one)));
        }
    }
}

fn keep_any<T>(candidates: &mut Vec<T>, fits: impl Fn(&T) -> bool) {
    if candidates.iter().any(&fits) {
        candidates.retain(fits);
    }
}

/// What `preferredSearch` says of an answer with these profiles (TS 29.510 §6.2.6.2.6).
#[must_use]
pub fn preferred_search<'a>(
    wanted: &Preferences,
    near: Option<Nearness<'_>>,
    profiles: impl Iterator<Item = &'a NfProfile> + Clone,
) -> Vec<(&'static str, bool)> {
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
    if let Some(near) = near {
        let near = |p: &NfProfile| near.rank(p) == 0;
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
    if let Some(pgw) = &wanted.pgw_test {
        said.push(("preferredPgwMatchInd", all(&|p| pgw.holds(p))));
    }
    if !wanted.analytics_delays.is_empty() {
        said.push(("preferredAnalyticsDelaysInd", all(&|p| wanted.delays_fit(p))));
    }
    said
}
