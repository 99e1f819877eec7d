//! Wires the function together: workers, the control thread, and the way of a request.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use diameter::proto::known::disconnect_cause;
use sbi::client::Client;
use sbi::problem::{Cause, Problem};
use sbi::server::{self, ServerStats};
use sbi::{Request, Response, Service};
use tokio::sync::mpsc;
use worker::{Pinning, Shutdown, WorkerContext, Workers};

use crate::api;
use crate::binding::{PcfBinding, UeBinding};
use crate::config::Config;
use crate::error::StartError;
use crate::events::{Counters, Event};
use crate::notify::{self, Notification};
use crate::overload::{SAMPLE_INTERVAL, Shedder, Verdict};
use crate::peers::nrf::Registration;
use crate::repository::Repository;
use crate::rx;

/// How far the function is open: it can be shut down in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Every request is worked on.
    Serving,
    /// No new bindings and sessions; those that exist are served on.
    Partial,
    /// No request is worked on.
    Complete,
}

impl State {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Serving,
            1 => Self::Partial,
            _ => Self::Complete,
        }
    }
}

/// What all threads share and an operator may change.
#[derive(Debug)]
pub(crate) struct Switches {
    state: AtomicU8,
    congestion: AtomicBool,
    /// Load of the busiest worker, in percent.
    load: Vec<AtomicU32>,
}

impl Switches {
    pub(crate) fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
    }

    /// Load of the busiest worker, in percent of a core.
    pub(crate) fn load(&self) -> u32 {
        self.load
            .iter()
            .map(|load| load.load(Relaxed))
            .max()
            .unwrap_or(0)
            .min(100)
    }
}

/// A running BSF. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    diameter: Vec<SocketAddr>,
    repository: Repository,
    switches: Arc<Switches>,
    counters: Vec<Arc<Counters>>,
    servers: Vec<Arc<ServerStats>>,
    shutdown: Shutdown,
    workers: Option<Workers>,
    control: Option<JoinHandle<()>>,
}

/// Starts a BSF: binds, reads what the store has, and serves. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
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
    let rx_listeners = rx::bind(&config.rx)?;
    let diameter = rx_listeners
        .iter()
        .map(diameter::BoundListener::address)
        .collect();
    let shutdown = Shutdown::new();
    let counters: Vec<Arc<Counters>> = (0..=count).map(|_| Arc::default()).collect();
    let servers: Vec<Arc<ServerStats>> = (0..count).map(|_| Arc::default()).collect();
    let switches = Arc::new(Switches {
        state: AtomicU8::new(0),
        congestion: AtomicBool::new(config.overload.enabled),
        load: (0..count).map(|_| AtomicU32::new(0)).collect(),
    });

    // The URIs the BSF hands out name the port it really has.
    let mut config = config;
    if config.api_root.is_empty()
        && let Some(address) = addresses.first()
    {
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        config.api_root = format!("{scheme}://{address}");
    }
    let config = Arc::new(config);
    let (notifications, incoming) = mpsc::channel(config.notifications.queue.max(1));
    let (repository, control) = control(
        config.clone(),
        incoming,
        counters[count].clone(),
        client_tls,
        addresses.first().map(|address| (*address, switches.clone())),
        shutdown.clone(),
    )?;

    let listeners = Arc::new(parking_lot::Mutex::new(listeners));
    let rx_listeners = Arc::new(parking_lot::Mutex::new(rx_listeners));
    let pinning = match config.cores.is_empty() {
        true => Pinning::Free,
        false => Pinning::Cores(config.cores.clone()),
    };
    let (worker_counters, worker_servers) = (counters.clone(), servers.clone());
    let held = switches.clone();
    let shared = (config, repository.clone(), switches, notifications);
    let run = move |context: WorkerContext| {
        let mine = std::mem::take(&mut listeners.lock()[context.index]);
        // The first worker has the Diameter agent.
        let rx_listeners = match context.index {
            0 => std::mem::take(&mut *rx_listeners.lock()),
            _ => Vec::new(),
        };
        let (config, repository, switches, notifications) = shared.clone();
        let worker = Worker {
            root: config.api_root.trim_end_matches('/').to_owned(),
            shedder: Shedder::new(&config.overload, context.count),
            index: context.index,
            config,
            repository,
            switches,
            notifications,
            counters: worker_counters[context.index].clone(),
        };
        let (stats, tls) = (worker_servers[context.index].clone(), server_tls.clone());
        async move {
            let service = Rc::new(worker);
            tokio::task::spawn_local(watch_load(service.clone()));
            let agent = match rx_listeners.is_empty() {
                true => None,
                false => Some(service.diameter(rx_listeners)?),
            };
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
            let ended = futures_util::future::try_join_all(serving).await.map(drop);
            if let Some(agent) = agent {
                agent.stop(DISCONNECT_GRACE, disconnect_cause::REBOOTING).await;
            }
            ended
        }
    };
    let workers = worker::spawn(count, "bsf", &pinning, &shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        addresses,
        diameter,
        repository,
        switches: held,
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
            let what = || StartError::io(format!("listening at {address}"));
            let listener = server::bind(address).map_err(what())?;
            // With port 0 the first worker's port is everybody's.
            let bound = listener.local_addr().map_err(what())?;
            address = bound;
            mine.push(listener);
        }
        addresses.push(address);
    }
    Ok((listeners, addresses))
}

