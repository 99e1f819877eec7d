//! One worker's share of the function, and the way of a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use http::{HeaderValue, Method, StatusCode};
use sbi::client::{Client, Origin};
use sbi::dns::Dns;
use sbi::headers::{MessagePriority, SbiHeader, names};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, Service};
use telemetry::trace;
use tokio::sync::mpsc;

use super::authorize::{Caller, Identity};
use super::copy::Copies;
use super::reverse;
use super::route::Known;
use crate::config::AcceptNrfs;
use crate::events::{Metrics, ServiceMetrics};
use crate::feed::{Running as Feed, Tap};
use crate::live::Live;
use crate::network::Network;
use crate::peers::federation::{self, RATES_PATH};
use crate::peers::{Heard, Searcher, callback_set, change_of};
use crate::protection::{Consumers, Federation, Load, Own, Peers};
use crate::target::{Has, Queries, is_own};

/// Path that tells whether the SCP is well (N050 of the NRF's features looks here).
const HEALTH_PATH: &str = "/health";
/// Services a worker keeps counters of; further ones share those of `other`.
const SERVICES: usize = 512;

/// What every worker is made of.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) network: Arc<ArcSwap<Network>>,
    pub(super) changes: mpsc::Sender<Heard>,
    pub(super) client_tls: Option<sbi::tls::ClientTls>,
    pub(super) names: Option<Dns>,
    pub(super) metrics: Metrics,
    pub(super) load: Arc<AtomicU8>,
    pub(super) own: Arc<[String]>,
    pub(super) registry: telemetry::Registry,
    pub(super) board: Arc<crate::protection::Board>,
    pub(super) federation: Arc<Federation>,
}

/// A worker's SCP as its server sees it: made anew when the settings have changed.
pub(super) struct Front {
    parts: Parts,
    index: usize,
    client: Client,
    live: RefCell<arc_swap::Cache<Arc<ArcSwap<Live>>, Arc<Live>>>,
    current: RefCell<Rc<Worker>>,
    /// This worker's part of the feed, and of which.
    tap: RefCell<Option<(Arc<Feed>, Rc<Tap>)>>,
}

impl Front {
    pub(super) fn new(parts: Parts, index: usize) -> Self {
        let live = parts.live.load_full();
        let (settings, names) = (Arc::new(live.config.client.clone()), parts.names.clone());
        let client = Client::with_names(settings, parts.client_tls.clone(), names);
        let mut tap = None;
        let mine = tap_of(&mut tap, &live, index);
        let worker = Worker::new(live, &parts, index, client.clone(), mine);
        Self {
            live: RefCell::new(arc_swap::Cache::new(parts.live.clone())),
            current: RefCell::new(Rc::new(worker)),
            parts,
            index,
            client,
            tap: RefCell::new(tap),
        }
    }

    fn current(&self) -> Rc<Worker> {
        let mut live = self.live.borrow_mut();
        let wanted = live.load();
        let mut current = self.current.borrow_mut();
        if !Arc::ptr_eq(&current.live, wanted) {
            let client = self.client.clone();
            let tap = tap_of(&mut self.tap.borrow_mut(), wanted, self.index);
            *current = Rc::new(Worker::new(wanted.clone(), &self.parts, self.index, client, tap));
        }
        current.clone()
    }

    /// Samples this worker's own CPU load, which decides about discards.
    pub(super) async fn watch_load(self: Rc<Self>) {
        let mut tick = tokio::time::interval(crate::protection::INTERVAL);
        let name = self.index.to_string();
        let (level, cache) = (
            self.parts.metrics.overload.get(&[&name]),
            self.parts.metrics.cache.get(&[&name]),
        );
        loop {
            tick.tick().await;
            let worker = self.current();
            let now = Instant::now();
            let changed = worker.load.sample(now);
            worker.told.update(&worker.load, now);
            worker.peers.told.hear(now);
            if let Some(to) = changed {
                tracing::warn!(worker = self.index, level = to, "the overload level has changed");
                level.set(to as f64);
            }
            cache.set(worker.searcher.remembered() as f64);
            if self.index == 0 {
                self.parts.load.store(worker.load.percent(), Ordering::Relaxed);
            }
        }
    }
}

/// This worker's tap of the feed there is now; `known` is the last one, which another feed replaces.
fn tap_of(known: &mut Option<(Arc<Feed>, Rc<Tap>)>, live: &Live, index: usize) -> Option<Rc<Tap>> {
    let is_same = match (&*known, &live.feed) {
        (Some((of, _)), Some(feed)) => Arc::ptr_eq(of, feed),
        _ => false,
    };
    if !is_same {
        let feed = live.feed.as_ref();
        *known = feed.and_then(|feed| Some((feed.clone(), Rc::new(feed.tap(index)?))));
    }
    known.as_ref().map(|(_, tap)| tap.clone())
}

impl Service for Front {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        self.current().answer(request).await
    }
}

/// One worker's SCP: its view of the network, its clients, what it knows of producers and consumers.
pub(super) struct Worker {
    pub(super) live: Arc<Live>,
    network: RefCell<arc_swap::Cache<Arc<ArcSwap<Network>>, Arc<Network>>>,
    pub(super) client: Client,
    pub(super) searcher: Searcher,
    pub(super) peers: Peers,
    consumers: Consumers,
    pub(super) load: Load,
    /// What answers tell of it.
    told: Own,
    changes: mpsc::Sender<Heard>,
    pub(super) names: Option<Dns>,
    federation: Arc<Federation>,
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
    pub(super) tap: Option<Rc<Tap>>,
    pub(super) identity: Identity,
}

