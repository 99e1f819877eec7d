//! From a query and a table of profiles to the profiles of the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::nf_profile::AmfInfo;
use model::{Guami, NfProfile, NfService, NfServiceStatus, NfStatus, PlmnId};
use registry::{Entry, TypeTable};
use settings::Period;

use super::answer::{self, Answer, Chosen, Reason, Result as Found};
use ::discovery::{Localities, Nearness, Query, Whom, preferred_search};

use super::notes::{Notes, noting};
use super::order::Rank;
use super::priorities::Altered;
use crate::config::Discovery;

/// What an operator sets for answers.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Profiles at most, when the query does not ask for fewer.
    pub max_profiles: usize,
    /// Bytes of a complete search at most.
    pub max_complete_bytes: usize,
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
    /// The networks of this NRF: of these is an NF that names none (TS 29.510 §6.1.6.2.2, `plmnList`).
    pub own_plmns: Vec<PlmnId>,
}

impl Policy {
    /// The policy that settings ask for.
    #[must_use]
    pub fn new(settings: &Discovery, own_plmns: Vec<PlmnId>) -> Self {
        let seconds = |period: &Period| u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
        let table = |map: &BTreeMap<String, Period>| -> BTreeMap<String, u32> {
            map.iter()
                .map(|(nf_type, period)| (nf_type.clone(), seconds(period)))
                .collect()
        };
        Self {
            max_profiles: settings.max_profiles.max(1),
            max_complete_bytes: settings.max_complete_size.as_usize(),
            validity: table(&settings.validity_by_type),
            default_validity: seconds(&settings.validity),
            empty_validity: table(&settings.empty_validity_by_type),
            suspended_for: settings.suspended_for.clone(),
            localities: settings.localities.clone(),
            own_plmns,
        }
    }

    /// The networks that a profile is of; none where neither it nor the NRF names one.
    pub(super) fn plmns_of<'a>(&'a self, profile: &'a NfProfile) -> &'a [PlmnId] {
        match profile.plmn_list.is_empty() {
            true => &self.own_plmns,
            false => &profile.plmn_list,
        }
    }
}

/// Subscriber of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// `supi`.
    pub supi: Option<&'a str>,
    /// `gpsi`.
    pub gpsi: Option<&'a str>,
    /// Answer of a location function: not queried, no group, or this group.
    pub group: Option<Option<&'a str>>,
    /// Validity of the answer at most, in seconds, if no location function answered.
    pub validity: Option<u32>,
}

impl<'a> About<'a> {
    fn whom(self) -> Whom<'a> {
        Whom {
            supi: self.supi,
            gpsi: self.gpsi,
            group: self.group,
        }
    }
}

/// Extent of an answer.
#[derive(Clone, Debug)]
pub enum Extent {
    /// As many profiles as limits allow; a search id, if given, identifies the rest.
    Page(Option<String>),
    /// The profiles of the page, as a stored search.
    Stored,
    /// All profiles, as a stored search.
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
    let entries = table.into_iter().flat_map(TypeTable::iter);
    select_noting(query, about, entries, policy, extent, &mut ())
}

/// As [`select`], of these profiles of the target type; `notes` learns what is dropped, and by what.
pub(crate) fn select_noting<'a, N: Notes>(
    query: &Query,
    about: About<'_>,
    entries: impl Iterator<Item = &'a Arc<Entry>>,
    policy: &Policy,
    extent: &Extent,
    notes: &mut N,
) -> Answer {
    let target = query.target.as_ref().map_or("", |target| target.as_str());
    let mut sieve = Sieve::default();
    for entry in entries {
        sieve.take(query, about, policy, entry, notes);
    }
    let reason = sieve.reason.unwrap_or(Reason::NoMatch);
    let suspended_too = policy.suspended_for.iter().any(|one| one == target);
    let fitting = sieve.fitting(query, about, suspended_too, notes);
    let near = query.preferences.locality.as_deref().map(|preferred| {
        let localities = &policy.localities;
        localities.near(preferred, query.target.as_ref(), &query.services)
    });
    let mut chosen = ranked(fitting, query, near);
    let total = chosen.len();
    cut(&mut chosen, query, policy, extent, notes);
    let by_type = if total == 0 {
        &policy.empty_validity
    } else {
        &policy.validity
    };
    let profiles = chosen.iter().map(|one| &*one.entry.profile);
    let preferred = preferred_search(&query.preferences, near, profiles);
    let near = near.filter(|_| policy.localities.alter_priorities);
    let altered = near.and_then(|near| Altered::of(&chosen, &query.preferences, near));
    let validity = by_type.get(target).copied().unwrap_or(policy.default_validity);
    Found {
        query,
        validity: about.validity.map_or(validity, |most| validity.min(most)),
        total,
        preferred,
        altered,
        reason,
        chosen,
        policy,
    }
    .render(extent)
}

