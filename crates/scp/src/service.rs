//! The SCP as a network function: how it opens, what its control thread does.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::Router;
use function::sbi::{Answer, Sbi};
use function::{
    Beginning, Common, Front, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
    settle_instance,
};
use parking_lot::Mutex;
use routing::network::{Network, NfStatus};
use routing::target::{Bounds, OwnNames};
use sbi::client::{Client, Guard};
use sbi::dns::Dns;
use sbi::{Request, Response};
use telemetry::{AlarmKind, Declaration};
use tokio::sync::{mpsc, watch};

use crate::alarms::{NRF_UNREACHABLE, SET_UNAVAILABLE};
use crate::config::Config;
use crate::discovery::Vouched;
use crate::events::Metrics;
use crate::live::{Current, Derived, Live};
use crate::pages;
use crate::peers::{Answers, Learner};
use crate::pipeline::{Clients, Pipeline, Question, Shared};
use crate::protection::{Federation, PeerStates};
use crate::security::TokenLimits;
use crate::shared::Scp;

/// Changes of the network that may be pending; more are dropped, and the next audit finds them.
const PENDING_CHANGES: usize = 100_000;
/// Interval at which a worker publishes the state of its producers.
const WRITTEN_EVERY: Duration = Duration::from_millis(500);
/// Pending requests of `scp why` at most.
const PENDING_QUESTIONS: usize = 16;

/// A running SCP.
pub type Running = function::Running<Scp>;

/// Starts an SCP: it serves at once, and learns the network meanwhile.
///
/// # Errors
/// When a setting, an address or a file cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

impl Scp {
    /// Creates the clients of a worker. They check the allowed destinations after names are resolved.
    fn clients(&self, live: &Live) -> Clients {
        let settings = Arc::new(live.config.client.clone());
        let guarded = |admits: fn(&Bounds, SocketAddr) -> bool| {
            let live = self.shared.live.clone();
            let guard = Guard::new(move |_, address| admits(&live.load().bounds, address));
            let (settings, names) = (settings.clone(), self.shared.names.clone());
            Client::guarded(settings, self.client_tls.clone(), names, Some(guard))
        };
        Clients {
            known: guarded(Bounds::lets_pass),
            unknown: guarded(Bounds::lets_pass_unknown),
        }
    }
}

