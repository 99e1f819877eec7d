//! From a query and a table of profiles to the profiles of the answer.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use model::{NfServiceStatus, NfStatus};

use super::answer::{self, Answer};
use super::locality::Localities;
use super::order::Rank;
use super::params;
use super::query::Query;
use crate::registry::{Entry, TypeTable};

/// What an operator sets for answers.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Profiles at most, when the query does not ask for fewer.
    pub max_profiles: usize,
    /// Seconds an answer is valid, by NF type; the default under no type.
    pub validity: std::collections::BTreeMap<String, u32>,
    /// Seconds an answer is valid for other types.
    pub default_validity: u32,
    /// Seconds an empty answer is valid, by NF type.
    pub empty_validity: std::collections::BTreeMap<String, u32>,
    /// Whether suspended profiles are answered when no other fits, by NF type.
    pub suspended_for: Vec<String>,
    /// The operator's map of localities.
    pub localities: Localities,
}

/// A profile of an answer and which of its services are shown.
pub(super) struct Chosen {
    entry: Arc<Entry>,
    services: u128,
}

/// Whom a question is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// `supi`.
    pub supi: Option<&'a str>,
    /// `gpsi`.
    pub gpsi: Option<&'a str>,
    /// What a location function says of the subscriber: nobody was asked, no group, or this group.
    pub group: Option<Option<&'a str>>,
}

/// An answer, and whether it would be the same for every subscriber of the same group.
#[derive(Debug)]
pub struct Selection {
    /// The answer.
    pub answer: Answer,
    /// Whether only the group of the subscriber mattered, not the SUPI or GPSI itself.
    pub by_group_only: bool,
}

/// Answers a query from the profiles of its target type.
#[must_use]
pub fn select(query: &Query, about: About<'_>, table: Option<&TypeTable>, policy: &Policy) -> Selection {
    let target = query.target.as_ref().map_or("", |target| target.as_str());
    let mut by_group_only = true;
    let mut found: Vec<(Chosen, bool)> = Vec::new();
    for entry in table.into_iter().flat_map(TypeTable::iter) {
        let usable = match entry.status {
            NfStatus::Registered => true,
            NfStatus::Suspended => false,
            // Canary releases and others are found only by who names the instance (TS 29.510 §6.1.6.3.7).
            _ => continue,
        };
        if !query.tests.iter().all(|test| test.holds(&entry.profile)) {
            continue;
        }
        if !query.requester.may_use(&entry.profile.allowed) {
            continue;
        }
        if about.supi.is_some() || about.gpsi.is_some() {
            by_group_only &= !params::has_ranges(&entry.profile);
            let supi = about
                .supi
                .is_none_or(|supi| params::fits_supi(&entry.profile, supi, about.group));
            let gpsi = about
                .gpsi
                .is_none_or(|gpsi| params::fits_gpsi(&entry.profile, gpsi, about.group));
            if !supi || !gpsi {
                continue;
            }
        }
        let services = services_of(query, entry);
        let needs_service = !query.services.is_empty()
            || query.service.service_set.is_some()
            || query
                .service
                .supported
                .as_ref()
                .is_some_and(|mask| !mask.is_empty());
        if services == 0 && needs_service {
            continue;
        }
        found.push((
            Chosen {
                entry: entry.clone(),
                services,
            },
            usable,
        ));
    }
    let any_usable = found.iter().any(|(_, usable)| *usable);
    let suspended_too = !any_usable && policy.suspended_for.iter().any(|one| one == target);
    found.retain(|(_, usable)| *usable || suspended_too);

    let mut ranked: Vec<(Rank, Chosen)> = found
        .into_iter()
        .map(|(chosen, _)| (Rank::of(&chosen.entry, query, &policy.localities), chosen))
        .collect();
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.entry.id.cmp(&b.1.entry.id)));
    let mut chosen: Vec<Chosen> = ranked.into_iter().map(|(_, chosen)| chosen).collect();
    let total = chosen.len();
    chosen.truncate(
        query
            .limit
            .unwrap_or(policy.max_profiles)
            .min(policy.max_profiles),
    );
    if let Some(max) = query.max_payload {
        let mut size = 64;
        let fit = chosen.iter().take_while(|one| {
            size += one.size() + 1;
            size <= max
        });
        let fit = fit.count();
        chosen.truncate(fit);
    }
    let validity = if chosen.is_empty() {
        &policy.empty_validity
    } else {
        &policy.validity
    };
    let validity = validity.get(target).copied().unwrap_or(policy.default_validity);
    let limited = (chosen.len() < total).then_some(total);
    let preferred = preferred_search(query, &chosen, &policy.localities);
    Selection {
        answer: answer::render(&chosen, validity, limited, &preferred),
        by_group_only,
    }
}

