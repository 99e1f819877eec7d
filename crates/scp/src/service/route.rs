//! From what a request wishes to the producers that may serve it.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use http::{HeaderMap, HeaderValue};
use sbi::client::Origin;
use sbi::headers::{ProducerId, RoutingBinding, SbiHeader, TargetApiRoot, names};
use sbi::problem::{Cause, Problem};
use smallvec::SmallVec;

use super::admission::Admitted;
use super::authorize::Caller;
use super::worker::Worker;
use crate::discovery::Found;
use crate::network::{Network, ServiceRef};
use crate::protection::{Peer, Way};
use crate::routing::{Phase, Places, Route, ServicePolicy, StagePolicy, Takes};
use crate::selection::{Standing, choose};
use crate::target::{self, Has, Place, Wish};

/// Targets that a worker has resolved, as of one snapshot of the network.
#[derive(Default)]
pub(super) struct Known {
    network: Option<Arc<Network>>,
    /// By the bytes of `3gpp-Sbi-Target-apiRoot`; per service, as several may listen at one place.
    roots: AHashMap<Box<[u8]>, ByService>,
    /// As `roots`, of callbacks: they may go where other requests may not.
    callbacks: AHashMap<Box<[u8]>, ByService>,
    /// The places of chosen service instances, by producer and position of the service. A producer is told by
    /// where it is in memory, which the target keeps from being used again.
    places: AHashMap<(usize, usize), Rc<Target>>,
    /// Answers to discoveries as this snapshot knows those whom they name, by where the answer is in memory.
    current: AHashMap<usize, (Rc<Found>, OfServices)>,
}

/// The candidates of an answer, by the service that a request is for: one question may be about several.
type OfServices = SmallVec<[(Box<str>, Rc<Vec<ServiceRef>>); 1]>;

impl Known {
    /// Makes it that of this snapshot.
    fn follow(&mut self, network: &Arc<Network>) {
        let is_current = self
            .network
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, network));
        let sizes = [
            self.roots.len(),
            self.callbacks.len(),
            self.places.len(),
            self.current.len(),
        ];
        let is_full = sizes.into_iter().any(|size| size >= MOST_KNOWN);
        if is_current && !is_full {
            return;
        }
        *self = Self {
            network: Some(network.clone()),
            ..Self::default()
        };
    }
}

impl Known {
    fn of(&self, callback: bool) -> &AHashMap<Box<[u8]>, ByService> {
        match callback {
            true => &self.callbacks,
            false => &self.roots,
        }
    }
}

/// The targets at an API root, by the service that a request is for.
type ByService = Vec<(Box<str>, Rc<Target>)>;

/// The largest distance, with that of a producer that is not the preferred one.
const FARTHEST: u8 = Places::ELSEWHERE + 1;

/// API roots that a worker remembers; a stranger can name any number.
const MOST_KNOWN: usize = 16_384;

/// A place to send a request to.
pub(super) struct Target {
    pub(super) root: TargetApiRoot,
    /// The service instance there, if its profile is known.
    pub(super) service: Option<ServiceRef>,
    pub(super) peer: Rc<Peer>,
    /// Whether nobody that is known is there, and settings let the request through all the same.
    pub(super) unknown: bool,
    /// SCPs of its region, when it is reached through them.
    pub(super) hops: Option<Arc<[TargetApiRoot]>>,
    /// How consumers are told of it, made when one is.
    told: OnceCell<Told>,
}

/// The headers that tell a consumer who has answered.
pub(super) struct Told {
    pub(super) root: Option<HeaderValue>,
    pub(super) producer: Option<HeaderValue>,
}

impl Target {
    pub(super) fn told(&self) -> &Told {
        self.told.get_or_init(|| {
            let id = |service: &ServiceRef| ProducerId {
                nf_instance: service.producer.id.to_string(),
                service_instance: Some(service.service().instance.to_string()),
                nf_set: service.producer.sets.first().map(ToString::to_string),
                service_set: service.service().sets.first().map(ToString::to_string),
            };
            Told {
                root: self.root.to_value(),
                producer: self.service.as_ref().and_then(|service| id(service).to_value()),
            }
        })
    }
}

