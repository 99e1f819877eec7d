//! Step 3, admission: the consumer of the request, its priority, and overload control.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use function::{Admission as Verdict, Meters};
use routing::network::Network;
use routing::target::{Has, service_of};
use sbi::headers::{MessagePriority, SbiHeader, names};
use sbi::oauth::{AssertionClaims, AssertionFault, Assertions, since_epoch};
use sbi::problem::{Cause, Problem};
use sbi::{Fields, Request};
use telemetry::metrics::Counter;

use super::Setup;
use super::message::{Admitted, Arrived, Caller, Step};
use super::recorder::Recorder;
use crate::events::ADMISSION;
use crate::live::Live;
use crate::protection::{Consumer, Consumers, Load, source};
use crate::refusal::{Refusal, Refused};
use crate::security::{ASSERTIONS, Asked};

/// The NF instance id that a request gives for its consumer.
const REQUESTER: &str = "3gpp-sbi-discovery-requester-nf-instance-id";

/// Admits or refuses requests.
pub(super) struct Admission {
    live: Arc<Live>,
    consumers: Rc<Consumers>,
    load: Rc<Load>,
    assertions: Assertions,
    accepted: Counter,
    refused: Counter,
    missing: Counter,
    /// Hasher of request sources.
    hasher: ahash::RandomState,
}

/// A request that was admitted, until it is answered or its consumer has gone.
pub(super) struct InFlight<'a>(&'a Load);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The claims of a request's assertion, where assertions are checked.
type Claims = Option<Rc<AssertionClaims>>;

impl Admission {
    /// Creates it with rates, load and requests in flight of `before`, as far as the settings are the same.
    pub(super) fn new(setup: &Setup<'_>, before: Option<&Self>) -> Self {
        let (live, shared) = (setup.live, setup.shared);
        let protection = &live.config.protection;
        let consumers = before
            .filter(|before| before.live.config.protection.same_consumers(protection))
            .map(|before| before.consumers.clone());
        let load = match before {
            Some(before) => {
                before.load.reconfigure(protection);
                before.load.clone()
            }
            None => {
                let meters = Meters::new(&ADMISSION, &shared.registry, setup.index);
                Rc::new(Load::new(protection, meters))
            }
        };
        let outcomes = shared.registry.counters(&ASSERTIONS);
        Self {
            consumers: consumers.unwrap_or_else(|| {
                let rates = live.rates.clone();
                let network = shared.network.load_full();
                Rc::new(Consumers::new(
                    protection,
                    &shared.metrics,
                    rates,
                    network,
                    setup.index,
                ))
            }),
            load,
            assertions: Assertions::new(&live.config.security.assertions, live.authorities.clone(), "SCP"),
            accepted: outcomes.get(&["accepted"]),
            refused: outcomes.get(&["refused"]),
            missing: outcomes.get(&["missing"]),
            hasher: shared.hasher.clone(),
            live: live.clone(),
        }
    }

    /// The load of this worker.
    pub(super) fn load(&self) -> &Load {
        &self.load
    }

