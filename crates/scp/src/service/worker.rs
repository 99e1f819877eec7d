//! One worker's SCP: what it knows, and the way of a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use http::{HeaderValue, Method};
use sbi::client::{Client, Origin};
use sbi::dns::Dns;
use sbi::headers::{SbiHeader as _, TargetApiRoot, names};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use telemetry::trace;
use tokio::sync::mpsc;

use super::admission::Admitted;
use super::authorize::Identity;
use super::front::{Clients, Parts};
use super::reverse;
use super::route::Known;
use crate::config::AcceptNrfs;
use crate::discovery::Vouched;
use crate::events::{Metrics, ServiceMetrics};
use crate::feed::Tap;
use crate::live::Live;
use crate::network::Network;
use crate::peers::{Callbacks, Heard, Searcher};
use crate::protection::{Consumers, Federation, Load, Own, Peers};
use crate::target::{self, Has, Queries};

/// Services a worker keeps counters of; further ones share those of `other`.
const SERVICES: usize = 512;

/// One worker's SCP: its view of the network, its clients, what it knows of producers and consumers.
pub(super) struct Worker {
    pub(super) live: Arc<Live>,
    network: RefCell<arc_swap::Cache<Arc<ArcSwap<Network>>, Arc<Network>>>,
    pub(super) client: Client,
    /// For places that nobody knows: it connects to fewer addresses, and their number costs the others nothing.
    pub(super) unknown_client: Client,
    pub(super) vouched: Arc<Vouched>,
    pub(super) searcher: Searcher,
    pub(super) peers: Peers,
    pub(super) consumers: Consumers,
    pub(super) load: Load,
    /// What answers tell of it.
    pub(super) told: Own,
    pub(super) changes: mpsc::Sender<Heard>,
    pub(super) callbacks: Arc<Callbacks>,
    pub(super) names: Option<Dns>,
    pub(super) federation: Arc<Federation>,
    pub(super) metrics: Metrics,
    pub(super) own: Arc<[String]>,
    services: RefCell<AHashMap<Box<str>, Rc<ServiceMetrics>>>,
    /// Targets by what requests call them, as of a snapshot of the network.
    pub(super) known: RefCell<Known>,
    pub(super) queries: Queries,
    /// `2.0 SCP-fqdn`.
    pub(super) via: HeaderValue,
    /// `SCP-fqdn`.
    pub(super) server: HeaderValue,
    pub(super) name: String,
    /// API root of this SCP, without a prefix.
    pub(super) root: String,
    random: Cell<u64>,
    /// Of where requests come from.
    pub(super) hasher: ahash::RandomState,
    pub(super) tap: Option<Rc<Tap>>,
    pub(super) identity: Identity,
}

