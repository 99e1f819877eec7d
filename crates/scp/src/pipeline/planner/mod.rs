//! Step 7, the planner: the producers that may serve the request, and their order.

mod discovery;
mod standing;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use routing::network::{Applicant, ServiceRef};
use routing::path::path_of;
use routing::policy::{Phase, Reroute, Route, ServicePolicy, StagePolicy};
use routing::target::{self, Delegated, Exclusions, Has, OwnNames, Preference, Queries, Wish};
use sbi::headers::{RoutingBinding, names};
use sbi::name::{METHOD, PATH};
use sbi::problem::{Cause, Problem};
use sbi::{Fields, Value};

use super::Setup;
use super::deadline::Deadline;
use super::message::{Admitted, Caller, Target};
use super::recorder::Recorder;
use super::targets::Targets;
use super::view::View;
use crate::config::AcceptNrfs;
use crate::live::Live;
use crate::peers::Searcher;
use crate::protection::Peers;
use crate::security::Fetcher;

/// The name of the step in explanations.
const STEP: &str = "planner";

/// Plans which producers may serve a request.
pub(super) struct Planner {
    live: Arc<Live>,
    pub(super) view: Rc<View>,
    own: Arc<OwnNames>,
    pub(super) producers: Rc<Peers>,
    pub(super) targets: Targets,
    queries: Rc<Queries>,
    pub(super) searcher: Rc<Searcher>,
    /// No candidates and no further targets, for all plans that have none.
    none: Rc<Vec<ServiceRef>>,
    nowhere: Rc<[Rc<Target>]>,
}

/// One selection among the candidates of a plan.
pub(super) struct Round<'a> {
    pub(super) caller: &'a Caller,
    /// Headers of the request.
    pub(super) headers: &'a Fields,
    /// The authorities that were tried before.
    pub(super) tried: &'a [Arc<str>],
    /// Greatest distance of a selected producer.
    pub(super) reach: u8,
    /// Whether producers that have sent `Retry-After` are excluded.
    pub(super) rested: bool,
}

impl Round<'_> {
    fn applicant(&self) -> &Applicant {
        self.caller.applicant(self.headers)
    }
}

/// The producers that may serve a request.
#[derive(Clone)]
pub(super) struct Plan {
    /// The producer that the request names, which is tried first.
    pub(super) named: Option<Rc<Target>>,
    /// The other candidates.
    pub(super) others: Rc<Vec<ServiceRef>>,
    /// Whether `others` is complete; if not, it is completed when the named producer fails.
    pub(super) complete: bool,
    /// Further targets without a profile, in their order: NRFs of the settings.
    pub(super) further: Rc<[Rc<Target>]>,
    /// Whether this SCP selects the producer (Model D): the answer then names it.
    pub(super) discovered: bool,
    /// The order in which the request prefers the others.
    preference: Option<Rc<Preference>>,
    /// Whether the request is a callback: `allowed…` of profiles restricts services, not callbacks.
    pub(super) callback: bool,
    /// Whether no attempt may follow another (`3gpp-Sbi-Retry-Info: no-retries`).
    pub(super) once: bool,
    /// Producers that the request excludes.
    exclusions: Option<Rc<Exclusions>>,
    /// Major version of the API, where the path names one.
    version: Option<u32>,
    /// Greatest distance of the initial selection.
    pub(super) reach: u8,
    /// Time that was spent waiting for an NRF.
    pub(super) waited: Duration,
    /// Phase of the request, computed at first use.
    phase: Cell<Option<Phase>>,
    /// The discovery whose cached answer has named the others, until it was asked again.
    pub(super) recalled: Option<Rc<Delegated>>,
    /// Whether it carries a routing binding.
    bound: bool,
    pub(super) stage: StagePolicy,
}

impl Plan {
    /// Whether the request with these headers begins a conversation.
    fn phase(&self, headers: &Fields) -> Phase {
        let of = || {
            let text = |name| headers.get(name).map(Value::as_bytes).unwrap_or_default();
            let method = Method::from_bytes(text(METHOD)).unwrap_or(Method::GET);
            let path = std::str::from_utf8(text(PATH)).unwrap_or_default();
            Phase::of(&method, path_of(path), self.bound)
        };
        let phase = self.phase.get().unwrap_or_else(of);
        self.phase.set(Some(phase));
        phase
    }
}