    /// Admits a request, or refuses it. [`Admission::in_flight`] must follow.
    pub(super) fn admit<'a>(&self, arrived: &'a mut Arrived) -> Step<Admitted<'a>> {
        let (request, has) = (&mut arrived.request, arrived.has);
        let now = request.received;
        // A signature is the most expensive check: it comes last, unless it identifies the consumer.
        let early = self.early_claims(request)?;
        let consumer = self.consumer(request, early.as_ref());
        let priority = self.prioritise(request, has);
        if !consumer.admits(now) {
            return Err(Box::<Refused>::from(Refusal::IngressRate).after(consumer.retry_after(now)));
        }
        let dated = self.live.config.late_requests.detect;
        let admission = self.load.admit(request, priority, dated);
        if let Some(problem) = function::sbi::refusal(admission) {
            return Err(match admission {
                Verdict::Late => Refusal::Late.with(problem),
                _ => Refusal::Overload.into(),
            });
        }
        let claims = match early {
            Some(claims) => claims,
            None => self.claims(request.headers())?,
        };
        if !self.load.enter(priority) {
            return Err(Refusal::InFlight.into());
        }
        Ok(self.admitted(arrived, consumer, claims, priority))
    }

    /// Follows the network: consumers that it has now are counted by name.
    pub(super) fn follow(&self, network: &Arc<Network>) {
        self.consumers.follow(network);
    }

    /// The account of an admitted request, closed when it is dropped.
    pub(super) fn in_flight(&self) -> InFlight<'_> {
        InFlight(&self.load)
    }

    /// As [`Admission::admit`] for an explanation, without counting.
    pub(super) fn inspect<'a>(&self, arrived: &'a mut Arrived, notes: &impl Recorder) -> Step<Admitted<'a>> {
        const STEP: &str = "admission";
        let (request, has) = (&mut arrived.request, arrived.has);
        let now = request.received;
        let early = self.early_claims(request)?;
        let consumer = self.consumer(request, early.as_ref());
        let priority = self.prioritise(request, has);
        notes.note(STEP, || {
            format!(
                "The consumer is `{}`; its message priority is {priority}.",
                consumer.name
            )
        });
        if !consumer.has_room(now) {
            return Err(Refusal::IngressRate.into());
        }
        let reduction = self.load.reduction();
        if reduction > 0 {
            notes.note(STEP, || {
                format!("This SCP is overloaded and refuses {reduction} % of the requests, the least important first.")
            });
        }
        let claims = match early {
            Some(claims) => claims,
            None => self.claims(request.headers())?,
        };
        Ok(self.admitted(arrived, consumer, claims, priority))
    }

    fn early_claims(&self, request: &Request) -> Step<Option<Claims>> {
        match self.consumers.need_assertion() {
            true => self.claims(request.headers()).map(Some),
            false => Ok(None),
        }
    }

    fn consumer(&self, request: &Request, claims: Option<&Claims>) -> Rc<Consumer> {
        let claims = claims.and_then(Option::as_ref);
        self.consumers
            .of(request, claims.map(|claims| claims.sub.as_str()))
    }

    /// Checks the assertion of a request, if settings require it (TS 29.500 §6.7.5).
    fn claims(&self, headers: &Fields) -> Step<Claims> {
        if !self.assertions.concerns(headers) {
            return Ok(None);
        }
        let claims = self.assertions.of_request(headers, since_epoch());
        match &claims {
            Ok(Some(_)) => self.accepted.inc(),
            Ok(None) => {}
            Err(AssertionFault::Missing) => self.missing.inc(),
            Err(AssertionFault::Refused(_)) => self.refused.inc(),
        }
        let claims = claims.map_err(|fault| Refusal::Assertion.with(fault.problem()))?;
        if let Some(claims) = &claims
            && let Some(said) = headers.get(REQUESTER).and_then(|value| value.to_str().ok())
            && !said.trim().eq_ignore_ascii_case(&claims.sub)
        {
            self.refused.inc();
            let problem = Problem::new(Cause::CcaVerificationFailure)
                .detail("the assertion is of another NF instance than the request")
                .invalid_param(
                    format!("header {REQUESTER}"),
                    "expected the subject of the assertion",
                );
            return Err(Refusal::Assertion.with(problem));
        }
        Ok(claims)
    }

    fn admitted<'a>(
        &self,
        arrived: &'a mut Arrived,
        consumer: Rc<Consumer>,
        claims: Claims,
        priority: u8,
    ) -> Admitted<'a> {
        let (request, access) = (&arrived.request, &self.live.access);
        let caller = Caller {
            asked: match access.is_empty() {
                true => Asked::default(),
                false => access.asked(request.headers()),
            },
            source: source(&request.peer, &self.hasher),
            consumer,
            claims,
            connection: request.peer.clone(),
            stream: request.stream,
            applicant: OnceCell::new(),
        };
        Admitted {
            arrived,
            caller,
            priority,
        }
    }

    /// The priority of a request (TS 29.500 §6.8), written into it where a rule sets it.
    fn prioritise(&self, request: &mut Request, has: Has) -> u8 {
        let (priority, write) = self.priority(request, has);
        if write {
            let headers = request.headers_mut();
            headers.set_number(names::MESSAGE_PRIORITY, priority.into());
        }
        priority
    }

    /// The priority of a request, and whether it is to be written into it.
    fn priority(&self, request: &Request, has: Has) -> (u8, bool) {
        let settings = &self.live.config.protection.priorities;
        let carried = has
            .has(Has::MESSAGE_PRIORITY)
            .then(|| request.headers().get(names::MESSAGE_PRIORITY))
            .flatten()
            .and_then(|value| value.to_str().ok())
            .and_then(|text| MessagePriority::parse(text).ok())
            .map(MessagePriority::get);
        let service = match settings.rules.is_empty() {
            true => "",
            false => service_of(request.path()),
        };
        let method = request.method();
        let rule = settings.rules.iter().find(|rule| {
            (rule.services.is_empty() || rule.services.iter().any(|one| one == service))
                && (rule.methods.is_empty() || rule.methods.iter().any(|one| one == method.as_str()))
        });
        match (carried, rule) {
            (Some(carried), Some(rule)) if !rule.replace => (carried, false),
            (_, Some(rule)) => (rule.priority, true),
            (Some(carried), None) => (carried, false),
            (None, None) => (settings.default, false),
        }
    }
}