impl Target {
    /// What protection needs to know of it.
    pub(super) fn way<'a>(&'a self, before: usize, api: &'a str) -> Way<'a> {
        Way {
            peer: &self.peer,
            service: self.service.as_ref(),
            api,
            hop: self.hop(before).map(|hop| hop.origin.host()),
        }
    }

    /// The SCP that an attempt goes through, when so many have been made before.
    pub(super) fn hop(&self, before: usize) -> Option<&TargetApiRoot> {
        let hops = self.hops.as_ref()?;
        hops.get(before % hops.len().max(1))
    }
}

/// Who may serve a request.
pub(super) struct Plan {
    /// Who is tried first, if the request names somebody.
    pub(super) first: Option<Rc<Target>>,
    /// Who else may serve; filled when it is needed.
    pub(super) others: Rc<Vec<ServiceRef>>,
    /// Whether `others` is complete; if not, it is looked up when the first fails.
    pub(super) complete: bool,
    /// Whether the producer was chosen here (Model D): the consumer is told who it is.
    pub(super) discovered: bool,
    /// The instance that is preferred to the others.
    preferred: Option<String>,
    /// The farthest that may be chosen.
    pub(super) reach: u8,
    /// Whether the request begins a conversation.
    phase: Phase,
}

impl Worker {
    /// Where a request may go.
    pub(super) async fn plan(
        &self,
        admitted: &Admitted,
        policy: &ServicePolicy,
    ) -> Result<(Plan, StagePolicy), Problem> {
        let request = &admitted.request;
        let headers = request.headers();
        let path = request.uri().path();
        let service = target::service_of(path);
        // The hot way of Model C: a target that is known by its header, and nothing else to be read.
        let has = admitted.has;
        let root = match has.has(Has::TARGET_API_ROOT) {
            true => headers.get(names::TARGET_API_ROOT).map(HeaderValue::as_bytes),
            false => None,
        };
        let binding = match has.has(Has::ROUTING_BINDING) {
            true => target::header::<RoutingBinding>(headers)?,
            false => None,
        };
        let callback = has.has(Has::CALLBACK);
        let quick = root.and_then(|key| self.remembered(key, service, callback));
        let wish = match &quick {
            Some(_) => None,
            None => Some(target::wish(request, has, &self.own, &self.queries)?),
        };
        let discovers = matches!(wish, Some(Wish::Discover(_)));
        let phase = Phase::of(request.method(), path, binding.is_some(), discovers);
        let stage = policy.stage(phase);
        let mut plan = Plan {
            first: quick,
            others: Rc::default(),
            complete: false,
            discovered: false,
            preferred: None,
            reach: policy.scope.reach(),
            phase,
        };
        match wish {
            None => {}
            Some(Wish::Root(named)) => plan.first = Some(self.resolve(root, named, service, callback)?),
            Some(Wish::Discover(query)) => {
                plan.discovered = true;
                plan.complete = true;
                plan.others = self
                    .discovered(&query, binding.as_ref(), service, &mut plan.preferred)
                    .await?;
            }
            Some(Wish::Bound) => plan.discovered = true,
        }
        if let Some(binding) = &binding {
            let bound = target::bound(binding, service, &self.network());
            plan.preferred = plan.preferred.or_else(|| target::preferred(binding));
            if !bound.is_empty() {
                plan.others = Rc::new(bound);
                plan.complete = true;
            }
        }
        if stage.route == Route::LoadBalance
            && let Some(first) = &plan.first
            && let Some(named) = &first.service
        {
            // Any member of its set may serve: the named one is one of them.
            if !plan.complete {
                plan.others = Rc::new(self.network().alternates(named));
                plan.complete = true;
            }
            Rc::make_mut(&mut plan.others).push(named.clone());
            plan.first = None;
        }
        if plan.first.is_none() && plan.others.is_empty() {
            let problem = Problem::new(Cause::NfDiscoveryFailure);
            return Err(problem.detail(format!("no producer of {service} was found for the request")));
        }
        Ok((plan, stage))
    }