impl Planner {
    /// Creates it with the discovery answers of `before`, as far as the settings are the same.
    pub(super) fn new(
        setup: &Setup<'_>,
        producers: Rc<Peers>,
        tokens: Rc<Fetcher>,
        before: Option<&Self>,
    ) -> Self {
        let (live, shared) = (setup.live, setup.shared);
        let accept = live.config.nrf.named.accept;
        let by_agent = live.config.discovery.requester_from_user_agent;
        let queries = before
            .filter(|before| before.live.config.nrf.named.accept == accept)
            .filter(|before| before.live.config.discovery.requester_from_user_agent == by_agent)
            .map(|before| before.queries.clone());
        // Half for the queries, half for the targets.
        let memory = live.config.route_cache.as_usize() / 2;
        let queries =
            queries.unwrap_or_else(|| Rc::new(Queries::new(accept != AcceptNrfs::Ignore, by_agent, memory)));
        queries.set_memory(memory);
        Self {
            targets: Targets::new(setup, producers.clone(), memory),
            queries,
            searcher: Rc::new(Searcher::new(
                &live.config,
                setup.clients.known.clone(),
                tokens,
                shared.metrics.clone(),
                shared.answers.clone(),
                shared.doubts.clone(),
                before.map(|before| (&*before.live.config, &*before.searcher)),
            )),
            live: live.clone(),
            view: setup.view.clone(),
            own: shared.own.clone(),
            producers,
            none: Rc::default(),
            nowhere: Rc::default(),
        }
    }

    /// Memory of the cached targets and queries, in bytes.
    pub(super) fn remembered_bytes(&self) -> usize {
        self.targets.remembered_bytes() + self.queries.bytes()
    }

    /// Plans the targets of a request.
    pub(super) async fn plan(
        &self,
        admitted: &Admitted<'_>,
        policy: &ServicePolicy,
        deadline: &Deadline,
        notes: &impl Recorder,
    ) -> Result<Plan, Problem> {
        let Admitted { arrived, caller, .. } = admitted;
        let request = &arrived.request;
        let headers = request.headers();
        let (path, service) = (arrived.address.path(), arrived.address.service());
        let has = arrived.has;
        let asker = (headers, deadline);
        if has.has(Has::REPEATED) {
            target::check_repeated(headers)?;
        }
        let root = match has.has(Has::TARGET_API_ROOT) {
            true => headers.get(names::TARGET_API_ROOT).map(Value::as_bytes),
            false => None,
        };
        let binding = match has.has(Has::ROUTING_BINDING) {
            true => target::header::<RoutingBinding>(headers)?,
            false => None,
        };
        let to_callback = |binding: &RoutingBinding| binding.is_of_callbacks();
        let callback = has.has(Has::CALLBACK) || binding.as_ref().is_some_and(to_callback);
        // The hot path of Model C: the header is in the cache, and no other header needs parsing.
        let quick = root.and_then(|key| self.targets.remembered(key, service, callback));
        let wish = match &quick {
            Some(_) => None,
            None => {
                let consumer = caller.nf_type();
                Some(target::wish(request, has, &self.own, &self.queries, consumer)?)
            }
        };
        // Most policies treat all requests alike and do not need the phase.
        let phase = Cell::new(None);
        let mut stage = policy.initial;
        if policy.initial != policy.subsequent {
            phase.set(Some(Phase::of(request.method(), path, binding.is_some())));
            stage = phase.get().map_or(stage, |phase| policy.stage(phase));
        }
        let once = has.has(Has::RETRY_INFO) && target::forbids_retries(headers);
        let exclusions = match has.has(Has::SELECTION_INFO) {
            true => Exclusions::of(headers),
            false => None,
        };
        if once || exclusions.as_ref().is_some_and(Exclusions::forbids_reselection) {
            stage.reroute = Reroute::None;
        }
        notes.note(STEP, || {
            let phase = Phase::of(request.method(), path, binding.is_some());
            describe(service, phase, stage, policy)
        });
        let mut plan = Plan {
            named: quick,
            others: self.none.clone(),
            complete: false,
            further: self.nowhere.clone(),
            discovered: false,
            preference: None,
            callback,
            once,
            exclusions: exclusions.map(Rc::new),
            version: (!callback).then(|| target::version_of(path)).flatten(),
            reach: policy.scope.reach(),
            waited: Duration::ZERO,
            phase,
            recalled: None,
            bound: binding.is_some(),
            stage,
        };
        match wish {
            None => {}
            Some(Wish::Root(named)) => match self.targets.resolve(root, named.clone(), service, callback) {
                Ok(target) => plan.named = Some(target),
                // The discovery parameters find other producers (TS 29.500 §6.10.5.1).
                Err(problem) => match self.query(caller, headers, has)? {
                    Some(wanted) => {
                        self.discover(&mut plan, &wanted, binding.as_ref(), service, asker, notes)
                            .await?;
                    }
                    None => {
                        let looking = Box::pin(self.unlearned(named, service, caller, asker));
                        plan.named = Some(looking.await.ok_or(problem)?);
                    }
                },
            },
            Some(Wish::Discover(wanted)) if wanted.asks_for_nrfs(service) => {
                self.ask_for_nrfs(&mut plan, Some(&wanted.query), notes);
            }
            Some(Wish::Discover(wanted)) => {
                self.discover(&mut plan, &wanted, binding.as_ref(), service, asker, notes)
                    .await?;
            }
            Some(Wish::Nrf) => self.ask_for_nrfs(&mut plan, None, notes),
            Some(Wish::Bound) => plan.discovered = true,
        }
        // The request may exclude the producer that it names.
        plan.named = plan.named.filter(|named| {
            let service = named.service.as_ref();
            service.is_none_or(|service| !plan.exclusions.as_ref().is_some_and(|all| all.exclude(service)))
        });
        if let Some(named) = &plan.named {
            notes.note(STEP, || describe_named(named));
        }
        if let Some(binding) = &binding {
            self.bind(&mut plan, binding, service, notes);
        }
        if stage.route == Route::LoadBalance {
            self.balance(&mut plan, notes);
        }
        if plan.named.is_none() && plan.others.is_empty() && plan.further.is_empty() {
            let problem = Problem::new(Cause::NfDiscoveryFailure);
            return Err(problem.detail(format!("no producer of {service} was found for the request")));
        }
        Ok(plan)
    }

