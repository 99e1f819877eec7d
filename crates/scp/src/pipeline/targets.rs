//! Cache of targets that requests name or discoveries find, resolved once per snapshot of the network.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bounded::{Cache, Limits};
use routing::network::{Network, NfStatus, ServiceRef};
use routing::policy::Places;
use routing::target::Place;
use sbi::client::Origin;
use sbi::headers::TargetApiRoot;
use sbi::problem::{Cause, Problem};
use smallvec::SmallVec;

use super::Setup;
use super::message::Target;
use super::view::View;
use crate::discovery::{Found, Vouched};
use crate::live::Live;
use crate::protection::{Hop, Peers};

/// API roots that a worker caches at most; consumers can name any number.
const MOST_KNOWN: usize = 16_384;

/// Services with their own target at one API root at most; the names come from consumers.
const SERVICES: usize = 64;
/// Memory of a target beside its texts, in bytes.
const TARGET: usize = 1_024;

/// Resolves targets.
pub(super) struct Targets {
    live: Arc<Live>,
    view: Rc<View>,
    producers: Rc<Peers>,
    vouched: Arc<Vouched>,
    known: RefCell<Known>,
    /// Bounds of the cached API roots and discovery answers.
    memory: Memory,
}

/// Bounds of the caches, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    roots: usize,
    answers: usize,
}

/// Endpoint of a service instance for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Location {
    /// The position of the endpoint in the profile.
    pub(super) endpoint: usize,
    /// Whether the request is a callback, whose path is not behind the prefix of the service.
    pub(super) callback: bool,
}

/// Targets as of one snapshot of the network.
struct Known {
    network: Option<Arc<Network>>,
    /// By the bytes of `3gpp-Sbi-Target-apiRoot`; per service, as several may share an endpoint.
    roots: Cache<Box<[u8]>, ByService>,
    /// As `roots` for callbacks, which have other allowed destinations.
    callbacks: Cache<Box<[u8]>, ByService>,
    /// Targets of selected service instances, by producer, position of the service and endpoint. The key of a producer
    /// is its address in memory; the target holds the producer, so the address is not reused.
    places: Cache<(usize, usize, Location), Rc<Target>>,
    /// Discovery answers with their candidates in this snapshot, by the address of the answer.
    current: Cache<usize, (Arc<Found>, OfServices)>,
}

/// The targets at an API root, by the service that a request is for.
type ByService = Vec<(Box<str>, Rc<Target>)>;
/// The candidates of an answer, by the service that a request is for: one question may be about several.
type OfServices = SmallVec<[(Box<str>, Candidates); 1]>;

/// The candidates of a discovery answer for a service, as of a snapshot of the network.
#[derive(Clone)]
pub(super) struct Candidates {
    pub(super) services: Rc<Vec<ServiceRef>>,
    /// Since when the answer does not hold, if it is to be got again: a producer in it has changed, or none can take new
    /// requests.
    pub(super) outdated: Option<Instant>,
}

impl Known {
    fn new(memory: Memory) -> Self {
        let limits = |bytes| Limits {
            entries: MOST_KNOWN,
            bytes,
        };
        Self {
            network: None,
            roots: Cache::new(limits(memory.roots / 2)),
            callbacks: Cache::new(limits(memory.roots / 2)),
            places: Cache::new(Limits::entries(MOST_KNOWN)),
            current: Cache::new(limits(memory.answers)),
        }
    }

    /// Drops the targets of another snapshot.
    fn follow(&mut self, network: &Arc<Network>, memory: Memory) {
        if !self
            .network
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, network))
        {
            *self = Self {
                network: Some(network.clone()),
                ..Self::new(memory)
            };
        }
    }

    fn of(&mut self, callback: bool) -> &mut Cache<Box<[u8]>, ByService> {
        match callback {
            true => &mut self.callbacks,
            false => &mut self.roots,
        }
    }
}

impl Targets {
    /// `memory`: bytes that API roots and their targets may take.
    pub(super) fn new(setup: &Setup<'_>, producers: Rc<Peers>, memory: usize) -> Self {
        let config = &setup.live.config;
        let memory = Memory {
            roots: memory,
            answers: config.discovery.limits_of_worker(config.workers).bytes,
        };
        Self {
            live: setup.live.clone(),
            view: setup.view.clone(),
            producers,
            vouched: setup.shared.vouched.clone(),
            known: RefCell::new(Known::new(memory)),
            memory,
        }
    }

