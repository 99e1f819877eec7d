//! One worker's share of the BSF: what the handlers of requests work with.

use std::sync::Arc;
use std::time::Duration;

use function::sbi::{Door, State};
use function::{Seat, Shedder, Tolerated};
use sbi::Request;
use sbi::problem::Problem;

use crate::config::Config;
use crate::events::{ADMISSION, Counters, Event};
use crate::live::Effective;
use crate::notify::Notices;
use crate::peers::pcfs;
use crate::repository::Repository;
use crate::shared::Bsf;
use crate::state::Switches;

/// The scope of the service (TS 29.521 §5.1).
pub(crate) const SCOPE: &str = "nbsf-management";

/// A worker as its listeners and its Diameter agent see it.
pub(crate) type Front = function::Front<Bsf>;

/// One worker's BSF.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Bsf>,
    index: usize,
    door: Door,
    counters: Arc<Counters>,
}

impl Worker {
    /// A worker by what is in effect now. What the one before has measured stays, as far as its settings do.
    pub(crate) fn new(
        shared: &Arc<Bsf>,
        seat: &Seat<Bsf>,
        now: Arc<Effective>,
        before: Option<&Self>,
    ) -> Self {
        let index = seat.context.index;
        let config = &now.config;
        let gate = now
            .verification
            .gate(&config.tokens, &config.identity, &config.nf_instance_id, "BSF");
        let door = Door::new(
            &config.overload,
            gate,
            shared.workers,
            before.map(|before| &before.door),
            (&ADMISSION, &seat.registry, index),
        );
        door.shedder().enforce(shared.switches.congestion());
        Self {
            shared: shared.clone(),
            index,
            door,
            counters: shared.counts.of(index),
            now,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
    }

    /// The settings in effect, and what is derived from them.
    pub(crate) fn effective(&self) -> &Effective {
        &self.now
    }

    /// What admits requests.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    /// Root of the URIs that the BSF hands out.
    pub(crate) fn root(&self) -> &str {
        // It is set when the function is bound.
        self.config().api_root.trim_end_matches('/')
    }

    pub(crate) fn repository(&self) -> &Repository {
        self.shared.repository()
    }

    pub(crate) fn switches(&self) -> &Switches {
        &self.shared.switches
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        self.door.shedder()
    }

    /// Whether notifications may go to a URI that a subscriber names; if not, what was expected.
    pub(crate) fn check_uri(&self, uri: &str) -> Result<(), &'static str> {
        let checked = self.now.destinations.check_uri(uri, function::sbi::Use::Whole);
        checked.inspect_err(|_| self.count(Event::TargetDenied))
    }

    /// Counts members that counted as absent.
    pub(crate) fn tolerated(&self) -> &Tolerated {
        &self.shared.tolerated
    }

    pub(crate) fn max_body(&self) -> usize {
        self.config().max_body_size.as_usize()
    }

    pub(crate) fn max_candidates(&self) -> usize {
        self.config().max_candidates
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// A request was answered after that time.
    pub(crate) fn note_answer(&self, failed: bool, after: Duration) {
        self.switches().answered(self.index, failed, after);
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.shared.notices
    }

    /// Hands a change of a PCF to the audit. False when too many wait there.
    pub(crate) fn pcf_changed(&self, change: pcfs::Changed) -> bool {
        self.shared.pcf_changes.try_send(change).is_ok()
    }

    /// The operational state.
    pub(crate) fn state(&self) -> State {
        self.switches().operational().state()
    }

    /// Whether the sender of a request may act for an NF instance.
    pub(crate) fn may_act_for(&self, request: &Request, instance: &str) -> Result<(), Problem> {
        let judged = self.door.gate().may_act_for(request, SCOPE, instance);
        judged.inspect_err(|_| self.count(Event::IdentityRefused))
    }
}
