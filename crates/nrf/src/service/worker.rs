//! One worker's share of the function, and the way of a request.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sbi::client::Client;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, Service};
use tokio::sync::{mpsc, oneshot};

use crate::api::{self, discovery::Plans};
use crate::config::Config;
use crate::events::{Counters, Event};
use crate::forwarding::Forwarder;
use crate::live::Live;
use crate::overload::Shedder;
use crate::registry::registrar::{Done, Waiting, What, Write};
use crate::registry::{Reader, Snapshot};
use crate::service::gate::{Gate, Refused};
use crate::slf::Slf;
use crate::tokens::Issuer;

/// What every worker is made of.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) published: Arc<ArcSwap<Snapshot>>,
    pub(super) writes: mpsc::Sender<Write>,
    pub(super) waiting: Waiting,
    pub(super) client_tls: Option<sbi::tls::ClientTls>,
}

/// A worker's NRF as its server sees it: made anew when the settings have changed.
pub(super) struct Front {
    parts: Parts,
    client: Client,
    counters: Arc<Counters>,
    live: RefCell<arc_swap::Cache<Arc<ArcSwap<Live>>, Arc<Live>>>,
    current: RefCell<(Arc<Live>, Rc<Worker>)>,
}

impl Front {
    pub(super) fn new(parts: Parts, counters: Arc<Counters>) -> Self {
        let live = parts.live.load_full();
        let client = Client::with_names(
            Arc::new(live.config.client.clone()),
            parts.client_tls.clone(),
            None,
        );
        let worker = Worker::new(&live, &parts, client.clone(), counters.clone());
        Self {
            live: RefCell::new(arc_swap::Cache::new(parts.live.clone())),
            current: RefCell::new((live, Rc::new(worker))),
            parts,
            client,
            counters,
        }
    }

    fn current(&self) -> Rc<Worker> {
        let mut live = self.live.borrow_mut();
        let wanted = live.load();
        let mut current = self.current.borrow_mut();
        if !Arc::ptr_eq(&current.0, wanted) {
            let worker = Worker::new(wanted, &self.parts, self.client.clone(), self.counters.clone());
            *current = (wanted.clone(), Rc::new(worker));
        }
        current.1.clone()
    }

    /// Samples this worker's own CPU load, which decides about discards.
    pub(super) async fn watch_load(self: Rc<Self>) {
        let mut tick = tokio::time::interval(crate::overload::SAMPLE_INTERVAL);
        loop {
            tick.tick().await;
            let worker = self.current();
            if worker.shedder.is_needed() {
                worker.shedder.sample();
            }
        }
    }

    /// Looks whether the SCPs on the way to location functions are well.
    pub(super) async fn watch_scps(self: Rc<Self>) {
        /// How often it is looked whether there is anything to look at.
        const IDLE: Duration = Duration::from_secs(1);
        loop {
            let worker = self.current();
            if worker.slf.scp_interval().is_some() {
                worker.slf.look_at_scps().await;
            }
            tokio::time::sleep(worker.slf.scp_interval().unwrap_or(IDLE)).await;
        }
    }
}

impl Service for Front {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let worker = self.current();
        let parent = request.headers().get(telemetry::trace::TRACEPARENT);
        let parent = parent.and_then(|value| value.to_str().ok());
        let span = telemetry::trace::begin("nrf", operation(&request), parent);
        let response = worker.answer(request).await;
        if let Some(mut span) = span {
            span.status(response.status().as_u16());
        }
        response
    }
}

/// One worker's NRF: its view of the registry, its clients, its kept answers.
pub(crate) struct Worker {
    config: Arc<Config>,
    root: String,
    reader: RefCell<Reader>,
    writes: mpsc::Sender<Write>,
    waiting: Waiting,
    plans: Plans,
    slf: Slf,
    forwarder: Forwarder,
    issuer: Arc<Issuer>,
    gate: Gate,
    shedder: Shedder,
    counters: Arc<Counters>,
}

