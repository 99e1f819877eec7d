//! Wires the function together: workers, the control thread that learns the network, and what goes between.

mod admission;
mod alternates;
mod attempt;
mod authorize;
mod copy;
mod explain;
mod front;
mod mediate;
mod outgoing;
mod own;
mod patience;
mod reverse;
mod route;
mod running;
mod worker;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::thread::JoinHandle;
use std::time::Instant;

use ::worker::{Pinning, Shutdown, Threads, WorkerContext};
use arc_swap::ArcSwap;
use sbi::client::Client;
use sbi::dns::Dns;
use sbi::server::Interface;
use sbi::tls::Tls;
use telemetry::Registry;
use tokio::sync::{mpsc, watch};

use self::front::{Front, Parts};
use crate::config::Config;
use crate::discovery::Vouched;
use crate::error::StartError;
use crate::events::{DNS_ASKED, DNS_FAILED, DNS_NAMES, Metrics, PRODUCERS};
use crate::live::Live;
use crate::network::{Network, NfStatus};
use crate::peers::{Callbacks, Heard, Learner};
use crate::protection::Federation;

pub use running::Running;

/// Changes of the network that may wait to be applied; more are dropped, and the next audit finds them.
const WAITING_CHANGES: usize = 100_000;

/// Starts an SCP: binds, and serves at once; the network is learned meanwhile. Metrics are declared in
/// `registry`.
///
/// # Errors
/// When a setting, an address or a file cannot be used; nothing is left running then.
pub fn start(config: Config, registry: &Registry) -> Result<Running, StartError> {
    let tls = Tls::open(config.tls.as_ref(), config.client_tls.as_ref()).map_err(StartError::Config)?;
    let count = ::worker::count(config.workers);
    let interface = Interface::bind(config.listen.iter(), count, tls.server())?;

    // The URIs that the SCP hands out name the port it really has.
    let mut resolved = config;
    resolved.workers = count;
    if resolved.api_root.is_empty() {
        resolved.api_root = interface.root();
    }
    let config = Arc::new(resolved);
    let feed = crate::feed::start(&config, count, registry)?.map(Arc::new);
    let live = Live::new(config.clone(), feed).map_err(StartError::Config)?;
    let live = Arc::new(ArcSwap::from_pointee(live));
    let metrics = Metrics::new(registry);
    let statics = crate::peers::statics(&config);
    let network = Arc::new(ArcSwap::from_pointee(Network::new(statics.into_values())));
    observe(registry, &network);
    let names = names(&config)?;
    if let Some(names) = &names {
        observe_names(registry, names);
    }
    let shutdown = Shutdown::new();
    let load: Arc<AtomicU8> = Arc::default();
    let (sender, changes) = mpsc::channel(WAITING_CHANGES);

    let federation: Arc<Federation> = Arc::default();
    let callbacks: Arc<Callbacks> = Arc::default();
    let (settings, followed) = watch::channel(config.clone());
    let vouched = Arc::new(Vouched::new(config.nrf.max_producers));
    let learning = Learning {
        federation: federation.clone(),
        config: config.clone(),
        tls: tls.clone(),
        names: names.clone(),
        settings: followed,
        published: network.clone(),
        vouched: vouched.clone(),
        metrics: metrics.clone(),
        load: load.clone(),
        live: live.clone(),
        callbacks: callbacks.clone(),
    };
    observe_live(registry, &live);
    let control = control(learning, sender.clone(), changes, shutdown.clone())?;
    let own: Arc<[String]> = own_authorities(&config, interface.addresses()).into();
    let parts = Parts {
        live: live.clone(),
        network: network.clone(),
        changes: sender,
        callbacks,
        vouched,
        client_tls: tls.client(),
        names,
        metrics,
        load,
        own,
        registry: registry.clone(),
        board: Arc::default(),
        federation,
    };
    let interface = Arc::new(interface);
    let offered = interface.clone();
    let run = move |context: WorkerContext| {
        let (parts, interface) = (parts.clone(), offered.clone());
        async move {
            let limits = Arc::new(parts.live.load().config.server.clone());
            let front = Rc::new(Front::new(parts, context.index));
            tokio::task::spawn_local(front.clone().watch_load());
            interface.serve(&context, front, limits).await
        }
    };
    let pinning = Pinning::to(&config.cores);
    let workers = ::worker::spawn(count, "scp", &pinning, &shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        interface,
        network,
        live,
        settings,
        tls,
        threads: Threads::new(shutdown, workers).and(control),
        registry: registry.clone(),
        retiring: parking_lot::Mutex::default(),
    })
}

