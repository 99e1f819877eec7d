//! Wires the function together: workers, the control thread, and the way of a request.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use sbi::client::Client;
use sbi::oauth::{Expectation, Verifier};
use sbi::problem::{Cause, Problem};
use sbi::server::{self, ServerStats};
use sbi::{Request, Response, Service};
use store::{Store, TableDef};
use tokio::sync::{mpsc, oneshot};
use worker::{Pinning, Shutdown, WorkerContext, Workers};

use crate::api::{self, discovery::Plans};
use crate::config::Config;
use crate::error::StartError;
use crate::events::{Counters, Event};
use crate::forwarding::Forwarder;
use crate::overload::Shedder;
use crate::registry::registrar::{Done, Registrar, What, Write};
use crate::registry::{ProfileRecord, Reader, Snapshot, SubscriptionRecord};
use crate::screening::Screening;
use crate::slf::Slf;
use crate::tokens::{Issuer, unix_now};

/// Tokens a worker remembers as verified.
const KNOWN_TOKENS: usize = 10_000;

/// A running NRF. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    published: Arc<ArcSwap<Snapshot>>,
    counters: Vec<Arc<Counters>>,
    servers: Vec<Arc<ServerStats>>,
    shutdown: Shutdown,
    workers: Option<Workers>,
    control: Option<JoinHandle<()>>,
}

/// Starts an NRF: binds, reads what the store has, and serves. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    let config = Arc::new(config);
    let screening = Screening::new(&config.screening).map_err(StartError::Config)?;
    let directory = &config.store.embedded.directory;
    let issuer =
        Issuer::open(&config.tokens, &config.nf_instance_id, directory).map_err(StartError::Config)?;
    let issuer = Arc::new(issuer);
    let tls = |error: sbi::tls::TlsError| StartError::Config(error.to_string());
    let server_tls = config
        .tls
        .as_ref()
        .map(sbi::tls::server)
        .transpose()
        .map_err(tls)?;
    let client_tls = config
        .client_tls
        .as_ref()
        .map(sbi::tls::client)
        .transpose()
        .map_err(tls)?;

    let count = match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let (listeners, addresses) = bind(&config, count)?;
    let shutdown = Shutdown::new();
    let published: Arc<ArcSwap<Snapshot>> = Arc::default();
    let counters: Vec<Arc<Counters>> = (0..=count).map(|_| Arc::default()).collect();
    let servers: Vec<Arc<ServerStats>> = (0..count).map(|_| Arc::default()).collect();

    // The URIs the NRF hands out name the port it really has.
    let mut resolved = (*config).clone();
    if resolved.api_root.is_empty() {
        let scheme = if resolved.tls.is_some() { "https" } else { "http" };
        resolved.api_root = addresses
            .first()
            .map(|a| format!("{scheme}://{a}"))
            .unwrap_or_default();
    }
    let config = Arc::new(resolved);

    let (writes, control) = control(
        config.clone(),
        screening,
        published.clone(),
        counters[count].clone(),
        client_tls.clone(),
    )?;
    let listeners = Arc::new(parking_lot::Mutex::new(listeners));
    let pinning = match config.cores.is_empty() {
        true => Pinning::Free,
        false => Pinning::Cores(config.cores.clone()),
    };
    let shared = Parts {
        config,
        published: published.clone(),
        writes,
        issuer,
        client_tls,
    };
    let (worker_counters, worker_servers) = (counters.clone(), servers.clone());
    let workers = worker::spawn(
        count,
        "nrf",
        &pinning,
        &shutdown,
        move |context: WorkerContext| {
            let mine = std::mem::take(&mut listeners.lock()[context.index]);
            let (counters, stats) = (
                worker_counters[context.index].clone(),
                worker_servers[context.index].clone(),
            );
            let (shared, tls) = (shared.clone(), server_tls.clone());
            async move {
                let service = Rc::new(Worker::new(shared, counters));
                service.clone().watch_load();
                let limits = Arc::new(service.config.server.clone());
                let serving = mine.into_iter().map(|listener| {
                    let (service, limits, tls) = (service.clone(), limits.clone(), tls.clone());
                    server::serve(
                        listener,
                        service,
                        limits,
                        tls,
                        stats.clone(),
                        context.shutdown.clone(),
                    )
                });
                futures_util::future::try_join_all(serving).await.map(drop)
            }
        },
    )
    .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        addresses,
        published,
        counters,
        servers,
        shutdown,
        workers: Some(workers),
        control: Some(control),
    })
}