    /// Adds the candidates of a routing binding (TS 29.500 §6.12.2), the preferred one first.
    fn bind(&self, plan: &mut Plan, binding: &RoutingBinding, service: &str, notes: &impl Recorder) {
        let bound = target::bound(binding, service, plan.callback, &self.view.network());
        let preference = Preference::of_binding(binding);
        notes.note(STEP, || match preference.describe() {
            Some(first) => format!(
                "The routing binding names {} known service instances and prefers {first}.",
                bound.len()
            ),
            None => format!(
                "The routing binding names {} known service instances.",
                bound.len()
            ),
        });
        plan.preference = Some(Rc::new(preference));
        if !bound.is_empty() {
            plan.others = of_version(Rc::new(bound), plan.version);
            plan.complete = true;
        }
    }

    /// Makes any member of the set of the named producer a candidate.
    fn balance(&self, plan: &mut Plan, notes: &impl Recorder) {
        let Some((named, service)) = plan
            .named
            .take_if(|named| named.service.is_some())
            .and_then(|named| Some((named.clone(), named.service.clone()?)))
        else {
            return;
        };
        self.complete(plan, Some(&named));
        Rc::make_mut(&mut plan.others).push(service);
        notes.note(STEP, || {
            format!(
                "The policy balances the load: any of the {} members of the set may serve.",
                plan.others.len()
            )
        });
    }

    /// Adds the alternates of the named producer, unless that was done before.
    pub(super) fn complete(&self, plan: &mut Plan, named: Option<&Target>) {
        if plan.complete {
            return;
        }
        plan.complete = true;
        if let Some(service) = named.and_then(|named| named.service.as_ref()) {
            let alternates = Rc::new(self.view.network().alternates(service));
            plan.others = of_version(alternates, plan.version);
        }
    }
}

/// Keeps the candidates with this major version of the API, if any has it.
fn of_version(candidates: Rc<Vec<ServiceRef>>, version: Option<u32>) -> Rc<Vec<ServiceRef>> {
    let Some(version) = version else { return candidates };
    let offers = |one: &ServiceRef| one.service().offers(version);
    if candidates.iter().all(offers) || !candidates.iter().any(offers) {
        return candidates;
    }
    Rc::new(candidates.iter().filter(|one| offers(one)).cloned().collect())
}

fn describe(service: &str, phase: Phase, stage: StagePolicy, policy: &ServicePolicy) -> String {
    let which = match policy.services.is_empty() {
        true => "the policy for all other services",
        false => "its policy",
    };
    format!(
        "A request to `{service}` that {}: by {which} it goes to {}, and {}.",
        phase.describe(),
        stage.route.describe(),
        stage.reroute.describe()
    )
}

fn describe_named(target: &Target) -> String {
    let root = &target.root;
    match &target.service {
        Some(one) => format!(
            "The request names {root}: {} {}.",
            one.producer.nf_type, one.producer.id
        ),
        None if target.unknown => {
            format!("The request names {root}, which is unknown; the settings allow it.")
        }
        None => {
            format!(
                "The request names {root}, which is known by the settings, an NRF's answer or as the host of a callback."
            )
        }
    }
}
