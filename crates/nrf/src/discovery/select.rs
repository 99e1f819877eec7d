//! From a query and a table of profiles to the profiles of the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::nf_profile::AmfInfo;
use model::{Guami, NfProfile, NfService, NfServiceStatus, NfStatus};

use super::answer::{self, Answer, Chosen, Reason, Result as Found};
use ::discovery::{Localities, Query, params, preferred_search};

use super::order::Rank;
use crate::registry::{Entry, TypeTable};

/// What an operator sets for answers.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Profiles at most, when the query does not ask for fewer.
    pub max_profiles: usize,
    /// Seconds an answer is valid, by NF type.
    pub validity: BTreeMap<String, u32>,
    /// Seconds an answer is valid for other types.
    pub default_validity: u32,
    /// Seconds an empty answer is valid, by NF type.
    pub empty_validity: BTreeMap<String, u32>,
    /// NF types whose suspended profiles are answered when no other fits.
    pub suspended_for: Vec<String>,
    /// The operator's map of localities.
    pub localities: Localities,
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

/// How much of what fits is answered.
#[derive(Clone, Debug)]
pub enum Extent {
    /// As much as limits allow; a search id, if given, names the rest.
    Page(Option<String>),
    /// What the page of a search had, as a stored search.
    Stored,
    /// Everything, as a stored search.
    Complete,
}

/// Answers a query from the profiles of its target type.
#[must_use]
pub fn select(
    query: &Query,
    about: About<'_>,
    table: Option<&TypeTable>,
    policy: &Policy,
    extent: &Extent,
) -> Answer {
    let target = query.target.as_ref().map_or("", |target| target.as_str());
    let mut sieve = Sieve::default();
    for entry in table.into_iter().flat_map(TypeTable::iter) {
        sieve.take(query, about, entry);
    }
    let (mut fitting, mut suspended) = (sieve.registered, sieve.suspended);
    if let Some(guami) = &query.guami {
        suspended.retain(|one| amf_has(one, guami, |block| &block.guami_list));
        fitting = amfs_for(guami, fitting, !suspended.is_empty());
    }
    if fitting.is_empty() && policy.suspended_for.iter().any(|one| one == target) {
        fitting = suspended;
    }
    let mut ranked: Vec<(Rank, Chosen)> = fitting
        .into_iter()
        .map(|chosen| (Rank::of(&chosen.entry, query, &policy.localities), chosen))
        .collect();
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.entry.id.cmp(&b.1.entry.id)));
    let mut chosen: Vec<Chosen> = ranked.into_iter().map(|(_, chosen)| chosen).collect();
    let total = chosen.len();
    if !matches!(extent, Extent::Complete) {
        answer::leave_out_oversized(&mut chosen, query.max_payload);
        chosen.truncate(query.limit.unwrap_or(usize::MAX).min(policy.max_profiles));
        chosen.truncate(answer::how_many_fit(&chosen, query.max_payload));
    }
    let by_type = if total == 0 {
        &policy.empty_validity
    } else {
        &policy.validity
    };
    let profiles = chosen.iter().map(|one| &*one.entry.profile);
    let preferred = preferred_search(query, &policy.localities, profiles);
    Found {
        query,
        validity: by_type.get(target).copied().unwrap_or(policy.default_validity),
        total,
        preferred,
        reason: sieve.reason.unwrap_or(Reason::NoMatch),
        chosen,
    }
    .render(extent)
}

/// What is left of a table, and why the rest is not.
#[derive(Default)]
struct Sieve {
    registered: Vec<Chosen>,
    suspended: Vec<Chosen>,
    /// Why the last profile that came closest was not taken; the most telling reason stays.
    reason: Option<Reason>,
}

impl Sieve {
    fn take(&mut self, query: &Query, about: About<'_>, entry: &Arc<Entry>) {
        let profile = &entry.profile;
        if !query.tests.iter().all(|test| test.holds(profile)) || !fits_subscriber(profile, about) {
            return;
        }
        if !query.requester.may_use(&profile.allowed) {
            if !query.requester.plmn_may_use(&profile.allowed) {
                self.because(Reason::RequesterPlmn);
            }
            return;
        }
        let services = services_of(query, entry);
        if services == 0 && needs_a_service(query, profile) {
            return;
        }
        let chosen = Chosen {
            entry: entry.clone(),
            services,
        };
        match entry.status {
            NfStatus::Registered => self.registered.push(chosen),
            NfStatus::Suspended => {
                self.because(Reason::Suspended);
                self.suspended.push(chosen);
            }
            // UNDISCOVERABLE, and what later releases may add: not for discoverers (TS 29.510 §6.1.6.3.7).
            _ => self.because(Reason::Undiscoverable),
        }
    }

    fn because(&mut self, reason: Reason) {
        self.reason = self.reason.max(Some(reason));
    }
}

fn fits_subscriber(profile: &NfProfile, about: About<'_>) -> bool {
    let supi = about
        .supi
        .is_none_or(|supi| params::fits_supi(profile, supi, about.group));
    supi && about
        .gpsi
        .is_none_or(|gpsi| params::fits_gpsi(profile, gpsi, about.group))
}

/// Whether a profile none of whose services may be shown is of no use: when a service was asked for, and
/// when it has services that this requester may not see.
fn needs_a_service(query: &Query, profile: &NfProfile) -> bool {
    !query.services.is_empty() || query.service.service_set.is_some() || profile.services().next().is_some()
}

/// Which services are shown, as bits in the order of the profile.
fn services_of(query: &Query, entry: &Entry) -> u128 {
    let shown = entry.profile.services().enumerate().filter(|(_, service)| {
        service.nf_service_status == NfServiceStatus::Registered
            && query.service.admits(&entry.id, service, &query.services)
            && query.requester.may_use(&service.allowed)
            && operations_allow(query, service)
            && serves_slices(query, service)
    });
    // A profile has at most 128 services (`MAX_SERVICES`).
    shown.fold(0, |mask, (at, _)| mask | 1 << at)
}

/// `allowedOperationsPerNfType` leaves a type out that may do nothing (TS 29.510 §6.1.6.2.3).
fn operations_allow(query: &Query, service: &NfService) -> bool {
    let of_type = query
        .requester
        .nf_type
        .as_ref()
        .and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
    of_type.is_none_or(|operations| !operations.is_empty())
}

/// A service with slices of its own serves only those.
fn serves_slices(query: &Query, service: &NfService) -> bool {
    query.slices.is_empty()
        || service.snssais.is_empty()
        || service
            .snssais
            .iter()
            .any(|own| query.slices.iter().any(|slice| own.contains(slice)))
}

/// The AMFs of a GUAMI; if there is none any more, those that stand in for it: for a failure when the AMF is
/// still known but silent, for either when it is gone (TS 29.510 table 6.2.3.2.3.1 note 1, §6.1.6.2.11).
fn amfs_for(guami: &Guami, candidates: Vec<Chosen>, failed: bool) -> Vec<Chosen> {
    let own = |one: &Chosen| amf_has(one, guami, |block| &block.guami_list);
    if candidates.iter().any(own) {
        return candidates.into_iter().filter(own).collect();
    }
    let stands_in = |one: &Chosen| {
        amf_has(one, guami, |block| &block.backup_info_amf_failure)
            || (!failed && amf_has(one, guami, |block| &block.backup_info_amf_removal))
    };
    candidates.into_iter().filter(stands_in).collect()
}

fn amf_has(one: &Chosen, guami: &Guami, list: fn(&AmfInfo) -> &Vec<Guami>) -> bool {
    one.entry
        .profile
        .amf_infos()
        .any(|block| list(block).contains(guami))
}
