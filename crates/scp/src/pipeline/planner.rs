//! Step 7, the planner: the producers that may serve the request, and their order.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use routing::network::{Applicant, NfStatus, Notification, ServiceRef};
use routing::path::path_of;
use routing::policy::{Phase, Reroute, Route, ServicePolicy, StagePolicy, Takes};
use routing::target::{self, Delegated, Exclusions, Has, OwnNames, Preference, Queries, Wish};
use sbi::client::Origin;
use sbi::headers::{RoutingBinding, TargetApiRoot, names};
use sbi::name::{METHOD, PATH};
use sbi::problem::{Cause, Problem};
use sbi::{Fields, Value};

use super::Setup;
use super::deadline::Deadline;
use super::message::{Admitted, Caller, Outgoing, Target};
use super::recorder::Recorder;
use super::targets::{Candidates, Targets};
use super::view::View;
use crate::config::AcceptNrfs;
use crate::discovery::{DiscoveryQuery, Found};
use crate::live::Live;
use crate::peers::{Behalf, Searcher};
use crate::protection::Peers;
use crate::security::Fetcher;
use crate::selection::{Standing, choose};

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

    /// The target at a root that no learned profile has, if an NRF lets the consumer discover a producer there: NRFs do
    /// not notify an SCP of profiles whose `allowedNfTypes` lack it.
    async fn unlearned(
        &self,
        root: TargetApiRoot,
        service: &str,
        caller: &Caller,
        (headers, deadline): (&Fields, &Deadline),
    ) -> Option<Rc<Target>> {
        let (consumer, target_type) = (caller.nf_type()?, target::nf_type_of_service(service)?);
        let query = DiscoveryQuery::new([
            ("target-nf-type", &*target_type),
            ("requester-nf-type", consumer),
            ("service-names", service),
        ]);
        let (network, began) = (self.view.network(), Instant::now());
        let behalf = Behalf::of(headers, deadline.left(began));
        let found = match self.searcher.recall(&query, &network, began) {
            Some(found) => found,
            None => self.searcher.search(&query, &network, &behalf).await.ok()?,
        };
        // A cached answer says nothing of producers that are known by now, or have left since.
        let holds = |one: &ServiceRef, asked: Instant| {
            let id = &one.producer.id;
            let left = network.left_at(id).is_some_and(|left| left >= asked);
            asked >= began || (network.producer(id).is_none() && !left)
        };
        let at = |found: &Found| {
            let mut candidates = found.candidates.iter();
            candidates
                .find(|one| one.listens_at(&root.origin) && holds(one, found.asked))
                .cloned()
        };
        let mut here = at(&found);
        // Unknown roots do not make more queries than queries without a result do.
        let again = self.live.config.discovery.empty_validity.duration();
        if here.is_none() && began.saturating_duration_since(found.asked) >= again {
            here = at(&*self.searcher.renew(&query, None, &behalf).await?);
        }
        let here = here?;
        Some(Rc::new(self.targets.at(root, Some(here), false)))
    }

    /// The delegated discovery of a request.
    fn query(&self, caller: &Caller, headers: &Fields, has: Has) -> Result<Option<Rc<Delegated>>, Problem> {
        match has.has(Has::DISCOVERY) {
            true => self
                .queries
                .of(headers, has, caller.nf_type())
                .map_err(target::unreadable),
            false => Ok(None),
        }
    }

    /// Finds candidates by the discovery parameters of a request whose named producer has failed
    /// (TS 29.500 §6.10.5.1).
    pub(super) async fn rediscover(
        &self,
        caller: &Caller,
        outgoing: &Outgoing,
        time: Duration,
    ) -> Option<Rc<Vec<ServiceRef>>> {
        let wanted = self.query(caller, &outgoing.headers, outgoing.has).ok()??;
        let (query, network) = (&wanted.query, self.view.network());
        let behalf = Behalf::of(&outgoing.headers, Some(time));
        let found = match self.searcher.recall(query, &network, Instant::now()) {
            Some(found) => Ok(found),
            None => self.searcher.search(query, &network, &behalf).await,
        };
        let service = outgoing.address.service();
        let mut candidates = self.candidates(&found.ok()?, service);
        if let Some(since) = candidates.outdated
            && let Some(renewed) = self.searcher.renew(query, Some(since), &behalf).await
        {
            candidates = self.candidates(&renewed, service);
        }
        Some(of_version(
            candidates.services,
            target::version_of(outgoing.address.path()),
        ))
    }

    /// The candidates that a new answer to a recalled discovery names: those of the cached one were of no use.
    pub(super) async fn renewed(
        &self,
        recalled: &Delegated,
        outgoing: &Outgoing,
        time: Duration,
    ) -> Option<Rc<Vec<ServiceRef>>> {
        let behalf = Behalf::of(&outgoing.headers, Some(time));
        let found = self.searcher.renew(&recalled.query, None, &behalf).await?;
        let candidates = self.candidates(&found, outgoing.address.service());
        Some(of_version(
            candidates.services,
            target::version_of(outgoing.address.path()),
        ))
    }

    /// The candidates of an answer for a service.
    fn candidates(&self, found: &Arc<Found>, service: &str) -> Candidates {
        let once = self.live.config.discovery.enforce_req_specific_svc_discovery;
        self.targets.candidates(found, service, once)
    }

    /// Plans a request for a service of NRFs: the targets are the NRFs of the set for the network of the discovery.
    fn ask_for_nrfs(&self, plan: &mut Plan, query: Option<&DiscoveryQuery>, notes: &impl Recorder) {
        plan.discovered = true;
        plan.complete = true;
        let roots = self.searcher.nrfs_for(query);
        let target = |root| Rc::new(self.targets.at(root, None, false));
        plan.further = roots.into_iter().map(target).collect();
        notes.note(STEP, || {
            format!(
                "The request is for an NRF; the settings name {}.",
                plan.further.len()
            )
        });
    }

    /// Completes a plan by a delegated discovery (Model D).
    async fn discover(
        &self,
        plan: &mut Plan,
        wanted: &Rc<Delegated>,
        binding: Option<&RoutingBinding>,
        service: &str,
        (headers, deadline): (&Fields, &Deadline),
        notes: &impl Recorder,
    ) -> Result<(), Problem> {
        plan.discovered = true;
        plan.complete = true;
        let network = self.view.network();
        // A binding to known producers needs no NRF.
        if let Some(binding) = binding
            && !target::bound(binding, service, plan.callback, &network).is_empty()
        {
            return Ok(());
        }
        let bound = binding.map(|binding| {
            let query = &wanted.query;
            let set = binding.nf_set().map(|set| ("target-nf-set-id", set));
            let instance = || binding.nf_instance().map(|id| ("target-nf-instance-id", id));
            match set.or_else(instance) {
                Some((name, value)) => Rc::new(Delegated::new(query.with(name, Some(value)))),
                None => wanted.clone(),
            }
        });
        let Delegated {
            query, preference, ..
        } = &**bound.as_ref().unwrap_or(wanted);
        plan.preference = preference.clone();
        let began = Instant::now();
        let behalf = || Behalf::of(headers, deadline.left(began));
        let mut found = match self.searcher.recall(query, &network, began) {
            Some(found) => found,
            None => {
                let found = self.searcher.search(query, &network, &behalf()).await;
                let after = Instant::now();
                plan.waited = after.saturating_duration_since(began);
                found.map_err(|failure| match deadline.is_over(after) {
                    true => Problem::new(Cause::TimedOutRequest).detail("the NRF did not answer in time"),
                    false => failure.problem(),
                })?
            }
        };
        let of_service = match plan.callback {
            true => "",
            false => service,
        };
        let mut found_now = self.candidates(&found, of_service);
        // An answer that holds no longer counts as none (its producers have left, changed, or are suspended).
        if let Some(since) = found_now.outdated
            && found.asked < began
            && let Some(renewed) = Box::pin(self.searcher.renew(query, Some(since), &behalf())).await
        {
            found_now = self.candidates(&renewed, of_service);
            found = renewed;
            plan.waited = began.elapsed();
        }
        if found.asked < began {
            plan.recalled = Some(bound.as_ref().unwrap_or(wanted).clone());
        }
        let Candidates {
            services: found_now, ..
        } = found_now;
        let kind = match plan.callback {
            true => query.get("notification-type"),
            false => None,
        };
        if let Some(kind) = kind {
            plan.further = self.notified(&found_now, &kind, query);
            notes.note(STEP, || {
                format!(
                    "{} functions have a default subscription to notifications of {kind}.",
                    plan.further.len()
                )
            });
            return Ok(());
        }
        plan.others = of_version(found_now, plan.version);
        notes.note(STEP, || {
            format!(
                "The discovery ({}) found {} service instances, {} of them of {service} now.",
                self.live.config.discovery.order.describe(),
                found.candidates.len(),
                plan.others.len()
            )
        });
        Ok(())
    }

    /// Targets of the default subscriptions to notifications of this kind of the discovered functions, the nearest first
    /// (TS 29.500 §6.10.3.3).
    fn notified(&self, found: &[ServiceRef], kind: &str, query: &DiscoveryQuery) -> Rc<[Rc<Target>]> {
        let (n1, n2) = (query.get("n1-msg-class"), query.get("n2-info-class"));
        let fits = |one: &&Notification| {
            let is = |own: &Option<Arc<str>>, wanted: &Option<Cow<'_, str>>| {
                wanted.is_none() || own.is_none() || own.as_deref() == wanted.as_deref()
            };
            *one.kind == *kind && is(&one.n1_message_class, &n1) && is(&one.n2_information_class, &n2)
        };
        let mut places: Vec<(u8, u8, u64, Rc<Target>)> = Vec::new();
        for one in found {
            let Some(notification) = one.producer.notifications.iter().find(fits) else {
                continue;
            };
            let Some(target) = self.at_uri(&notification.uri) else {
                continue;
            };
            let distance = self.live.distances.of(one.producer.locality.as_deref());
            places.push((one.preference(), distance, rand::random(), Rc::new(target)));
        }
        places.sort_by_key(|(preference, distance, drawn, _)| (*preference, *distance, *drawn));
        places.into_iter().map(|(.., target)| target).collect()
    }

    /// The target at a URI that a profile names.
    fn at_uri(&self, uri: &str) -> Option<Target> {
        let uri: http::Uri = uri.parse().ok()?;
        let root = TargetApiRoot {
            origin: Origin::of_uri(&uri).ok()?,
            prefix: String::new(),
        };
        let path = uri.path_and_query()?.as_str();
        let path = target::normal(path).ok()?.unwrap_or_else(|| path.to_owned());
        let mut target = self.targets.at(root, None, false);
        target.path = Some(path.into());
        Some(target)
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

    /// The best of the candidates of this round; `None` when none is left.
    pub(super) fn select(&self, plan: &Plan, round: &Round<'_>) -> Option<ServiceRef> {
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
    pub(super) fn admits(&self, plan: &Plan, one: &ServiceRef, round: &Round<'_>) -> bool {
        plan.callback || one.producer.admits(one.service(), || round.applicant())
    }

    /// Describes whether a candidate may be selected in this round.
    pub(super) fn standing_in_words(&self, plan: &Plan, one: &ServiceRef, round: &Round<'_>) -> &'static str {
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
    pub(super) fn passed_over(
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