    async fn discovered(
        &self,
        query: &crate::discovery::DiscoveryQuery,
        binding: Option<&RoutingBinding>,
        service: &str,
        preferred: &mut Option<String>,
    ) -> Result<Rc<Vec<ServiceRef>>, Problem> {
        let network = self.network();
        // A binding that the learned network can serve needs no NRF.
        if let Some(binding) = binding
            && !target::bound(binding, service, &network).is_empty()
        {
            return Ok(Rc::default());
        }
        let bound_query;
        let query = match binding {
            None => query,
            Some(binding) => {
                let with = |query: &crate::discovery::DiscoveryQuery, name, value: Option<&str>| match value {
                    Some(value) => query.with(name, Some(value)),
                    None => query.clone(),
                };
                let set = with(query, "target-nf-set-id", binding.nf_set());
                bound_query = match binding.nf_set() {
                    Some(_) => set,
                    None => with(&set, "target-nf-instance-id", binding.nf_instance()),
                };
                &bound_query
            }
        };
        *preferred = query
            .get("preferred-target-nf-instance-id")
            .map(|id| id.to_ascii_lowercase());
        let found = self
            .searcher
            .find(query, &network)
            .await
            .map_err(crate::peers::Failure::problem)?;
        // As it is now: it may have changed while the NRF was asked.
        let network = self.network();
        let pick = || {
            let of_service = found
                .candidates
                .iter()
                .filter(|one| &*one.service().name == service);
            Rc::new(
                of_service
                    .filter_map(|one| current(one, &found, &network))
                    .collect(),
            )
        };
        if self.live.config.discovery.enforce_req_specific_svc_discovery {
            // An answer for one request alone.
            self.vouched.add(&found);
            return Ok(pick());
        }
        let key = Rc::as_ptr(&found) as usize;
        let mut known = self.known.borrow_mut();
        known.follow(&network);
        let (_, of_services) = known.current.entry(key).or_insert_with(|| {
            self.vouched.add(&found);
            (found.clone(), SmallVec::new())
        });
        if let Some((_, candidates)) = of_services.iter().find(|(name, _)| **name == *service) {
            return Ok(candidates.clone());
        }
        let candidates: Rc<Vec<ServiceRef>> = pick();
        // Paths come from consumers: a service that is not there is not remembered, so any number of them is nothing.
        if !candidates.is_empty() {
            of_services.push((service.into(), candidates.clone()));
        }
        Ok(candidates)
    }

    fn remembered(&self, key: &[u8], service: &str, callback: bool) -> Option<Rc<Target>> {
        let known = self.known.borrow();
        let network = known.network.as_ref()?;
        if !self.is_current(network) {
            return None;
        }
        let targets = known.of(callback).get(key)?;
        let found = targets.iter().find(|(name, _)| **name == *service);
        found.map(|(_, target)| target.clone())
    }

    /// The target at an API root. `key` is what the request calls it, if it may be remembered by that.
    fn resolve(
        &self,
        key: Option<&[u8]>,
        root: TargetApiRoot,
        service: &str,
        callback: bool,
    ) -> Result<Rc<Target>, Problem> {
        let network = self.network();
        let found = network.at(&root.origin, service).cloned();
        let place = match found {
            Some(_) => Some(Place::Known),
            None => self.place_of(&root.origin, callback, &network),
        };
        let Some(place) = place else {
            // The same whatever is there: a stranger does not learn more from it.
            let problem = Problem::new(Cause::TargetNfNotReachable);
            return Err(problem.detail(format!("no registered producer is at {root}")));
        };
        let mut known = self.known.borrow_mut();
        known.follow(&network);
        let target = Rc::new(Target {
            unknown: place == Place::Unknown,
            ..self.target(root, found)
        });
        let Some(key) = key else { return Ok(target) };
        let targets = match callback {
            true => &mut known.callbacks,
            false => &mut known.roots,
        };
        let targets = targets.entry(key.into()).or_default();
        if targets.len() < 64 {
            targets.push((service.into(), target.clone()));
        }
        Ok(target)
    }