/// One listener per worker and address.
type Listeners = Vec<Vec<std::net::TcpListener>>;

fn bind(config: &Config, workers: usize) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let mut listeners: Listeners = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for wanted in config.listen.iter() {
        let mut address = wanted;
        for mine in &mut listeners {
            let listener =
                server::bind(address).map_err(StartError::io(format!("listening at {address}")))?;
            // With port 0 the first worker's port is everybody's.
            address = listener
                .local_addr()
                .map_err(StartError::io(format!("listening at {address}")))?;
            mine.push(listener);
        }
        addresses.push(address);
    }
    Ok((listeners, addresses))
}

/// Starts the control thread: the registrar and the delivery of notifications.
fn control(
    config: Arc<Config>,
    screening: Screening,
    published: Arc<ArcSwap<Snapshot>>,
    counters: Arc<Counters>,
    client_tls: Option<Arc<rustls::ClientConfig>>,
) -> Result<(mpsc::Sender<Write>, JoinHandle<()>), StartError> {
    let (writes, incoming) = mpsc::channel(config.max_waiting_writes.max(1));
    // Of the standard library: whoever starts an NRF may do so from inside a runtime.
    let (ready, opened) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("nrf-control".to_owned())
        .spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(source) => {
                    let what = "starting the control runtime".to_owned();
                    let _ = ready.send(Err(StartError::Io { what, source }));
                    return;
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let (notify, notifications) = mpsc::channel(config.subscriptions.queue_total.max(1));
                let tables = [
                    TableDef::of::<ProfileRecord>(),
                    TableDef::of::<SubscriptionRecord>(),
                ];
                let opened = async {
                    let store = Store::open(&config.store, &tables).await?;
                    Registrar::open(
                        config.clone(),
                        screening,
                        store,
                        published,
                        notify,
                        counters.clone(),
                    )
                    .await
                };
                let registrar = match opened.await {
                    Ok(registrar) => registrar,
                    Err(error) => {
                        let _ = ready.send(Err(error.into()));
                        return;
                    }
                };
                let client = Client::new(Arc::new(config.client.clone()), client_tls);
                let delivery =
                    crate::notify::deliver(notifications, client, config.subscriptions.clone(), counters);
                tokio::task::spawn_local(delivery);
                if ready.send(Ok(())).is_ok() {
                    registrar.run(incoming).await;
                }
            });
        })
        .map_err(StartError::io("starting the control thread"))?;
    let gone = || StartError::Config("the control thread ended before it was ready".to_owned());
    opened.recv().map_err(|_| gone())??;
    Ok((writes, thread))
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The registry as of now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counters.iter().map(|counters| counters.get(event)).sum()
    }

    /// Counts of the servers, one per worker.
    pub fn servers(&self) -> impl Iterator<Item = sbi::server::StatsSnapshot> {
        self.servers.iter().map(|stats| stats.snapshot())
    }

    /// Metrics in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        // Writing to a String cannot fail.
        for event in Event::ALL {
            let _ = writeln!(
                out,
                "# TYPE {0} counter\n{0} {1}",
                event.metric(),
                self.count(*event)
            );
        }
        let name = "signalbox_nrf_profiles";
        let _ = writeln!(out, "# TYPE {name} gauge");
        for (nf_type, table) in self.snapshot().types() {
            let _ = writeln!(out, "{name}{{nf_type=\"{nf_type}\"}} {}", table.len());
        }
        for (metric, value) in [
            (
                "signalbox_nrf_connections",
                self.servers().map(|s| s.connections_open).sum::<u64>(),
            ),
            (
                "signalbox_nrf_requests_total",
                self.servers().map(|s| s.requests).sum(),
            ),
            (
                "signalbox_nrf_bytes_received_total",
                self.servers().map(|s| s.bytes_in).sum(),
            ),
            (
                "signalbox_nrf_bytes_sent_total",
                self.servers().map(|s| s.bytes_out).sum(),
            ),
        ] {
            let kind = if metric.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            let _ = writeln!(out, "# TYPE {metric} {kind}\n{metric} {value}");
        }
        out
    }

    /// Finishes the requests in progress and stops. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(mut self) -> std::io::Result<()> {
        self.shutdown.fire();
        let ended = self.workers.take().map_or(Ok(()), Workers::join);
        // The last sender of writes is gone with the workers, so the control thread ends, too.
        if let Some(control) = self.control.take()
            && control.join().is_err()
        {
            return Err(std::io::Error::other("the control thread panicked; see the log"));
        }
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.fire();
    }
}