/// The authorities under which this SCP is reached: a request for one of them is not for a producer.
fn own_authorities(config: &Config, addresses: &[SocketAddr]) -> Vec<String> {
    let mut own: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let root = config.root();
    if let Ok(origin) = root.parse::<sbi::client::Origin>() {
        own.push(origin.authority().to_owned());
    }
    for address in addresses {
        own.push(format!("{}:{}", config.fqdn, address.port()));
        own.push(format!("localhost:{}", address.port()));
    }
    own.push(config.fqdn.clone());
    own
}

fn observe(registry: &Registry, network: &Arc<ArcSwap<Network>>) {
    let network = network.clone();
    registry.observe_all(&PRODUCERS, move || {
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for producer in network.load().producers() {
            *counts.entry(producer.nf_type.to_string()).or_default() += 1;
        }
        counts
            .into_iter()
            .map(|(nf_type, count)| (vec![nf_type], count as f64))
            .collect()
    });
}

fn observe_live(registry: &Registry, live: &Arc<ArcSwap<Live>>) {
    let feeding = live.clone();
    registry.observe(&crate::feed::BUFFERED, move || {
        feeding.load().feed.as_ref().map_or(0, |feed| feed.buffered()) as f64
    });
    let live = live.clone();
    registry.observe(&crate::security::TOKEN_CACHE, move || {
        live.load().tokens.len() as f64
    });
}

/// What resolves names. Where the system's name servers cannot be read and nothing needs them, the system
/// resolves.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let needed = !config.dns.servers.is_empty() || config.policies.iter().any(|one| one.dns_srv_alternates);
    match Dns::start(&config.dns) {
        Ok(names) => Ok(Some(names)),
        Err(error) if needed => Err(StartError::io("starting to resolve names")(error)),
        Err(error) => {
            tracing::warn!(%error, "the system resolves names");
            Ok(None)
        }
    }
}

fn observe_names(registry: &Registry, names: &Dns) {
    let of = |value: fn(sbi::dns::DnsStats) -> f64| {
        let names = names.clone();
        move || value(names.stats())
    };
    registry.observe(&DNS_NAMES, of(|stats| stats.names as f64));
    registry.observe(&DNS_ASKED, of(|stats| stats.asked as f64));
    registry.observe(&DNS_FAILED, of(|stats| stats.failed as f64));
}

/// What the control thread needs to learn the network; its client is made there, as it belongs to one thread.
struct Learning {
    config: Arc<Config>,
    tls: Arc<Tls>,
    names: Option<Dns>,
    settings: watch::Receiver<Arc<Config>>,
    published: Arc<ArcSwap<Network>>,
    vouched: Arc<Vouched>,
    metrics: Metrics,
    load: Arc<AtomicU8>,
    live: Arc<ArcSwap<Live>>,
    federation: Arc<Federation>,
    callbacks: Arc<Callbacks>,
}

/// Cuts the shares of rates anew, again and again.
async fn cut_rates(live: Arc<ArcSwap<Live>>, network: Arc<ArcSwap<Network>>, federation: Arc<Federation>) {
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

/// Starts the control thread, which learns the network.
fn control(
    learning: Learning,
    sender: mpsc::Sender<Heard>,
    changes: mpsc::Receiver<Heard>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, StartError> {
    let run = move || async move {
        let federation = learning.federation;
        let cutting = cut_rates(
            learning.live.clone(),
            learning.published.clone(),
            federation.clone(),
        );
        let settings = Arc::new(learning.config.client.clone());
        let client = Client::with_names(settings, learning.tls.client(), learning.names.clone());
        let telling = crate::peers::federation::tell(
            learning.live,
            federation,
            client.clone(),
            learning.names,
            learning.metrics.clone(),
        );
        let learner = Learner {
            client,
            published: learning.published,
            vouched: learning.vouched,
            metrics: learning.metrics,
            load: learning.load,
            callbacks: learning.callbacks,
        };
        // They end with the thread.
        tokio::task::spawn_local(cutting);
        tokio::task::spawn_local(telling);
        tokio::task::spawn_local(learning.tls.follow());
        learner.run(sender, changes, learning.settings, shutdown).await;
    };
    ::worker::control("scp-control", run).map_err(StartError::io("starting the control thread"))
}
