//! The order of an answer: preferences of the query, then locality, priority, capacity, load.

use std::cmp::Reverse;

use model::{NfProfile, ServiceName};
use serde_json::Value;

use super::locality::Localities;
use super::query::{Preferences, Query};
use crate::registry::Entry;

/// Smaller comes first. Preferences are soft: who does not fit them comes later, not never.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    preferences: Vec<bool>,
    locality: u32,
    priority: u16,
    load: u8,
    capacity: Reverse<u16>,
}

impl Rank {
    pub(super) fn of(entry: &Entry, query: &Query, localities: &Localities) -> Self {
        let profile = &entry.profile;
        let wanted = &query.preferences;
        Self {
            preferences: unmet(profile, wanted),
            locality: wanted
                .locality
                .as_deref()
                .map_or(0, |name| localities.rank(name, profile)),
            priority: service_or(profile, &query.services, |service| service.priority)
                .or(profile.priority)
                .unwrap_or(u16::MAX),
            load: entry.load.unwrap_or(0),
            capacity: Reverse(
                service_or(profile, &query.services, |service| service.capacity)
                    .or(profile.capacity)
                    .unwrap_or(0),
            ),
        }
    }
}

/// The smallest value of the services asked for; of none when all are asked for.
fn service_or<T: Ord>(
    profile: &NfProfile,
    names: &[ServiceName],
    value: impl Fn(&model::NfService) -> Option<T>,
) -> Option<T> {
    let asked = profile
        .services()
        .filter(|service| names.contains(&service.service_name));
    asked.filter_map(value).min()
}

/// For each preference of the query, in order of precedence, whether the profile misses it.
fn unmet(profile: &NfProfile, wanted: &Preferences) -> Vec<bool> {
    let mut found: Vec<(&str, bool)> = Vec::new();
    if !wanted.instances.is_empty() {
        found.push((
            "preferred-nf-instances",
            !wanted.instances.contains(&profile.nf_instance_id),
        ));
    }
    if let Some(tai) = &wanted.tai {
        found.push(("preferred-tai", !tai.holds(profile)));
    }
    if let Some(pgw) = wanted.pgw {
        let is_pgw = profile.smf_infos().any(model::nf_profile::SmfInfo::is_pgw);
        found.push(("preferred-pgw-ind", is_pgw != pgw));
    }
    if wanted.full_plmn == Some(true) {
        found.push(("preferred-full-plmn", !serves_full_plmn(profile)));
    }
    if !wanted.api_versions.is_empty() {
        let missed = wanted
            .api_versions
            .iter()
            .any(|(name, versions)| !has_version(profile, name, versions));
        found.push(("preferred-api-versions", missed));
    }
    if !wanted.collocated.is_empty() {
        let here = profile
            .collocated_nf_instances
            .iter()
            .any(|one| wanted.collocated.contains(&one.nf_type));
        found.push(("preferred-collocated-nf-types", !here));
    }
    if !wanted.vendor_nf_features.is_empty() {
        let has = has_vendor_features(
            &profile.supported_vendor_specific_features,
            &wanted.vendor_nf_features,
        );
        found.push(("preferred-vendor-specific-nf-features", !has));
    }
    if !wanted.vendor_features.is_empty() {
        let has = wanted.vendor_features.iter().all(|(name, features)| {
            let mut services = profile
                .services()
                .filter(|service| service.service_name.as_str() == name);
            services.any(|service| {
                features.as_object().is_some_and(|features| {
                    has_vendor_features(&service.supported_vendor_specific_features, features)
                })
            })
        });
        found.push(("preferred-vendor-specific-features", !has));
    }
    // A stable sort: what the precedence does not name keeps its place behind what it names.
    let place = |name: &str| {
        wanted
            .precedence
            .iter()
            .position(|one| one == name)
            .unwrap_or(usize::MAX)
    };
    found.sort_by_key(|(name, _)| place(name));
    found.into_iter().map(|(_, missed)| missed).collect()
}

/// Serves the whole PLMN: no block is limited to areas.
fn serves_full_plmn(profile: &NfProfile) -> bool {
    profile
        .amf_infos()
        .all(|b| b.tai_list.is_empty() && b.tai_range_list.is_empty())
        && profile
            .smf_infos()
            .all(|b| b.tai_list.is_empty() && b.tai_range_list.is_empty())
        && profile
            .upf_infos()
            .all(|b| b.tai_list.is_empty() && b.tai_range_list.is_empty())
}

/// Whether a service has one of the versions: `1.0.0`, `eq 1`, `gte 1.2.0`, `lt 2.0.0` … (TS 29.510
/// §6.2.3.2.3.1, `preferred-api-versions`).
fn has_version(profile: &NfProfile, name: &str, wanted: &Value) -> bool {
    let wanted = match wanted {
        Value::String(text) => text.as_str(),
        _ => return false,
    };
    let (operator, version) = wanted.trim().split_once(' ').unwrap_or(("eq", wanted.trim()));
    let wanted = numbers(version);
    let services = profile
        .services()
        .filter(|service| service.service_name.as_str() == name);
    services.flat_map(|service| &service.versions).any(|known| {
        let known = numbers(&known.api_full_version);
        let short = &known[..wanted.len().min(known.len())];
        match operator {
            "gt" => known > wanted,
            "gte" => short >= &wanted[..],
            "lt" => known < wanted,
            "lte" => short <= &wanted[..],
            _ => short == &wanted[..],
        }
    })
}

fn numbers(version: &str) -> Vec<u32> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

fn has_vendor_features(
    own: &model::nf_profile::VendorSpecificFeatures,
    wanted: &serde_json::Map<String, Value>,
) -> bool {
    wanted.iter().all(|(vendor, features)| {
        let own = own.get(vendor).map_or(&[][..], Vec::as_slice);
        features.as_array().is_some_and(|features| {
            features.iter().all(|wanted| {
                let text = |name: &str| wanted.get(name).and_then(Value::as_str);
                own.iter().any(|known| {
                    Some(&*known.feature_name) == text("featureName")
                        && text("featureVersion").is_none_or(|version| version == known.feature_version)
                })
            })
        })
    })
}