/// The profiles in the order of the answer.
fn ranked(fitting: Vec<Chosen>, query: &Query, near: Option<Nearness<'_>>) -> Vec<Chosen> {
    let mut ranked: Vec<(Rank, Chosen)> = fitting
        .into_iter()
        .map(|chosen| (Rank::of(&chosen.entry, query, near), chosen))
        .collect();
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.entry.id.cmp(&b.1.entry.id)));
    ranked.into_iter().map(|(_, chosen)| chosen).collect()
}

/// Truncates the answer to its limits.
fn cut<N: Notes>(chosen: &mut Vec<Chosen>, query: &Query, policy: &Policy, extent: &Extent, notes: &mut N) {
    if matches!(extent, Extent::Complete) {
        chosen.truncate(answer::how_many_fit(chosen, policy.max_complete_bytes));
        return;
    }
    let size = "max-payload-size";
    noting(chosen, notes, (size, "the profile alone is larger"), |chosen| {
        answer::leave_out_oversized(chosen, query.max_payload);
    });
    let limit = query.limit.filter(|limit| *limit < policy.max_profiles);
    let by = limit.map_or("discovery.maxProfiles", |_| "limit");
    noting(chosen, notes, (by, "others come first"), |chosen| {
        chosen.truncate(limit.unwrap_or(policy.max_profiles));
    });
    noting(chosen, notes, (size, "others come first"), |chosen| {
        chosen.truncate(answer::how_many_fit(chosen, query.max_payload));
    });
}

/// Profiles of a table that pass the tests, and why others do not.
#[derive(Default)]
struct Sieve {
    registered: Vec<Chosen>,
    suspended: Vec<Chosen>,
    /// Why the profile that came closest was dropped; the most specific reason stays.
    reason: Option<Reason>,
}

impl Sieve {
    fn take<N: Notes>(
        &mut self,
        query: &Query,
        about: About<'_>,
        policy: &Policy,
        entry: &Arc<Entry>,
        notes: &mut N,
    ) {
        let profile = &entry.profile;
        if let Some(parameter) = query.mismatch(profile, about.whom()) {
            let why = match parameter {
                "supi" | "gpsi" => "the profile serves other subscribers or another group",
                _ => "the profile does not match",
            };
            return notes.dropped(entry, parameter, why);
        }
        let plmns = policy.plmns_of(profile);
        let asked = &query.target_plmns;
        if !asked.is_empty() && !plmns.is_empty() && !plmns.iter().any(|plmn| asked.contains(plmn)) {
            return notes.dropped(entry, "target-plmn-list", "the profile is of other networks");
        }
        let services = services_of(query, entry);
        // The lists of the services prevail; those of the profile decide if it has no services.
        let kept_out = match profile.services().next() {
            Some(_) => services == 0,
            None => !query.requester.may_use_profile(profile),
        };
        if kept_out || (services == 0 && needs_a_service(query, profile)) {
            let requester = &query.requester;
            let mut asked = profile
                .services()
                .filter(|service| query.service.admits(&entry.id, service, &query.services))
                .peekable();
            let network_kept_out = match (profile.services().next(), asked.peek()) {
                (None, _) => !requester.network_may_use(profile, None),
                (Some(_), None) => false,
                (Some(_), Some(_)) => asked.all(|service| !requester.network_may_use(profile, Some(service))),
            };
            if network_kept_out {
                self.because(Reason::RequesterPlmn);
            }
            if N::WANTED {
                let (by, why) = no_service(query, entry);
                notes.dropped(entry, by, why);
            }
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
            _ => {
                self.because(Reason::Undiscoverable);
                notes.dropped(entry, "nfStatus", "the NF is not discoverable");
            }
        }
    }

    /// The matching profiles after backups of AMFs and exclusive preferences are considered.
    fn fitting<N: Notes>(
        self,
        query: &Query,
        about: About<'_>,
        suspended_too: bool,
        notes: &mut N,
    ) -> Vec<Chosen> {
        let (mut fitting, mut suspended) = (self.registered, self.suspended);
        if let Some(guami) = &query.guami {
            let no_guami = (
                "guami",
                "the AMF neither serves the GUAMI nor is its backup, or an AMF that serves it is available",
            );
            let has = |one: &Chosen, list: fn(&AmfInfo) -> &Vec<Guami>| {
                query.matches_with_guami(&one.entry.profile, about.whom(), guami, list)
            };
            noting(&mut suspended, notes, no_guami, |suspended| {
                suspended.retain(|one| has(one, |block| &block.guami_list));
            });
            let failed = !suspended.is_empty();
            noting(&mut fitting, notes, no_guami, |fitting| {
                amfs_for(has, fitting, failed);
            });
        }
        if fitting.is_empty() && suspended_too {
            fitting = suspended;
        } else {
            let silent = ("nfStatus", "the NF is suspended");
            noting(&mut suspended, notes, silent, Vec::clear);
        }
        let others = (
            "preferred-*",
            "other profiles match the preference, and the answer has only these",
        );
        noting(&mut fitting, notes, others, |fitting| {
            query.preferences.narrow(fitting, |one| &one.entry.profile);
        });
        fitting
    }