impl NetworkFunction for Scp {
    const NAME: &'static str = "scp";
    const TITLE: &'static str = "SCP";
    const PAGES: &'static [Page] = pages::PAGES;
    // Some outcomes for each of several thousand producers.
    const SERIES: usize = 32_768;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Sbi;
    type Worker = Pipeline;

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: &config.nf_instance_id,
            listen: listening("listen", &config.listen),
            directory: Some(&config.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Sbi, StartError> {
        let (tls, client_tls) = (config.tls.as_ref(), config.client_tls.as_ref());
        function::sbi::certify_instance(&mut config.nf_instance_id, tls, client_tls)?;
        settle_instance(&mut config.nf_instance_id, &config.directory, Self::NAME)?;
        let sbi = Sbi::reserve(&config.listen, &Self::common(config), workers)?;
        config.workers = workers;
        // The URIs that the SCP hands out name the port it really has.
        if config.api_root.is_empty() {
            config.api_root = sbi.root(&config.nrf.roots)?;
        }
        Ok(sbi)
    }

    fn derive(config: &Arc<Config>, before: Option<&Live>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let Opening {
            live,
            listeners,
            registry,
            ..
        } = &opening;
        live.rederive(|before| Derived::opened(before, registry))
            .map_err(StartError::Config)?;
        let config = live.load().config.clone();
        let metrics = Metrics::new(registry);
        let statics = crate::peers::statics(&config);
        let network = Arc::new(ArcSwap::from_pointee(Network::new(statics.into_values())));
        let names = names(&config)?;
        pages::observe(registry, &network, live, names.as_ref());
        let (sender, changes) = mpsc::channel(PENDING_CHANGES);
        let (settings, followed) = watch::channel(config.clone());
        let (questions, asked) = mpsc::channel(PENDING_QUESTIONS);
        let addresses = function::Listeners::addresses(&**listeners);
        let shared = Shared {
            live: live.clone(),
            network,
            changes: sender.clone(),
            callbacks: Arc::default(),
            names,
            metrics,
            own: Arc::new(own_names(&config, addresses)),
            registry: registry.clone(),
            alarms: opening.alarms.clone(),
            board: Arc::default(),
            federation: Arc::default(),
            vouched: Arc::new(Vouched::new(config.nrf.max_producers)),
            answers: Arc::new(Answers::new(config.discovery.limits())),
            doubts: Arc::default(),
            states: Arc::new(PeerStates::new(config.workers)),
            hasher: ahash::RandomState::new(),
        };
        let scp = Arc::new(Self {
            client_tls: listeners.client_tls(),
            load: Arc::default(),
            settings,
            questions,
            asked: Mutex::new(Some(asked)),
            retiring: Mutex::default(),
            shared,
        });
        let shared = &scp.shared;
        let answers = shared.answers.clone();
        registry.observe(&crate::events::ANSWERS, move || answers.len() as f64);
        let answers = shared.answers.clone();
        registry.observe(&crate::events::ANSWER_BYTES, move || answers.bytes() as f64);
        pages::observe_peers(registry, &shared.states);
        let client_settings = Arc::new(config.client.clone());
        let client = Client::with_names(client_settings, scp.client_tls.clone(), shared.names.clone());
        // These tasks end with the control thread.
        tokio::task::spawn_local(cut_rates(
            live.clone(),
            shared.network.clone(),
            shared.federation.clone(),
        ));
        tokio::task::spawn_local(crate::federation::send_reports(
            live.clone(),
            shared.federation.clone(),
            client.clone(),
            shared.names.clone(),
            shared.metrics.clone(),
        ));
        let learner = Learner {
            client,
            published: shared.network.clone(),
            vouched: shared.vouched.clone(),
            metrics: shared.metrics.clone(),
            alarms: shared.alarms.clone(),
            load: scp.load.clone(),
            callbacks: shared.callbacks.clone(),
            doubts: shared.doubts.clone(),
            health: opening.health.clone(),
        };
        let (drained, shutdown) = (opening.drained.clone(), opening.shutdown.clone());
        let ending = scp.clone();
        let control = async move {
            learner.run(sender, changes, followed, shutdown).await;
            // After the workers, so that their last copies are sent.
            drained.fired().await;
            ending.end_feeds();
        };
        Ok(Opened::new(scp, control))
    }

    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Live>,
        before: Option<&Rc<Pipeline>>,
    ) -> Rc<Pipeline> {
        let index = seat.context.index;
        let clients = before.map_or_else(|| self.clients(now), |before| before.clients().clone());
        let before = before.map(|before| &**before);
        Rc::new(Pipeline::new(&self.shared, now, &clients, index, before))
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let sampled = sampled(&front);
        tokio::task::spawn_local(front.clone().watch_load(|pipeline| pipeline.shedder(), sampled));
        let asked = (front.seat().context.index == 0)
            .then(|| front.function().asked.lock().take())
            .flatten();
        if let Some(asked) = asked {
            tokio::task::spawn_local(explain(front.clone(), asked));
        }
        let limits = Arc::new(front.seat().live.load().config.server.clone());
        let listeners = front.seat().listeners.clone();
        drop(beginning);
        listeners.serve(front, limits).await
    }

    fn reloaded(&self, before: &Arc<Live>, now: &Arc<Live>) {
        let same_nrfs = before.config.same_nrfs(&now.config);
        let answers = &self.shared.answers;
        answers.reconfigure(now.config.discovery.limits(), same_nrfs);
        now.tokens
            .reconfigure(TokenLimits::of(&now.config.security.tokens));
        self.settings.send_replace(now.config.clone());
        let old = before.feed.as_ref();
        let stays = |old: &&Arc<_>| now.feed.as_ref().is_some_and(|feed| Arc::ptr_eq(feed, old));
        if let Some(old) = old.filter(|old| !stays(old)).cloned() {
            let mut retiring = self.retiring.lock();
            retiring.retain(|one| !one.is_finished());
            retiring.push(std::thread::spawn(move || old.retire()));
        }
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&Arc::downgrade(self))
    }

    fn metrics() -> Vec<Declaration> {
        crate::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![NRF_UNREACHABLE, SET_UNAVAILABLE]
    }

    fn beside(config: &mut Config, admins: &[SocketAddr]) {
        config.other_admins = admins.to_vec();
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}