/// How long Diameter peers may take to say good-bye.
const DISCONNECT_GRACE: Duration = Duration::from_secs(1);
/// How often changes of other instances on the same database are looked for.
const REFRESH: Duration = Duration::from_secs(1);

/// Starts the control thread: opens the store, then delivers notifications.
fn control(
    config: Arc<Config>,
    incoming: mpsc::Receiver<Notification>,
    counters: Arc<Counters>,
    client_tls: Option<Arc<rustls::ClientConfig>>,
    registration: Option<(SocketAddr, Arc<Switches>)>,
    shutdown: Shutdown,
) -> Result<(Repository, JoinHandle<()>), StartError> {
    // Of the standard library: whoever starts a BSF may do so from inside a runtime.
    let (ready, opened) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(source) => {
                let what = "starting the control runtime".to_owned();
                let _ = ready.send(Err(StartError::Io { what, source }));
                return;
            }
        };
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let repository = match Repository::open(&config.store, config.max_candidates).await {
                Ok(repository) => repository,
                Err(error) => {
                    let _ = ready.send(Err(error.into()));
                    return;
                }
            };
            if ready.send(Ok(repository.clone())).is_err() {
                return;
            }
            let client = Client::new(Arc::new(config.client.clone()), client_tls);
            if config.store.engine == store::EngineKind::Mariadb {
                tokio::task::spawn_local(refresh(repository.clone()));
            }
            let registered = registration.and_then(|(address, switches)| {
                Registration::new(config.clone(), address, switches, client.clone())
            });
            let notifying = notify::deliver(incoming, client, config.notifications.clone(), counters);
            let notifying = async {
                tokio::select! {
                    () = notifying => {}
                    () = shutdown.fired() => {}
                }
            };
            let registering = async {
                if let Some(registered) = registered {
                    registered.run(shutdown.fired()).await;
                }
            };
            tokio::join!(notifying, registering);
        });
    };
    let thread = std::thread::Builder::new()
        .name("bsf-control".to_owned())
        .spawn(body)
        .map_err(StartError::io("starting the control thread"))?;
    let gone = |_| StartError::Config("the control thread ended before it was ready".to_owned());
    Ok((opened.recv().map_err(gone)??, thread))
}

async fn refresh(repository: Repository) {
    loop {
        tokio::time::sleep(REFRESH).await;
        if let Err(error) = repository.refresh().await {
            tracing::warn!(%error, "changes of other instances could not be read");
        }
    }
}