/// A request that was let in, and what is known of it.
pub(super) struct Admitted {
    pub(super) request: Request,
    /// The headers that the request has.
    pub(super) has: Has,
    pub(super) caller: Caller,
    pub(super) priority: u8,
    pub(super) metrics: Rc<ServiceMetrics>,
    pub(super) copies: Option<Rc<Copies>>,
}

impl Worker {
    fn new(live: Arc<Live>, parts: &Parts, index: usize, client: Client, tap: Option<Rc<Tap>>) -> Self {
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
            tap,
            identity,
            client,
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

    fn service_metrics(&self, service: &str) -> Rc<ServiceMetrics> {
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
    async fn answer(self: Rc<Self>, mut request: Request) -> Response {
        if self.live.reverse_proxy {
            reverse::undo(&mut request, &self.own, &self.live.policies);
        }
        if let Some(response) = self.own_resource(&request) {
            return response;
        }
        let copies = self.copies(&request);
        let has = Has::among(request.headers());
        let response = match self.admit(request, has, copies.clone()) {
            Ok(admitted) => self.serve(admitted).await,
            Err(refused) => *refused,
        };
        if let Some(copies) = &copies {
            copies.answered(&response);
        }
        response
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

    /// Who sends it, whether it may, and how important it is.
    fn admit(
        &self,
        mut request: Request,
        has: Has,
        copies: Option<Rc<Copies>>,
    ) -> Result<Admitted, Box<Response>> {
        let now = request.received;
        let service = crate::target::service_of(request.uri().path());
        let metrics = self.service_metrics(service);
        let refuse = |reason, problem, wait| {
            let refused = self.refuse_for(reason, problem, wait);
            metrics.answered(refused.status());
            Box::new(refused)
        };
        // A signature costs more than all the rest: it is checked last, unless it says who this is.
        let first = match self.consumers.need_assertion() {
            true => Some(
                self.claims(request.headers())
                    .map_err(|problem| refuse("assertion", problem, None))?,
            ),
            false => None,
        };
        let subject = first
            .as_ref()
            .and_then(|claims| claims.as_ref().map(|claims| claims.sub.as_str()));
        let consumer = self.consumers.of(&request, subject);
        let (priority, write) = self.priority(service, request.method(), request.headers(), has);
        if write {
            let value = HeaderValue::from(u16::from(priority));
            request.head.headers.insert(names::MESSAGE_PRIORITY, value);
        }
        if !consumer.admits(now) {
            let problem = Problem::new(Cause::TooManyRequests)
                .detail("the rate that this SCP lets in from the consumer is exceeded");
            return Err(refuse("ingressRate", problem, Some(consumer.retry_after(now))));
        }
        if self.load.discards(priority) {
            let problem = Problem::new(Cause::NfCongestion).detail("discarded under overload of the SCP");
            return Err(refuse("overload", problem, Some(1)));
        }
        let claims = match first {
            Some(claims) => claims,
            None => self
                .claims(request.headers())
                .map_err(|problem| refuse("assertion", problem, None))?,
        };
        if !self.load.enter(priority) {
            let problem = Problem::new(Cause::NfCongestion).detail("too many requests are under way");
            return Err(refuse("inFlight", problem, Some(1)));
        }
        Ok(Admitted {
            caller: self.caller(consumer, claims, request.headers()),
            priority,
            metrics,
            request,
            has,
            copies,
        })
    }

    /// The priority of a request, and whether it is to be written into it.
    fn priority(&self, service: &str, method: &Method, headers: &http::HeaderMap, has: Has) -> (u8, bool) {
        let settings = &self.live.config.protection.priorities;
        let told = has
            .has(Has::MESSAGE_PRIORITY)
            .then(|| headers.get(names::MESSAGE_PRIORITY))
            .flatten()
            .and_then(|value| value.to_str().ok())
            .and_then(|text| MessagePriority::parse(text).ok())
            .map(MessagePriority::get);
        let rule = settings.rules.iter().find(|rule| {
            (rule.services.is_empty() || rule.services.iter().any(|one| one == service))
                && (rule.methods.is_empty() || rule.methods.iter().any(|one| one == method.as_str()))
        });
        match (told, rule) {
            (Some(told), Some(rule)) if !rule.replace => (told, false),
            (_, Some(rule)) => (rule.priority, true),
            (Some(told), None) => (told, false),
            (None, None) => (settings.default, false),
        }
    }

    /// Answers requests that are for the SCP itself.
    fn own_resource(&self, request: &Request) -> Option<Response> {
        let path = request.uri().path();
        let nrfs = callback_set(path);
        if nrfs.is_none() && path != HEALTH_PATH && path != RATES_PATH {
            return None;
        }
        let is_ours = request
            .uri()
            .authority()
            .is_none_or(|authority| is_own(&self.own, authority.as_str()));
        if !is_ours || request.headers().contains_key(names::TARGET_API_ROOT) {
            return None;
        }
        Some(match path {
            HEALTH_PATH => Response::default(),
            RATES_PATH => federation::told(request, &self.live, &self.federation, &self.metrics),
            _ => self.notified(request, nrfs.unwrap_or_default()),
        })
    }

    /// An NRF of a set notifies.
    fn notified(&self, request: &Request, set: usize) -> Response {
        if *request.method() != Method::POST {
            return Problem::new(Cause::MethodNotAllowed).into_response();
        }
        let change = match change_of(&request.body.to_bytes()) {
            Ok(change) => change,
            Err(reason) => {
                return Problem::new(Cause::InvalidMsgFormat)
                    .detail(format!("expected NotificationData: {reason}"))
                    .into_response();
            }
        };
        if self.changes.try_send(Heard { set, change }).is_err() {
            // The NRF tries again, and an audit finds what it does not tell.
            self.metrics.notification_lost.inc();
            return Problem::new(Cause::NfCongestion)
                .detail("too many changes of the network wait")
                .into_response();
        }
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NO_CONTENT;
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