    /// Number of cached targets and answers.
    pub(super) fn remembered_count(&self) -> usize {
        let known = self.known.borrow();
        known.roots.len() + known.callbacks.len() + known.places.len() + known.current.len()
    }

    /// Memory of the cached API roots, in bytes.
    pub(super) fn remembered_bytes(&self) -> usize {
        let known = self.known.borrow();
        known.roots.bytes() + known.callbacks.bytes()
    }

    /// Returns the cached target of this key, if it was resolved for this snapshot before.
    pub(super) fn remembered(&self, key: &[u8], service: &str, callback: bool) -> Option<Rc<Target>> {
        let mut known = self.known.borrow_mut();
        if !self.view.is_current(known.network.as_ref()?) {
            return None;
        }
        let targets = known.of(callback).get(key)?;
        let found = targets.iter().find(|(name, _)| **name == *service);
        found.map(|(_, target)| target.clone())
    }

    /// Resolves the target at an API root. `key` is the key of the cache, if it may be cached.
    pub(super) fn resolve(
        &self,
        key: Option<&[u8]>,
        root: TargetApiRoot,
        service: &str,
        callback: bool,
    ) -> Result<Rc<Target>, Problem> {
        let network = self.view.network();
        let found = network.at(&root.origin, service).cloned();
        let place = match found {
            Some(_) => Some(Place::Known),
            None => self.place_of(&root.origin, callback, &network),
        };
        let Some(place) = place else {
            // One answer for all unknown destinations: it discloses nothing about them.
            let problem = Problem::new(Cause::TargetNfNotReachable);
            return Err(problem.detail(format!("no registered producer is at {root}")));
        };
        let mut known = self.known.borrow_mut();
        known.follow(&network, self.memory);
        let target = Rc::new(self.at(root, found, place == Place::Unknown));
        let Some(key) = key else { return Ok(target) };
        let named = known.of(callback);
        let mut targets = named.remove(key).unwrap_or_default();
        if targets.len() < SERVICES {
            targets.push((service.into(), target.clone()));
        }
        let texts: usize = targets
            .iter()
            .map(|(service, target)| TARGET + service.len() + 2 * target.root.prefix.len())
            .sum();
        named.insert_sized(key.into(), targets, key.len() + texts);
        Ok(target)
    }

    /// An endpoint of a chosen service instance.
    pub(super) fn place(&self, service: &ServiceRef, location: Location) -> Option<Rc<Target>> {
        let network = self.view.network();
        let key = (
            Arc::as_ptr(&service.producer) as usize,
            service.position(),
            location,
        );
        let mut known = self.known.borrow_mut();
        known.follow(&network, self.memory);
        if let Some(target) = known.places.get(&key) {
            return Some(target.clone());
        }
        let endpoint = service.service().endpoints.get(location.endpoint)?;
        let scheme = match endpoint.scheme {
            routing::network::Scheme::Http => sbi::client::Scheme::Http,
            routing::network::Scheme::Https => sbi::client::Scheme::Https,
        };
        let root = TargetApiRoot {
            origin: Origin::new(scheme, &endpoint.authority).ok()?,
            // Callbacks are not under the prefix of the service.
            prefix: match location.callback {
                true => String::new(),
                false => endpoint.prefix.to_string(),
            },
        };
        let target = Rc::new(self.at(root, Some(service.clone()), false));
        // The answer is for one request only, so its targets are not cached.
        let once = self.live.config.discovery.enforce_req_specific_svc_discovery;
        let is_learned = || {
            let learned = network.producer(&service.producer.id);
            learned.is_some_and(|learned| Arc::ptr_eq(learned, &service.producer))
        };
        if !once || is_learned() {
            known.places.insert(key, target.clone());
        }
        Some(target)
    }