    /// The place of a chosen service instance.
    pub(super) fn place(&self, service: &ServiceRef) -> Option<Rc<Target>> {
        let network = self.network();
        let key = (Arc::as_ptr(&service.producer) as usize, service.position());
        let mut known = self.known.borrow_mut();
        known.follow(&network);
        if let Some(target) = known.places.get(&key) {
            return Some(target.clone());
        }
        let endpoint = service.endpoint();
        let scheme = match endpoint.scheme {
            crate::network::Scheme::Http => sbi::client::Scheme::Http,
            crate::network::Scheme::Https => sbi::client::Scheme::Https,
        };
        let origin = Origin::new(scheme, &endpoint.authority).ok()?;
        let root = TargetApiRoot {
            origin,
            prefix: endpoint.prefix.to_string(),
        };
        let target = Rc::new(self.target(root, Some(service.clone())));
        known.places.insert(key, target.clone());
        Some(target)
    }

    /// What is known of a place where no producer is known to be; `None` where nothing is sent.
    pub(super) fn place_of(&self, origin: &Origin, callback: bool, network: &Network) -> Option<Place> {
        let place = self.live.bounds.place(origin, callback, network);
        match self.vouched.has(origin, Instant::now()) {
            true => Some(Place::Known),
            false => place,
        }
    }

    /// A target beside those that requests name.
    pub(super) fn redirected_to(
        &self,
        root: TargetApiRoot,
        service: Option<ServiceRef>,
        unknown: bool,
    ) -> Target {
        Target {
            unknown,
            ..self.target(root, service)
        }
    }

    fn target(&self, root: TargetApiRoot, service: Option<ServiceRef>) -> Target {
        let locality = service.as_ref().and_then(|one| one.producer.locality.as_deref());
        let hops = match self.live.distances.of(locality) {
            Places::ELSEWHERE => locality.and_then(|locality| self.live.next_hops.get(locality).cloned()),
            _ => None,
        };
        let instance = service.as_ref().map(|one| &*one.producer.id);
        Target {
            peer: self.peers.at(&root.origin, instance, Instant::now()),
            root,
            service,
            unknown: false,
            hops,
            told: OnceCell::new(),
        }
    }

    /// The best of the candidates that have not been tried; `None` when nobody is left.
    pub(super) fn select(
        &self,
        plan: &Plan,
        caller: &Caller,
        headers: &HeaderMap,
        tried: &[Arc<str>],
        reach: u8,
    ) -> Option<ServiceRef> {
        let now = Instant::now();
        let standing = |one: &ServiceRef| {
            let endpoint = one.endpoint();
            let admits = || one.producer.admits(one.service(), || caller.applicant(headers));
            if tried.contains(&endpoint.authority) || !admits() {
                return Standing::UNUSABLE;
            }
            let distance = self.live.distances.of(one.producer.locality.as_deref());
            let takes = self.live.config.nf_status.takes(one.service().status, plan.phase);
            if distance > reach || takes == Takes::Nothing {
                return Standing::UNUSABLE;
            }
            let peer = self.peers.known(&endpoint.authority);
            let ejected = peer.as_ref().is_some_and(|peer| self.peers.is_ejected(peer, now));
            Standing {
                usable: !ejected,
                last: takes == Takes::WhatIsLeft,
                distance: match &plan.preferred {
                    Some(id) if **id != *one.producer.id => distance + 1,
                    _ => distance,
                }
                // What the consumer prefers goes before what is near to this SCP.
                .saturating_add(one.preference().saturating_mul(FARTHEST + 1)),
                load: self.peers.told.load_of(one),
            }
        };
        let chosen = choose(&plan.others, standing, self.random())?;
        plan.others.get(chosen).cloned()
    }
}

/// A candidate that an NRF has named, as it is known now: changed, suspended, or gone since it was named.
fn current(candidate: &ServiceRef, found: &Found, network: &Network) -> Option<ServiceRef> {
    let id = &candidate.producer.id;
    let Some(known) = network.producer(id) else {
        let left = network.left_at(id).is_some_and(|left| left >= found.asked);
        return (!left).then(|| candidate.clone());
    };
    let instance = &candidate.service().instance;
    let position = known.services.iter().position(|one| one.instance == *instance)?;
    let known = ServiceRef::new(known.clone(), position)?;
    Some(known.preferred(candidate.preference().into()))
}

/// A header whose value is a comma list that this SCP appends to.
pub(super) fn has_passed(headers: &HeaderMap, name: &str) -> bool {
    headers
        .get_all(http::header::VIA)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|hop| hop.trim().split(' ').nth(1).is_some_and(|by| by == name))
}
