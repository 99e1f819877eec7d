//! Wires the function together: workers, the control thread that learns the network, and what goes between.

mod attempt;
mod authorize;
mod copy;
mod explain;
mod mediate;
mod outgoing;
mod route;
mod running;
mod worker;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::thread::JoinHandle;

use ::worker::{Pinning, Shutdown, WorkerContext};
use arc_swap::ArcSwap;
use sbi::client::Client;
use sbi::server::{self, ServerStats};
use telemetry::Registry;
use tokio::sync::mpsc;

use self::worker::{Front, Parts};
use crate::config::Config;
use crate::error::StartError;
use crate::events::{Metrics, PRODUCERS};
use crate::live::Live;
use crate::network::{Network, NfStatus};
use crate::peers::{Change, Learner};

pub use running::Running;

/// Changes of the network that may wait to be applied; more are dropped, and the next audit finds them.
const WAITING_CHANGES: usize = 100_000;

/// Starts an SCP: binds, and serves at once; the network is learned meanwhile. Metrics are declared in
/// `registry`.
///
/// # Errors
/// When a setting, an address or a file cannot be used; nothing is left running then.
pub fn start(config: Config, registry: &Registry) -> Result<Running, StartError> {
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

    // The URIs that the SCP hands out name the port it really has.
    let mut resolved = config;
    resolved.workers = count;
    if resolved.api_root.is_empty() {
        let scheme = if resolved.tls.is_some() { "https" } else { "http" };
        resolved.api_root = addresses
            .first()
            .map(|address| format!("{scheme}://{address}"))
            .unwrap_or_default();
    }
    let config = Arc::new(resolved);
    let live = Live::new(config.clone()).map_err(StartError::Config)?;
    let live = Arc::new(ArcSwap::from_pointee(live));
    let metrics = Metrics::new(registry);
    let statics = crate::peers::statics(&config);
    let network = Arc::new(ArcSwap::from_pointee(Network::new(statics.into_values())));
    observe(registry, &network);
    let shutdown = Shutdown::new();
    let servers: Vec<Arc<ServerStats>> = (0..count).map(|_| Arc::default()).collect();
    let load: Arc<AtomicU8> = Arc::default();
    let (sender, changes) = mpsc::channel(WAITING_CHANGES);

    let learning = Learning {
        config: config.clone(),
        client_tls: client_tls.clone(),
        published: network.clone(),
        metrics: metrics.clone(),
        load: load.clone(),
        live: live.clone(),
    };
    let feed = crate::feed::start(&config, count, registry)?.map(Arc::new);
    observe_tokens(registry, &live);
    let control = control(learning, sender.clone(), changes, shutdown.clone())?;
    let listeners = Arc::new(parking_lot::Mutex::new(listeners));
    let pinning = match config.cores.is_empty() {
        true => Pinning::Free,
        false => Pinning::Cores(config.cores.clone()),
    };
    let own: Arc<[String]> = own_authorities(&config, &addresses).into();
    let parts = Parts {
        live: live.clone(),
        network: network.clone(),
        changes: sender,
        client_tls,
        metrics,
        load,
        own,
        registry: registry.clone(),
        feed: feed.clone(),
        board: Arc::default(),
    };
    let worker_servers = servers.clone();
    let workers = ::worker::spawn(
        count,
        "scp",
        &pinning,
        &shutdown,
        move |context: WorkerContext| {
            let mine = std::mem::take(&mut listeners.lock()[context.index]);
            let stats = worker_servers[context.index].clone();
            let (parts, tls) = (parts.clone(), server_tls.clone());
            async move {
                let limits = Arc::new(parts.live.load().config.server.clone());
                let front = Rc::new(Front::new(parts, context.index));
                tokio::task::spawn_local(front.clone().watch_load());
                let serving = mine.into_iter().map(|listener| {
                    let (front, limits, tls) = (front.clone(), limits.clone(), tls.clone());
                    server::serve(
                        listener,
                        front,
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
        network,
        live,
        servers,
        shutdown,
        workers: Some(workers),
        control: Some(control),
        feed,
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

fn observe_tokens(registry: &Registry, live: &Arc<ArcSwap<Live>>) {
    let live = live.clone();
    registry.observe(&crate::security::TOKEN_CACHE, move || {
        live.load().tokens.len() as f64
    });
}

/// What the control thread needs to learn the network; its client is made there, as it belongs to one thread.
struct Learning {
    config: Arc<Config>,
    client_tls: Option<Arc<rustls::ClientConfig>>,
    published: Arc<ArcSwap<Network>>,
    metrics: Metrics,
    load: Arc<AtomicU8>,
    live: Arc<ArcSwap<Live>>,
}

/// Cuts the shares of rates anew, again and again.
async fn cut_rates(live: Arc<ArcSwap<Live>>, network: Arc<ArcSwap<Network>>) {
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
        live.rates
            .cut(scps.count() + 1, now.saturating_duration_since(last));
        last = now;
    }
}

/// Starts the control thread, which learns the network.
fn control(
    learning: Learning,
    sender: mpsc::Sender<Change>,
    changes: mpsc::Receiver<Change>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, StartError> {
    let run = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "the control runtime could not be started; the network is not learned");
                return;
            }
        };
        let cutting = cut_rates(learning.live, learning.published.clone());
        let learner = Learner {
            client: Client::new(Arc::new(learning.config.client.clone()), learning.client_tls),
            config: learning.config,
            published: learning.published,
            metrics: learning.metrics,
            load: learning.load,
        };
        tokio::task::LocalSet::new().block_on(&runtime, async {
            // It ends with the runtime.
            tokio::task::spawn_local(cutting);
            learner.run(sender, changes, shutdown).await;
        });
    };
    std::thread::Builder::new()
        .name("scp-control".to_owned())
        .spawn(run)
        .map_err(StartError::io("starting the control thread"))
}