    /// The first endpoint of a service instance that is not ejected; the first where all are.
    pub(super) fn first_endpoint(&self, service: &ServiceRef) -> usize {
        let endpoints = &service.service().endpoints;
        if endpoints.len() == 1 {
            return 0;
        }
        let now = Instant::now();
        let usable = endpoints
            .iter()
            .position(|one| !self.condition(&one.authority, now).0);
        usable.unwrap_or(0)
    }

    /// Whether an endpoint is ejected, and whether it has sent `Retry-After`.
    pub(super) fn condition(&self, authority: &str, now: Instant) -> (bool, bool) {
        if !self.producers.any_unwell() {
            return (false, false);
        }
        let peer = self.producers.known(authority);
        peer.map_or((false, false), |peer| {
            (
                self.producers.is_ejected(&peer, now),
                self.producers.rests(&peer, now),
            )
        })
    }

    /// Classifies a destination without a known producer; `None` if the SCP does not send there.
    pub(super) fn place_of(&self, origin: &Origin, callback: bool, network: &Network) -> Option<Place> {
        let place = self.live.bounds.place(origin, callback, network);
        match self.vouched.has(origin, Instant::now()) {
            true => Some(Place::Known),
            false => place,
        }
    }

    /// Builds a target at an API root without caching it.
    pub(super) fn at(&self, root: TargetApiRoot, service: Option<ServiceRef>, unknown: bool) -> Target {
        let locality = service.as_ref().and_then(|one| one.producer.locality.as_deref());
        let hops = match self.live.distances.of(locality) {
            Places::ELSEWHERE => locality.and_then(|locality| self.live.next_hops.get(locality)),
            _ => None,
        };
        let now = Instant::now();
        let hop = |root: &TargetApiRoot| Hop {
            root: root.clone(),
            peer: self.producers.at(&root.origin, None, now),
        };
        let hops = hops.map(|roots| roots.iter().map(hop).collect());
        let instance = service.as_ref().map(|one| &*one.producer.id);
        Target {
            peer: self.producers.at(&root.origin, instance, now),
            root,
            service,
            unknown,
            path: None,
            hops,
            named: OnceCell::new(),
        }
    }

    /// The candidates for `service` in the answer of a discovery, with their present profiles: these may have changed
    /// during the query. An answer for one request alone (`once`) is not cached. An empty `service`, as for a callback,
    /// matches any service.
    pub(super) fn candidates(&self, found: &Arc<Found>, service: &str, once: bool) -> Candidates {
        let network = self.view.network();
        if once {
            self.vouched.add(found);
            return present(found, service, &network);
        }
        let mut known = self.known.borrow_mut();
        known.follow(&network, self.memory);
        let key = Arc::as_ptr(found) as usize;
        if let Some((_, of_services)) = known.current.get(&key) {
            if let Some((_, candidates)) = of_services.iter().find(|(name, _)| **name == *service) {
                return candidates.clone();
            }
        } else {
            self.vouched.add(found);
            let answer = (found.clone(), SmallVec::new());
            known.current.insert_sized(key, answer, found.bytes);
        }
        let candidates = present(found, service, &network);
        // Consumers choose the service name: a service without candidates is not cached, so that invented names take no
        // memory.
        if !candidates.services.is_empty()
            && let Some((_, of_services)) = known.current.peek_mut(&key)
        {
            of_services.push((service.into(), candidates.clone()));
        }
        candidates
    }
}

/// The candidates of an answer for a service in this snapshot.
fn present(found: &Found, service: &str, network: &Network) -> Candidates {
    let mut services = Vec::new();
    let (mut outdated, mut left) = (None, None);
    for one in &found.candidates {
        let id = &one.producer.id;
        // One that has left is missing below; it may come back, and the others serve meanwhile.
        left = left.max(network.left_at(id));
        let change = network.changed_at(id);
        outdated = outdated.max(change.filter(|change| *change >= found.asked));
        if service.is_empty() || &*one.service().name == service {
            services.extend(current(one, found, network));
        }
    }
    if !services
        .iter()
        .any(|one| one.service().status == NfStatus::Registered)
    {
        outdated = outdated.max(left).max(Some(found.asked));
    }
    Candidates {
        services: Rc::new(services),
        outdated,
    }
}

/// The present profile of a candidate; `None` if it has deregistered since the answer, or no longer has the service.
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