    fn because(&mut self, reason: Reason) {
        self.reason = self.reason.max(Some(reason));
    }
}

/// Whether a profile without a visible service is dropped: when the query names services, or when the requester may not
/// see any service of the profile.
fn needs_a_service(query: &Query, profile: &NfProfile) -> bool {
    !query.services.is_empty() || query.service.service_set.is_some() || profile.services().next().is_some()
}

/// Visible services, as bits in the order of the profile.
fn services_of(query: &Query, entry: &Entry) -> u128 {
    let shown = entry.profile.services().enumerate().filter(|(_, service)| {
        service.nf_service_status == NfServiceStatus::Registered
            && query.service.admits(&entry.id, service, &query.services)
            && query.requester.may_use_service(&entry.profile, service)
            && operations_allow(query, service)
            && serves_slices(query, service)
    });
    // A profile has at most 128 services (`MAX_SERVICES`).
    shown.fold(0, |mask, (at, _)| mask | 1 << at)
}

/// Whether `allowedOperationsPerNfType` allows the type an operation (TS 29.510 §6.1.6.2.3).
fn operations_allow(query: &Query, service: &NfService) -> bool {
    let of_type = query
        .requester
        .nf_type
        .as_ref()
        .and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
    of_type.is_none_or(|operations| !operations.is_empty())
}

/// Whether the service serves the slices: one with its own `sNssais` serves only those.
fn serves_slices(query: &Query, service: &NfService) -> bool {
    query.slices.is_empty()
        || service.snssais.is_empty()
        || service
            .snssais
            .iter()
            .any(|own| query.slices.iter().any(|slice| own.contains(slice)))
}

/// A parameter, and why it drops a profile.
type Fault = (&'static str, &'static str);
/// Whether a service passes a step.
type Passes<'a> = &'a dyn Fn(&&NfService) -> bool;

/// Why no service of a profile is visible: the step that the last of them failed.
fn no_service(query: &Query, entry: &Entry) -> Fault {
    let profile = &entry.profile;
    let steps: [(Fault, Passes<'_>); 6] = [
        (("service-names", "it has none of these services"), &|service| {
            query.services.is_empty() || query.services.contains(&service.service_name)
        }),
        (
            ("service-names, *-features", "none of its services matches"),
            &|service| query.service.admits(&entry.id, service, &query.services),
        ),
        (
            ("nfServiceStatus", "the services that match are not registered"),
            &|service| service.nf_service_status == NfServiceStatus::Registered,
        ),
        (
            (
                "requester-*",
                "`allowed*` of the profile or its services excludes the requester",
            ),
            &|service| query.requester.may_use_service(profile, service),
        ),
        (
            (
                "requester-nf-type",
                "`allowedOperationsPerNfType` allows it no operation",
            ),
            &|service| operations_allow(query, service),
        ),
        (
            ("snssais", "the services that match serve other slices"),
            &|service| serves_slices(query, service),
        ),
    ];
    let mut left: Vec<&NfService> = profile.services().collect();
    let without = left.is_empty();
    for (fault, passes) in steps {
        left.retain(passes);
        if left.is_empty() && !without {
            return fault;
        }
    }
    match query.requester.may_use_profile(profile) {
        true => ("service-names", "it has no services"),
        false => ("requester-*", "`allowed*` of the profile excludes the requester"),
    }
}

/// Keeps the AMFs of a GUAMI; without one, its backups: those for a failure while the AMF is suspended, all of them after
/// it has deregistered (TS 29.510 table 6.2.3.2.3.1 note 1, §6.1.6.2.11).
fn amfs_for(
    has: impl Fn(&Chosen, fn(&AmfInfo) -> &Vec<Guami>) -> bool,
    candidates: &mut Vec<Chosen>,
    failed: bool,
) {
    let own = |one: &Chosen| has(one, |block| &block.guami_list);
    if candidates.iter().any(own) {
        candidates.retain(own);
        return;
    }
    candidates.retain(|one| {
        has(one, |block| &block.backup_info_amf_failure)
            || (!failed && has(one, |block| &block.backup_info_amf_removal))
    });
}
