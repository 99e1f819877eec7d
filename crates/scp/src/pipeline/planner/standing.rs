//! The selection among the candidates of a plan, and what an explanation says of the others.

use std::time::Instant;

use routing::network::{NfStatus, ServiceRef};
use routing::policy::Takes;

use super::{Plan, Planner, Round};
use crate::selection::{Standing, choose};

impl Planner {
    /// The best of the candidates of this round; `None` when none is left.
    pub(in crate::pipeline) fn select(&self, plan: &Plan, round: &Round<'_>) -> Option<ServiceRef> {
        let now = Instant::now();
        let chosen = choose(
            &plan.others,
            |one| self.standing(plan, one, round, now),
            rand::random,
        )?;
        plan.others.get(chosen).cloned()
    }

    /// Standing of a candidate for the selection.
    fn standing(&self, plan: &Plan, one: &ServiceRef, round: &Round<'_>, now: Instant) -> Standing {
        let endpoints = &one.service().endpoints;
        let tried = || {
            endpoints
                .iter()
                .any(|endpoint| round.tried.contains(&endpoint.authority))
        };
        if (!round.tried.is_empty() && tried()) || !self.admits(plan, one, round) {
            return Standing::UNUSABLE;
        }
        let takes = self.takes(plan, one, round);
        let distance = self.live.distances.of(one.producer.locality.as_deref());
        if !is_in_reach(plan, one, round, distance) || takes == Takes::Nothing {
            return Standing::UNUSABLE;
        }
        let conditions = endpoints
            .iter()
            .map(|endpoint| self.targets.condition(&endpoint.authority, now));
        let (ejected, rests) = conditions.fold((true, true), |all, one| (all.0 && one.0, all.1 && one.1));
        if (rests && round.rested) || self.is_excluded(plan, one) {
            return Standing::UNUSABLE;
        }
        let place = plan
            .preference
            .as_ref()
            .map_or(0, |preference| preference.place(one));
        Standing {
            usable: !ejected,
            last: takes == Takes::WhatIsLeft || rests,
            // The preferences of the request precede the distance: first the binding, then the discovery.
            distance: u32::from_be_bytes([0, place, one.preference(), distance]),
            load: self.producers.reports.load_of(one, now),
        }
    }

    /// Requests that a candidate may get, by its status.
    fn takes(&self, plan: &Plan, one: &ServiceRef, round: &Round<'_>) -> Takes {
        match one.service().status {
            NfStatus::Registered => Takes::All,
            status => self
                .live
                .config
                .nf_status
                .takes(status, plan.phase(round.headers)),
        }
    }

    /// Whether the request excludes a candidate (`3gpp-Sbi-Selection-Info`).
    fn is_excluded(&self, plan: &Plan, one: &ServiceRef) -> bool {
        let exclusions = plan.exclusions.as_ref();
        exclusions.is_some_and(|exclusions| exclusions.exclude(one))
    }

    /// Whether the profile of a candidate admits the consumer; callbacks are not restricted.
    pub(in crate::pipeline) fn admits(&self, plan: &Plan, one: &ServiceRef, round: &Round<'_>) -> bool {
        plan.callback || one.producer.admits(one.service(), || round.applicant())
    }

    /// Describes whether a candidate may be selected in this round.
    pub(in crate::pipeline) fn standing_in_words(
        &self,
        plan: &Plan,
        one: &ServiceRef,
        round: &Round<'_>,
    ) -> &'static str {
        let now = Instant::now();
        let standing = self.standing(plan, one, round, now);
        if standing.usable {
            return match standing.last {
                true => "may serve if no other is available (nfStatus)",
                false => "may serve",
            };
        }
        if !self.admits(plan, one, round) {
            return "its profile does not admit the consumer";
        }
        if self.takes(plan, one, round) == Takes::Nothing {
            return "its status excludes it (nfStatus)";
        }
        let distance = self.live.distances.of(one.producer.locality.as_deref());
        if !is_in_reach(plan, one, round, distance) {
            return "it is farther away than the policy allows";
        }
        "it is ejected, because it failed"
    }

    /// Describes why a candidate that may serve comes after the one that was chosen, in the order of the selection.
    pub(in crate::pipeline) fn passed_over(
        &self,
        plan: &Plan,
        one: &ServiceRef,
        chosen: &ServiceRef,
        round: &Round<'_>,
    ) -> String {
        let now = Instant::now();
        let [own, other] = [one, chosen].map(|one| self.standing(plan, one, round, now));
        let place = |one: &ServiceRef| {
            plan.preference
                .as_ref()
                .map_or(0, |preference| preference.place(one))
        };
        let [own_distance, other_distance] =
            [one, chosen].map(|one| self.live.distances.of(one.producer.locality.as_deref()));
        let [own_priority, other_priority] = [one, chosen].map(|one| one.service().priority);
        if own.last && !other.last {
            return "its status has it serve only if no other is available (nfStatus)".to_owned();
        }
        if place(one) > place(chosen) {
            return "the binding or the discovery prefers the chosen one".to_owned();
        }
        if one.preference() > chosen.preference() {
            return "the discovery prefers the chosen one".to_owned();
        }
        if own_distance > other_distance {
            return "it is farther away than the chosen one".to_owned();
        }
        if own_priority > other_priority {
            return format!("its priority {own_priority} comes after {other_priority}");
        }
        "as good as the chosen one, which was drawn by capacity and load".to_owned()
    }
}

/// Whether a candidate at this distance is within reach. A producer that the request itself names is always in reach, as
/// one named by its API root.
fn is_in_reach(plan: &Plan, one: &ServiceRef, round: &Round<'_>, distance: u8) -> bool {
    let named = || {
        let preference = plan.preference.as_ref();
        preference.is_some_and(|preference| preference.names(one))
    };
    distance <= round.reach || (round.tried.is_empty() && named())
}