/// Which services are shown, as bits in the order of the profile.
fn services_of(query: &Query, entry: &Entry) -> u128 {
    let shown = entry.profile.services().enumerate().filter(|(_, service)| {
        service.nf_service_status == NfServiceStatus::Registered
            && query.service.admits(&entry.id, service, &query.services)
            && query.requester.may_use(&service.allowed)
            && operations_allow(query, service)
    });
    // A profile has at most 128 services (`MAX_SERVICES`).
    shown.fold(0, |mask, (at, _)| mask | 1 << at)
}

/// `allowedOperationsPerNfType` leaves a type out that may do nothing (TS 29.510 §6.1.6.2.3).
fn operations_allow(query: &Query, service: &model::NfService) -> bool {
    let of_type = query
        .requester
        .nf_type
        .as_ref()
        .and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
    of_type.is_none_or(|operations| !operations.is_empty())
}

/// Whether the answer fits the preferences (`preferredSearch`, TS 29.510 §6.2.6.2.6).
fn preferred_search(query: &Query, chosen: &[Chosen], localities: &Localities) -> Vec<(&'static str, bool)> {
    let mut met = Vec::new();
    if let Some(tai) = &query.preferences.tai {
        met.push((
            "preferredTaiMatchInd",
            chosen.iter().any(|one| tai.holds(&one.entry.profile)),
        ));
    }
    if query.preferences.full_plmn == Some(true) {
        met.push(("preferredFullPlmnMatchInd", !chosen.is_empty()));
    }
    if let Some(pgw) = query.preferences.pgw {
        let fits = |one: &Chosen| {
            one.entry
                .profile
                .smf_infos()
                .any(model::nf_profile::SmfInfo::is_pgw)
                == pgw
        };
        met.push(("preferredPgwMatchInd", chosen.iter().any(fits)));
    }
    if let Some(locality) = &query.preferences.locality {
        let other = !chosen
            .iter()
            .any(|one| localities.rank(locality, &one.entry.profile) == 0);
        met.push(("otherLocalityInd", other));
    }
    met
}

impl Chosen {
    fn shown(&self) -> impl Iterator<Item = &crate::registry::Visible> {
        let services = self.entry.visible_services().iter().enumerate();
        services
            .filter(|(at, _)| self.services >> at & 1 == 1)
            .map(|(_, service)| service)
    }

    /// Length of the JSON text, to a few bytes.
    pub(super) fn size(&self) -> usize {
        let services: usize = self.shown().map(|service| service.text.len() + 1).sum();
        self.entry.moving().len() + self.entry.visible().text.len() + services + 24
    }

    /// Writes the `NFProfile` of the answer.
    pub(super) fn write(&self, out: &mut BytesMut) {
        out.put_u8(b'{');
        out.put_slice(self.entry.moving());
        let visible = &self.entry.visible().text;
        if !visible.is_empty() {
            out.put_u8(b',');
            out.put_slice(visible);
        }
        if self.services != 0 {
            out.put_slice(b",\"nfServices\":[");
            for (i, service) in self.shown().enumerate() {
                if i > 0 {
                    out.put_u8(b',');
                }
                out.put_slice(&service.text);
            }
            out.put_u8(b']');
        }
        out.put_u8(b'}');
    }
}