impl Answer for Pipeline {
    const OPERATIONS: &'static [&'static str] = &["relay"];

    fn operation(_: &Request) -> usize {
        0
    }

    // No future around another one: the request would be copied into both.
    fn answer(self: Rc<Self>, request: Request) -> impl Future<Output = Response> {
        Self::answer(self, request)
    }

    fn complete(&self, response: &mut Response) {
        self.sign(response);
    }
}

impl Scp {
    /// Ends the feeds, and waits until they have sent their remaining copies. Blocks.
    fn end_feeds(&self) {
        if let Some(feed) = &self.shared.live.load().feed {
            feed.stop();
        }
        for one in std::mem::take(&mut *self.retiring.lock()) {
            if one.join().is_err() {
                tracing::error!("the end of a feed panicked; see the log");
            }
        }
    }
}

/// Runs after each sample of a worker's load.
fn sampled(front: &Front<Scp>) -> impl Fn(&Pipeline) + use<> {
    let (scp, worker) = (front.function().clone(), front.seat().context.index);
    let (name, metrics) = (worker.to_string(), &scp.shared.metrics);
    let (level, cache) = (metrics.overload.get(&[&name]), metrics.cache.get(&[&name]));
    let (route_cache, targets) = (metrics.route_cache.get(&[&name]), metrics.targets.get(&[&name]));
    let written = Cell::new(Instant::now());
    let listeners = front.seat().listeners.clone();
    move |pipeline| {
        let most = pipeline.live.config.server.max_memory.bytes();
        let held = listeners.stats().nth(worker).map_or(0, |stats| stats.memory_held);
        pipeline.sampled(share_of(held, most));
        let now = Instant::now();
        if now.saturating_duration_since(written.get()) >= WRITTEN_EVERY {
            written.set(now);
            scp.shared.states.write(worker, pipeline.peer_states());
        }
        level.set(pipeline.shedder().level() as f64);
        cache.set(pipeline.cached_discoveries() as f64);
        route_cache.set(pipeline.route_cache_bytes() as f64);
        targets.set(pipeline.remembered_targets() as f64);
        if worker == 0 {
            scp.load.store(pipeline.load_percent(), Ordering::Relaxed);
        }
    }
}

/// Share of `held` in `most`, in percent; 0 without a bound.
fn share_of(held: u64, most: u64) -> u8 {
    let percent = held.saturating_mul(100).checked_div(most).unwrap_or(0);
    u8::try_from(percent).unwrap_or(u8::MAX).min(100)
}

/// Answers the questions of `scp why`.
async fn explain(front: Rc<Front<Scp>>, mut asked: mpsc::Receiver<Question>) {
    while let Some(question) = asked.recv().await {
        front.worker().explain(question).await;
    }
}

/// The names and addresses of this SCP.
fn own_names(config: &Config, addresses: &[SocketAddr]) -> OwnNames {
    let origin = config.root().parse::<sbi::client::Origin>().ok();
    OwnNames::new(
        addresses,
        origin.as_ref().map(|origin| origin.authority()),
        &config.fqdn,
        &config.names,
    )
}

/// The resolver of names. If the name servers of the system cannot be read and no setting needs them, the system
/// resolves names.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let needed = !config.dns.servers.is_empty() || config.policies.iter().any(|one| one.dns_srv_alternates);
    match Dns::start(&config.dns) {
        Ok(names) => Ok(Some(names)),
        Err(error) if needed => Err(StartError::io("starting to resolve names")(error)),
        Err(error) => {
            tracing::warn!(%error, "name servers of the system cannot be read; the system resolver is used");
            Ok(None)
        }
    }
}

/// Recalculates the shares of rates at every interval.
async fn cut_rates(live: Arc<Current>, network: Arc<ArcSwap<Network>>, federation: Arc<Federation>) {
    let mut tick = tokio::time::interval(crate::protection::CUT);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = tick.tick().await;
    loop {
        let now = tick.tick().await;
        let live = live.load_full();
        let own = &*live.config.nf_instance_id;
        let network = network.load();
        let scps = network
            .producers()
            .filter(|one| &*one.nf_type == "SCP" && one.status == NfStatus::Registered && *one.id != *own);
        let settings = &live.config.protection.federation;
        let others = federation.others(settings, Instant::now());
        let scps = match &others {
            Some(_) => settings.peers.len() + 1,
            None => scps.count() + 1,
        };
        let passed = now.saturating_duration_since(last);
        live.rates.cut(scps, others.as_ref(), passed);
        last = now;
    }
}