/// What every worker is made of.
#[derive(Clone)]
struct Parts {
    config: Arc<Config>,
    published: Arc<ArcSwap<Snapshot>>,
    writes: mpsc::Sender<Write>,
    issuer: Arc<Issuer>,
    client_tls: Option<Arc<rustls::ClientConfig>>,
}

/// One worker's NRF: its view of the registry, its clients, its kept answers.
pub(crate) struct Worker {
    config: Arc<Config>,
    root: String,
    reader: RefCell<Reader>,
    writes: mpsc::Sender<Write>,
    plans: Plans,
    slf: Slf,
    forwarder: Forwarder,
    issuer: Arc<Issuer>,
    verifier: Option<Verifier>,
    shedder: Shedder,
    counters: Arc<Counters>,
}

impl Worker {
    fn new(parts: Parts, counters: Arc<Counters>) -> Self {
        let Parts {
            config,
            published,
            writes,
            issuer,
            client_tls,
        } = parts;
        let client = Client::new(Arc::new(config.client.clone()), client_tls);
        let verifier = config.tokens.protect_own_services.then(|| {
            let expectation = Expectation {
                instance: config.nf_instance_id.clone(),
                nf_type: "NRF".to_owned(),
                issuers: vec![config.nf_instance_id.clone()],
                ..Expectation::default()
            };
            Verifier::new(Arc::new(issuer.keys()), expectation, KNOWN_TOKENS)
        });
        Self {
            root: config.root(),
            reader: RefCell::new(Reader::new(published)),
            writes,
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
            issuer,
            verifier,
            shedder: Shedder::new(&config.overload),
            counters,
            config,
        }
    }

    /// Samples this worker's own CPU load, which decides about discards.
    fn watch_load(self: Rc<Self>) {
        if !self.shedder.is_needed() {
            return;
        }
        tokio::task::spawn_local(async move {
            let mut tick = tokio::time::interval(crate::overload::SAMPLE_INTERVAL);
            loop {
                tick.tick().await;
                self.shedder.sample();
            }
        });
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

    pub(crate) fn protects_itself(&self) -> bool {
        self.verifier.is_some()
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
        if self.writes.try_send(Write { what, reply }).is_err() {
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

    /// The answer to a request whose token does not allow the service; a worker without a verifier allows all.
    fn denied(&self, request: &Request, scope: &str) -> Option<Response> {
        let checked = self
            .verifier
            .as_ref()?
            .check(request.headers(), &[scope], unix_now());
        checked.err().map(|denied| denied.into_response(&self.root))
    }
}

impl Service for Worker {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let parent = request.headers().get(telemetry::trace::TRACEPARENT);
        let parent = parent.and_then(|value| value.to_str().ok());
        let span = telemetry::trace::begin("nrf", operation(&request), parent);
        let response = self.answer(request).await;
        if let Some(mut span) = span {
            span.status(response.status().as_u16());
        }
        response
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
        if let (Some(scope @ ("nnrf-disc" | "nnrf-nfm")), _, _, _) = at
            && let Some(denied) = self.denied(&request, scope)
        {
            return denied;
        }
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
                api::subscriptions::collection(self, request).await
            }
            (Some("nnrf-nfm"), Some("v1"), Some("subscriptions"), Some(id)) => {
                let id = id.to_owned();
                api::subscriptions::subscription(self, request, id).await
            }
            (Some("oauth2"), Some("token"), None, None) => api::access_token::token(&self, &request),
            (Some("oauth2"), Some("jwks"), None, None) => api::access_token::jwks(&self, &request),
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