async fn watch_load(worker: Rc<Worker>) {
    loop {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        let load = worker.shedder.sample(worker.switches.congestion.load(Relaxed));
        if let Some(shown) = worker.switches.load.get(worker.index) {
            shown.store(load as u32, Relaxed);
        }
    }
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it listens for Diameter.
    #[must_use]
    pub fn diameter_addresses(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// Its bindings.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// How far it is open.
    #[must_use]
    pub fn state(&self) -> State {
        self.switches.state()
    }

    /// Opens it or shuts it down in steps.
    pub fn set_state(&self, state: State) {
        tracing::info!(?state, "operational state");
        self.switches.state.store(state as u8, Relaxed);
    }

    /// Whether requests are discarded at congestion levels.
    #[must_use]
    pub fn congestion_control(&self) -> bool {
        self.switches.congestion.load(Relaxed)
    }

    /// Turns discards at congestion levels on or off.
    pub fn set_congestion_control(&self, on: bool) {
        self.switches.congestion.store(on, Relaxed);
    }

    /// Load of the busiest worker, in percent of a core.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.switches.load()
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

    /// Finishes the requests in progress and stops. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(mut self) -> std::io::Result<()> {
        self.shutdown.fire();
        let ended = self.workers.take().map_or(Ok(()), Workers::join);
        if let Some(control) = self.control.take()
            && control.join().is_err()
        {
            return Err(std::io::Error::other("the control thread panicked; see the log"));
        }
        let store = self.repository.store().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        // In a thread of its own: whoever stops a BSF may do so from inside a runtime.
        let closing = std::thread::spawn(move || runtime.map(|runtime| runtime.block_on(store.close())));
        match closing.join() {
            Ok(closed) => closed.and(ended),
            Err(_) => Err(std::io::Error::other("closing the store panicked; see the log")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.fire();
    }
}

/// One worker's BSF.
pub(crate) struct Worker {
    config: Arc<Config>,
    root: String,
    index: usize,
    repository: Repository,
    switches: Arc<Switches>,
    notifications: mpsc::Sender<Notification>,
    shedder: Shedder,
    counters: Arc<Counters>,
}

impl Worker {
    /// Starts the Diameter agent on this worker.
    fn diameter(
        &self,
        listeners: Vec<diameter::BoundListener>,
    ) -> std::io::Result<diameter::Node<rx::Agent>> {
        rx::run(
            self.config.rx.clone(),
            self.repository.clone(),
            self.switches.clone(),
            self.counters.clone(),
            listeners,
        )
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    pub(crate) fn max_body(&self) -> usize {
        self.config.max_body_size.as_usize()
    }

    pub(crate) fn max_candidates(&self) -> usize {
        self.config.max_candidates
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Tells subscribers of a session's binding that has come or gone.
    pub(crate) async fn tell_session(&self, binding: &PcfBinding, come: bool) {
        self.tell(binding.0.text_of("supi"), |subscription| {
            subscription.tell_sessions(&[binding], come)
        })
        .await;
    }

    /// Tells subscribers of a UE's binding that has come or gone.
    pub(crate) async fn tell_ue(&self, binding: &UeBinding, come: bool) {
        self.tell(binding.0.text_of("supi"), |subscription| {
            subscription.tell_ue(binding, come)
        })
        .await;
    }

    async fn tell(
        &self,
        supi: Option<&str>,
        body: impl Fn(&crate::binding::Subscription) -> Option<serde_json::Value>,
    ) {
        let Some(supi) = supi.filter(|_| self.repository.is_watched()) else {
            return;
        };
        let subscribers = match self.repository.subscribers_of(supi).await {
            Ok(subscribers) => subscribers,
            Err(error) => {
                tracing::warn!(%error, "subscribers could not be read; they are not told");
                return;
            }
        };
        for subscription in subscribers {
            let target = subscription
                .0
                .text_of("notifUri")
                .and_then(|uri| uri.parse().ok());
            let (Some(target), Some(body)) = (target, body(&subscription)) else {
                continue;
            };
            let notification = Notification {
                subscription: subscription.0.id,
                target,
                body: body.to_string().into(),
            };
            if self.notifications.try_send(notification).is_err() {
                self.count(Event::NotificationDropped);
            }
        }
    }

    /// Why this request is not worked on.
    fn turned_away(&self, request: &Request) -> Option<Problem> {
        let creates = *request.method() == http::Method::POST;
        match self.switches.state() {
            State::Serving => {}
            State::Partial if !creates => {}
            state => {
                self.count(Event::ShutOut);
                let detail = format!("this BSF is being shut down (state {state:?})");
                return Some(Problem::of_status(http::StatusCode::SERVICE_UNAVAILABLE).detail(detail));
            }
        }
        match self.shedder.judge(request) {
            Verdict::Work => None,
            Verdict::TooMany => {
                self.count(Event::RateLimited);
                Some(Problem::new(Cause::TooManyRequests).detail("more requests a second than ingressRate"))
            }
            Verdict::Discard => {
                self.count(Event::Discarded);
                Some(Problem::new(Cause::NfCongestion).detail("discarded under overload"))
            }
        }
    }
}

impl Service for Worker {
    /// The way of a request: may it be worked on now, whose resource is it, who answers it.
    async fn call(self: Rc<Self>, request: Request) -> Response {
        if let Some(problem) = self.turned_away(&request) {
            return problem.into_response();
        }
        // The path outlives the request, which the handlers take apart.
        let path = request.uri().path().to_owned();
        let mut segments = path.trim_start_matches('/').splitn(4, '/');
        let at = (segments.next(), segments.next(), segments.next(), segments.next());
        let worker = self.clone();
        let answer = match at {
            (Some("nbsf-management"), Some("v1"), Some(resource), id) => {
                let id = id.map(str::to_owned);
                match (resource, id) {
                    ("pcfBindings", None) => api::sessions::collection(worker, request).await,
                    ("pcfBindings", Some(id)) => api::sessions::individual(worker, request, id).await,
                    ("pcf-ue-bindings", None) => api::ues::collection(worker, request).await,
                    ("pcf-ue-bindings", Some(id)) => api::ues::individual(worker, request, id).await,
                    ("pcf-mbs-bindings", None) => api::mbs::collection(worker, request).await,
                    ("pcf-mbs-bindings", Some(id)) => api::mbs::individual(worker, request, id).await,
                    ("subscriptions", None) => api::subscriptions::collection(worker, request).await,
                    ("subscriptions", Some(id)) => api::subscriptions::individual(worker, request, id).await,
                    _ => Err(unknown(&path)),
                }
            }
            (Some("nbsf-management"), Some(version), _, _) if version != "v1" => {
                Err(Problem::new(Cause::InvalidApi)
                    .detail(format!("version {version} is not served here; v1 is")))
            }
            _ => Err(unknown(&path)),
        };
        answer.unwrap_or_else(|problem| {
            self.count(match problem.status().is_server_error() {
                true => Event::Failed,
                false => Event::BadRequest,
            });
            problem.into_response()
        })
    }
}

fn unknown(path: &str) -> Problem {
    let shown: String = path.chars().take(128).collect();
    Problem::new(Cause::ResourceUriStructureNotFound).detail(format!("{shown} is not a resource of this BSF"))
}