impl Worker {
    fn new(live: &Live, parts: &Parts, client: Client, counters: Arc<Counters>) -> Self {
        let (config, issuer) = (live.config.clone(), live.issuer.clone());
        Self {
            root: config.root(),
            reader: RefCell::new(Reader::new(parts.published.clone())),
            writes: parts.writes.clone(),
            waiting: parts.waiting.clone(),
            plans: Plans::new(&config.discovery),
            slf: Slf::new(
                config.slf.clone(),
                client.clone(),
                counters.clone(),
                issuer.clone(),
            ),
            forwarder: Forwarder::new(
                &config.forwarding,
                client,
                counters.clone(),
                &config.nf_instance_id,
            ),
            gate: Gate::new(live),
            issuer,
            shedder: Shedder::new(&config.overload),
            counters,
            config,
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.reader.borrow_mut().load().clone()
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn instance(&self) -> &str {
        &self.config.nf_instance_id
    }

    pub(crate) fn instance_uri(&self, id: &model::NfInstanceId) -> String {
        format!("{}/nnrf-nfm/v1/nf-instances/{id}", self.root)
    }

    pub(crate) fn max_profile(&self) -> usize {
        self.config.max_profile_size.as_usize()
    }

    pub(crate) fn max_subscription(&self) -> usize {
        self.config.subscriptions.max_size.as_usize()
    }

    /// Whether questions may go to the home NRF that a consumer names; if not, what was expected.
    pub(crate) fn check_home_nrf(&self, uri: Option<&str>) -> Result<(), &'static str> {
        let Some(root) = uri.and_then(crate::forwarding::root_of) else {
            return Ok(());
        };
        let checked = self.config.outgoing.check(&root.origin, self.config.admin);
        checked.inspect_err(|_| self.counters.count(Event::TargetDenied))
    }

    pub(crate) fn protects_itself(&self) -> bool {
        self.gate.wants_tokens()
    }

    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    pub(crate) fn slf(&self) -> &Slf {
        &self.slf
    }

    pub(crate) fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Hands a change to the registrar and waits until it is kept.
    pub(crate) async fn write(&self, what: What) -> Result<Done, Problem> {
        let (reply, done) = oneshot::channel();
        let most = self.config.max_waiting_bytes.as_usize();
        let sent = self
            .waiting
            .hold(what.bytes(), most)
            .and_then(|held| self.writes.try_send(Write { what, reply, held }).ok());
        if sent.is_none() {
            self.counters.count(Event::WriteOverflow);
            return Err(Problem::new(Cause::NfCongestion).detail("too many changes wait; try later"));
        }
        let stopped = |_| Problem::new(Cause::NfFailover).detail("the NRF is stopping");
        let outcome = done.await.map_err(stopped)?;
        if outcome.is_err() {
            self.counters.count(Event::BadRequest);
        }
        outcome
    }
}

/// The service and method of a request, as traces call them.
fn operation(request: &Request) -> &'static str {
    let path = request.uri().path();
    let service = |prefix| path.starts_with(prefix);
    match request.method().as_str() {
        "GET" if service("/nnrf-disc/") => "Nnrf_NFDiscovery GET",
        "POST" if service("/oauth2/") => "Nnrf_AccessToken POST",
        "GET" if service("/nnrf-nfm/") => "Nnrf_NFManagement GET",
        "PUT" if service("/nnrf-nfm/") => "Nnrf_NFManagement PUT",
        "PATCH" if service("/nnrf-nfm/") => "Nnrf_NFManagement PATCH",
        "POST" if service("/nnrf-nfm/") => "Nnrf_NFManagement POST",
        "DELETE" if service("/nnrf-nfm/") => "Nnrf_NFManagement DELETE",
        _ => "other",
    }
}

impl Worker {
    /// The way of a request: may it be worked on now, may its sender ask this, who answers it.
    async fn answer(self: Rc<Self>, request: Request) -> Response {
        // The path outlives the request, which the handlers take apart.
        let path = request.uri().path().to_owned();
        let mut segments = path.trim_start_matches('/').splitn(4, '/');
        let at = (segments.next(), segments.next(), segments.next(), segments.next());
        if self.shedder.discards(at.0.unwrap_or_default(), at.2, &request) {
            self.counters.count(Event::Discarded);
            return Problem::new(Cause::NfCongestion)
                .detail("discarded under overload")
                .into_response();
        }
        let sender = match self.gate.admit(at, &request) {
            Ok(sender) => sender,
            Err(refused) => {
                if let Refused::Identity(_) = &refused {
                    self.counters.count(Event::IdentityRefused);
                }
                return refused.into_response(&self.root);
            }
        };
        match at {
            (Some("nnrf-disc"), Some("v1"), Some("nf-instances"), None) => {
                api::discovery::discover(self, request).await
            }
            (Some("nnrf-disc"), Some("v1"), Some("searches"), Some(search)) => {
                api::searches::search(&self, &request, search)
            }
            (Some("nnrf-nfm"), Some("v1"), Some("nf-instances"), None) => {
                api::management::collection(&self, &request)
            }
            (Some("nnrf-nfm"), Some("v1"), Some("nf-instances"), Some(id)) => {
                let id = id.to_owned();
                api::management::instance(self, request, id).await
            }
            (Some("nnrf-nfm"), Some("v1"), Some("subscriptions"), None) => {
                api::subscriptions::collection(self, request, sender).await
            }
            (Some("nnrf-nfm"), Some("v1"), Some("subscriptions"), Some(id)) => {
                let id = id.to_owned();
                api::subscriptions::subscription(self, request, sender, id).await
            }
            (Some("oauth2"), Some("token"), None, None) => {
                api::access_token::token(&self, &request, &sender).await
            }
            (Some("oauth2"), Some("jwks"), None, None) => api::access_token::jwks(&self, &request),
            (Some(crate::growth::API), Some("v1"), Some("profiles"), None) => {
                crate::growth::answer(&self.snapshot(), &request)
            }
            (Some("bootstrapping"), None, None, None) => api::bootstrapping::bootstrapping(&self, &request),
            (Some("nnrf-nfm" | "nnrf-disc"), Some(version), _, _) if version != "v1" => {
                Problem::new(Cause::InvalidApi)
                    .detail(format!("version {version} is not served here; v1 is"))
                    .into_response()
            }
            _ => unknown(&path),
        }
    }
}

fn unknown(path: &str) -> Response {
    Problem::new(Cause::ResourceUriStructureNotFound)
        .detail(format!("{path} is not a resource of this NRF"))
        .into_response()
}