impl Worker {
    pub(super) fn new(
        live: Arc<Live>,
        parts: &Parts,
        index: usize,
        clients: Clients,
        tap: Option<Rc<Tap>>,
    ) -> Self {
        let Clients {
            client,
            unknown_client,
        } = clients;
        let config = &live.config;
        let (protection, metrics) = (&config.protection, &parts.metrics);
        let name = format!("SCP-{}", config.fqdn);
        // An FQDN is made of characters that headers may have; the configuration was checked.
        let header = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("SCP"));
        let identity = Identity::new(&live, &client, &parts.registry);
        let tokens = identity.tokens.clone();
        Self {
            network: RefCell::new(arc_swap::Cache::new(parts.network.clone())),
            searcher: Searcher::new(config, client.clone(), tokens, metrics.clone()),
            peers: Peers::new(
                protection,
                metrics,
                live.rates.clone(),
                parts.board.clone(),
                index,
                config.client.max_origins as usize,
            ),
            consumers: Consumers::new(protection, metrics, live.rates.clone(), index),
            load: Load::new(protection),
            told: Own::new(protection, &config.fqdn),
            changes: parts.changes.clone(),
            callbacks: parts.callbacks.clone(),
            names: parts.names.clone(),
            federation: parts.federation.clone(),
            metrics: metrics.clone(),
            own: parts.own.clone(),
            services: RefCell::default(),
            known: RefCell::default(),
            queries: Queries::new(config.nrf.named.accept != AcceptNrfs::Ignore),
            via: header(&format!("2.0 {name}")),
            server: header(&name),
            name,
            root: config
                .root()
                .parse::<Origin>()
                .map_or_else(|_| config.root(), |root| root.to_string()),
            random: Cell::new(rand::random::<u64>() | 1),
            hasher: ahash::RandomState::new(),
            tap,
            identity,
            client,
            unknown_client,
            vouched: parts.vouched.clone(),
            live,
        }
    }

    pub(super) fn network(&self) -> Arc<Network> {
        self.network.borrow_mut().load().clone()
    }

    /// Whether `network` is still the current snapshot.
    pub(super) fn is_current(&self, network: &Arc<Network>) -> bool {
        Arc::ptr_eq(self.network.borrow_mut().load(), network)
    }

    /// Any number; cheap, and good enough to spread load (xorshift64*).
    pub(super) fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn service_metrics(&self, service: &str) -> Rc<ServiceMetrics> {
        let mut services = self.services.borrow_mut();
        if let Some(known) = services.get(service) {
            return known.clone();
        }
        let name = match services.len() < SERVICES {
            true => service,
            false => "other",
        };
        let made = Rc::new(ServiceMetrics::new(&self.metrics, name));
        services.entry(name.into()).or_insert(made).clone()
    }

    /// The way of a request: is it for the SCP itself, may it come in, is it changed by a rule, where does it
    /// go, and what comes back.
    pub(super) async fn answer(self: Rc<Self>, mut request: Request) -> Response {
        // The one shows headers to who could not read them, the other asks for a tunnel (RFC 9110 §9.3.6, §9.3.8).
        if matches!(*request.method(), Method::TRACE | Method::CONNECT) {
            return self.refuse("method", Problem::new(Cause::NotImplemented));
        }
        if self.live.reverse_proxy {
            reverse::undo(&mut request, &self.own, &self.live.policies);
        }
        let unsure = match self.straighten(&mut request) {
            Ok(unsure) => unsure,
            Err(problem) => return self.refuse("target", problem),
        };
        if let Some(response) = self.own_resource(&request) {
            return response;
        }
        let copies = self.copies(&request);
        let has = Has::among(request.headers());
        let response = match self.admit(request, has, copies.clone()) {
            Ok(admitted) => self.serve(Admitted { unsure, ..admitted }).await,
            Err(refused) => *refused,
        };
        if let Some(copies) = &copies {
            copies.answered(&response);
        }
        response
    }

    /// Gives a request the one path by which it is judged, routed and sent. Answers whether any segment of it may
    /// be the API name.
    fn straighten(&self, request: &mut Request) -> Result<bool, Problem> {
        let uri = request.uri();
        let Some(path) = uri.path_and_query() else {
            return Ok(false);
        };
        let normal = target::normal(path)?;
        let network = self.network();
        let told = request.headers().get(names::TARGET_API_ROOT);
        let prefixed = told.is_some_and(|value| value.as_bytes().iter().filter(|b| **b == b'/').count() > 2);
        let placed = match prefixed || network.has_prefixes() {
            true => {
                let root = match told {
                    // One that cannot be read is refused where the target is looked for.
                    Some(told) => told
                        .to_str()
                        .ok()
                        .and_then(|text| TargetApiRoot::parse(text).ok()),
                    None => target::of_authority(uri)
                        .filter(|root| !target::is_own(&self.own, root.origin.authority())),
                };
                let path = normal.as_ref().unwrap_or(path);
                root.map(|root| target::placed(&root, path, &network))
                    .transpose()?
                    .flatten()
            }
            false => None,
        };
        let unsure = placed.as_ref().is_some_and(|placed| placed.unsure);
        if let Some(path) = placed.as_ref().map(|placed| placed.path.clone()).or(normal) {
            let mut parts = uri.clone().into_parts();
            parts.path_and_query = Some(path);
            request.head.uri = http::Uri::from_parts(parts)
                .map_err(|_| Problem::new(Cause::InvalidMsgFormat).detail("the path cannot be read"))?;
        }
        if let Some(root) = placed.and_then(|placed| placed.root.to_value()) {
            request.head.headers.insert(names::TARGET_API_ROOT, root);
        }
        let is_known = |name: &str| !network.of_service(name).is_empty() || self.live.services.contains(name);
        target::check_name(request.uri().path(), is_known)?;
        Ok(unsure)
    }

    /// Relays what was let in.
    async fn serve(&self, admitted: Admitted) -> Response {
        let _under_way = UnderWay(&self.load);
        let parent = match admitted.has.has(Has::TRACEPARENT) {
            true => admitted.request.headers().get(trace::TRACEPARENT),
            false => None,
        };
        let span = trace::begin("scp", "relay", parent.and_then(|value| value.to_str().ok()));
        let metrics = admitted.metrics.clone();
        let mut response = self.relay(admitted, span.as_ref()).await;
        metrics.answered(response.status());
        self.told.add_to(response.headers_mut());
        if let Some(mut span) = span {
            span.status(response.status().as_u16());
        }
        response
    }

    /// Counts a request that this SCP refuses or cannot serve, and answers it.
    pub(super) fn refuse(&self, reason: &str, problem: Problem) -> Response {
        self.refuse_for(reason, problem, None)
    }

    /// As [`Worker::refuse`]; another try may do better after `wait` seconds.
    pub(super) fn refuse_for(&self, reason: &str, problem: Problem, wait: Option<u64>) -> Response {
        self.metrics.refused.count(reason);
        let profiles = &self.live.config.protection.error_profiles;
        self.signed(crate::protection::respond(profiles, reason, problem, wait))
    }

    /// An answer of this SCP's own names it (TS 29.500 §6.10.8.1).
    fn signed(&self, mut response: Response) -> Response {
        response
            .headers_mut()
            .insert(http::header::SERVER, self.server.clone());
        response
    }

    pub(super) fn mediated(&self, point: usize) {
        self.metrics.mediated[point].inc();
    }
}

/// A request that was let in, until it is answered or its consumer has gone.
struct UnderWay<'a>(&'a Load);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
