//! One worker's share of the BSF: what the handlers of requests work with.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use function::sbi::config::Overload;
use function::sbi::{Exceeded, Gate, Rates, Refused};
use function::{Admission, Meters, Seat, Shedder};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use crate::config::Config;
use crate::events::{ADMISSION, Counters, Event};
use crate::live::Effective;
use crate::notify::Notices;
use crate::peers::pcfs;
use crate::repository::Repository;
use crate::shared::Bsf;
use crate::state::{State, Switches};

/// The scope of the service (TS 29.521 §5.1).
const SCOPE: &str = "nbsf-management";

/// A worker as its listeners and its Diameter agent see it.
pub(crate) type Front = function::Front<Bsf>;

/// One worker's BSF.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Bsf>,
    index: usize,
    shedder: Rc<Shedder>,
    rates: Rc<Rates>,
    gate: Gate,
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
        let overload = &now.config.overload;
        let rates = before
            .filter(|before| before.config().overload == *overload)
            .map_or_else(
                || Rc::new(Rates::new(overload, shared.workers)),
                |before| before.rates.clone(),
            );
        let shedder = match before {
            Some(before) => {
                before.shedder.reconfigure(overload.shedding());
                before.shedder.clone()
            }
            None => {
                let meters = Meters::new(&ADMISSION, &seat.registry, index);
                Rc::new(Shedder::new(overload.shedding(), meters))
            }
        };
        shedder.enforce(shared.switches.congestion());
        Self {
            shared: shared.clone(),
            index,
            shedder,
            rates,
            gate: now.verification.gate(
                &now.config.tokens,
                &now.config.identity,
                &now.config.nf_instance_id,
                "BSF",
            ),
            counters: shared.counts.of(index),
            now,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
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
        &self.shedder
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
    pub(crate) fn answered(&self, failed: bool, after: Duration) {
        self.switches().answered(self.index, failed, after);
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.shared.notices
    }

    /// Hands a change of a PCF to the audit. False when too many wait there.
    pub(crate) fn pcf_changed(&self, change: pcfs::Changed) -> bool {
        self.shared.pcf_changes.try_send(change).is_ok()
    }

    /// Why this request is not admitted now.
    pub(crate) fn turned_away(&self, request: &Request) -> Option<Problem> {
        let creates = *request.method() == http::Method::POST;
        match self.switches().state() {
            State::Serving => {}
            State::Partial if !creates => {}
            state => {
                self.count(Event::ShutOut);
                let detail = format!("this BSF is being shut down (state {state:?})");
                return Some(Problem::of_status(http::StatusCode::SERVICE_UNAVAILABLE).detail(detail));
            }
        }
        if let Err(exceeded) = self.rates.judge(request) {
            let (event, detail) = match exceeded {
                Exceeded::Ingress => (Event::RateLimited, "more requests a second than ingressRate"),
                Exceeded::Consumer => (
                    Event::ConsumerLimited,
                    "more requests a second than a consumer may send (consumerRate)",
                ),
            };
            self.count(event);
            return Some(Problem::new(Cause::TooManyRequests).detail(detail));
        }
        let admission = function::sbi::admit(&self.shedder, request, Some(Overload::SBI));
        let problem = function::sbi::refusal(admission)?;
        self.count(match admission {
            Admission::Late => Event::TooLate,
            _ => Event::Discarded,
        });
        Some(problem)
    }

    /// The answer to a request whose sender may not use the service.
    pub(crate) fn denied(&self, request: &Request) -> Option<Response> {
        let refused = self.gate.admit(request, SCOPE).err()?;
        self.count(match refused {
            Refused::Token(_) => Event::Denied,
            Refused::Identity(_) => Event::IdentityRefused,
        });
        Some(refused.into_response(self.root()))
    }

    /// Whether the sender of a request may act for an NF instance.
    pub(crate) fn may_act_for(&self, request: &Request, instance: &str) -> Result<(), Problem> {
        let judged = self.gate.may_act_for(request, SCOPE, instance);
        judged.inspect_err(|_| self.count(Event::IdentityRefused))
    }
}
