//! Wires the router together: workers, their nodes, and the way a configuration reaches them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use diameter::proto::known::disconnect_cause;
use diameter::{BoundListener, Directory, Node, Seat};
use parking_lot::Mutex;
use telemetry::{Alarms, Health};
use tokio::sync::watch;
use worker::{Pinning, Shutdown, Threads, WorkerContext};

use crate::config::Config;
use crate::error::StartError;
use crate::events::{Counters, Event};
use crate::keys::Keys;
use crate::listen::{Parts, bind};
use crate::metrics;
use crate::pages::{self, PeerRow, RouteRow};
use crate::peers::{Known, peer_config};
use crate::registry::{ByHost, Registry};
use crate::router::{Core, Gauges, Mailbox, Post, Router, Tools};
use crate::snapshot::{Loader, Snapshot};
use crate::trace;
use crate::watch::{IndicatorRow, Indicators, run as run_control};

/// The keys of the configuration that change while a router runs.
pub const LIVE: &[&str] = &[
    "peers",
    "dynamicPeers",
    "routing",
    "applications",
    "ingress",
    "throttleGroups",
    "overload",
    "topologyHiding",
    "indicators",
    "trace",
];

/// A peer whose connection changes leaves first; so often is looked whether it has.
const FOLLOW: std::time::Duration = std::time::Duration::from_millis(100);

/// A running router. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    metrics: telemetry::Registry,
    alarms: Alarms,
    health: Health,
    threads: Threads,
}

/// What workers and control share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    pub(crate) snapshot: watch::Sender<Arc<Snapshot>>,
    pub(crate) counters: Vec<Arc<Counters>>,
    pub(crate) reports: Vec<ArcSwap<Vec<PeerRow>>>,
    pub(crate) gauges: Arc<Vec<Gauges>>,
    pub(crate) indicators: Indicators,
    keys: Keys,
    loader: Mutex<Loader>,
}

impl Shared {
    /// How often something has happened, over all workers.
    pub(crate) fn count(&self, event: Event) -> u64 {
        self.counters.iter().map(|counters| counters.get(event)).sum()
    }

    /// Changes the configuration and has workers follow it.
    fn publish(&self, change: impl FnOnce(&mut Config)) -> Result<(), String> {
        // One at a time: each changes what the one before has left, and has a version of its own.
        let mut loader = self.loader.lock();
        let before = self.snapshot.borrow().clone();
        let mut config = Config::clone(&before.config);
        change(&mut config);
        let version = before.version.wrapping_add(1);
        let workers = self.counters.len();
        let snapshot = Snapshot::compile(Arc::new(config), version, &self.registry, workers, &mut loader)?;
        self.snapshot.send_replace(Arc::new(snapshot));
        Ok(())
    }

    /// Reads files again that have changed.
    pub(crate) fn follow_files(&self, now: Instant) {
        let named = self.snapshot.borrow().config.clone();
        self.keys.follow(&named, now);
        if !self.loader.lock().is_stale() {
            return;
        }
        match self.publish(|_| ()) {
            Ok(()) => tracing::info!("a file of ranges has changed and was read again"),
            Err(reason) => tracing::error!(reason, "a file of ranges has changed and cannot be used"),
        }
    }
}

/// Starts a router: binds, and connects to its peers. Blocks until it listens.
///
/// # Errors
/// When a setting, an address or a file cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    let config = Arc::new(config);
    let count = worker::count(config.workers);
    // TLS files are read once here so that mistakes in them keep the router from starting.
    let keys = Keys::default();
    let parts = Parts::load(&config, &keys).map_err(StartError::Config)?;
    let (listeners, addresses) = bind(&config, &parts, count)?;
    let registry = Arc::<Registry>::default();
    let mut loader = Loader::default();
    let snapshot = Snapshot::compile(config.clone(), 1, &registry, count, &mut loader);
    let snapshot = Arc::new(snapshot.map_err(StartError::Config)?);
    let shared = Arc::new(Shared {
        registry,
        snapshot: watch::Sender::new(snapshot),
        counters: (0..count).map(|_| Arc::default()).collect(),
        reports: (0..count).map(|_| ArcSwap::default()).collect(),
        gauges: Arc::new((0..count).map(|_| Gauges::default()).collect()),
        indicators: Indicators::default(),
        keys,
        loader: Mutex::new(loader),
    });
    let (tracer, records) = std::sync::mpsc::sync_channel(trace::QUEUE);
    let registry = metrics::register(&Arc::downgrade(&shared));
    let tools = Tools {
        gauges: shared.gauges.clone(),
        hold: registry.histogram(&metrics::HOLD),
        tracer,
    };
    let hold = tools.hold.clone();
    let mut seats: Vec<Vec<Seat>> = (0..count).map(|_| Vec::new()).collect();
    for _ in &config.local_nodes {
        for (seats, seat) in seats.iter_mut().zip(Directory::seats(count)) {
            seats.push(seat);
        }
    }
    let places: Vec<Option<Place>> = worker::posts(count, config.limits.handover)
        .into_iter()
        .zip(seats.into_iter().zip(listeners))
        .map(|((post, mailbox), (seats, listeners))| {
            Some(Place {
                post,
                mailbox,
                seats,
                listeners,
            })
        })
        .collect();
    let places = Arc::new(Mutex::new(places));
    let pinning = Pinning::to(&config.cores);
    let shutdown = Shutdown::new();
    let for_workers = shared.clone();
    let workers = worker::spawn(
        count,
        "dsr",
        &pinning,
        &shutdown,
        move |context: WorkerContext| {
            let place = places.lock()[context.index].take();
            let (shared, parts, tools) = (for_workers.clone(), parts.clone(), tools.clone());
            async move {
                let place = place.ok_or_else(|| std::io::Error::other("a worker was started twice"))?;
                run(context, shared, parts, place, tools).await
            }
        },
    )
    .map_err(StartError::io("starting the workers"))?;
    let alarms = Alarms::new(&registry);
    let health = Health::new();
    let room = health.component("message processors");
    room.ready();
    let control = std::thread::Builder::new()
        .name("dsr-control".to_owned())
        .spawn({
            let (seen, alarms, shutdown) = (Arc::downgrade(&shared), alarms.clone(), shutdown.clone());
            move || run_control(&seen, &alarms, &room, &records, hold, &shutdown)
        })
        .map_err(StartError::io("starting the control thread"))?;
    Ok(Running {
        addresses,
        alarms,
        metrics: registry,
        health,
        shared,
        threads: Threads::new(shutdown, workers).and(control),
    })
}

/// What one worker owns.
struct Place {
    post: Post,
    mailbox: Mailbox,
    seats: Vec<Seat>,
    /// Per local node.
    listeners: Vec<Vec<BoundListener>>,
}

/// The life of a worker.
async fn run(
    context: WorkerContext,
    shared: Arc<Shared>,
    parts: Parts,
    place: Place,
    tools: Tools,
) -> std::io::Result<()> {
    let mut snapshots = shared.snapshot.subscribe();
    let first = snapshots.borrow_and_update().clone();
    let drain = first.config.drain.duration();
    let seed = seed() ^ (context.index as u64) << 48;
    let core = Core::new(
        context.index,
        first.clone(),
        shared.registry.clone(),
        place.post,
        shared.counters[context.index].clone(),
        tools,
        seed,
    );
    let nodes: Vec<Node<Router>> = parts
        .nodes
        .iter()
        .zip(place.seats)
        .enumerate()
        .map(|(index, ((config, _), seat))| {
            Node::new(
                config.clone(),
                core.router(index),
                Some(seat),
                seed.wrapping_add(index as u64),
            )
        })
        .collect();
    core.adopt(nodes.clone());
    for (node, (listeners, (_, security))) in nodes.iter().zip(place.listeners.into_iter().zip(&parts.nodes))
    {
        for listener in listeners {
            node.listen(listener, security.clone())?;
        }
    }
    let share = core_share(&first.config.cores, context.count);
    let tasks = [
        tokio::task::spawn_local(core.clone().deliver_post()),
        tokio::task::spawn_local(core.clone().take_post(place.mailbox)),
        tokio::task::spawn_local(core.clone().watch_load(share)),
        tokio::task::spawn_local(pages::report(core.clone(), shared.clone(), context.index)),
    ];
    let mut known = Known::default();
    let mut done = known.follow(&first, &nodes, &shared.registry, &shared.keys, context.index);
    loop {
        tokio::select! {
            () = context.shutdown.fired() => break,
            () = tokio::time::sleep(FOLLOW), if !done => {
                let now = snapshots.borrow().clone();
                done = known.follow(&now, &nodes, &shared.registry, &shared.keys, context.index);
            }
            changed = snapshots.changed() => {
                if changed.is_err() {
                    break;
                }
                let next = snapshots.borrow_and_update().clone();
                done = known.follow(&next, &nodes, &shared.registry, &shared.keys, context.index);
                core.reconfigure(next);
            }
        }
    }
    for node in &nodes {
        node.stop(drain, disconnect_cause::REBOOTING).await;
    }
    for task in tasks {
        task.abort();
    }
    core.disband();
    Ok(())
}

/// The part of a core that each worker can have.
fn core_share(cores: &[usize], workers: usize) -> f64 {
    let there = match cores {
        [] => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores.iter().collect::<std::collections::BTreeSet<_>>().len(),
    };
    (there as f64 / workers.max(1) as f64).min(1.0)
}

/// RFC 6733 §3: identifiers of two runs should differ.
fn seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

impl Running {
    /// Where it listens, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its metrics.
    #[must_use]
    pub fn metrics(&self) -> &telemetry::Registry {
        &self.metrics
    }

    /// Its alarms.
    #[must_use]
    pub fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    /// Whether it is well.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// How often something has happened, over all workers.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.shared.count(event)
    }

    /// How the peers stood at most half a second ago.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerRow> {
        pages::peers(&self.shared)
    }

    /// Every hop by the name of its peer in lower case.
    #[must_use]
    pub fn hops(&self) -> Arc<ByHost> {
        self.shared.registry.by_host()
    }

    /// The members of every route list, and how they stand.
    #[must_use]
    pub fn routes(&self) -> Vec<RouteRow> {
        pages::routes(&self.snapshot())
    }

    /// The configuration in effect.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot.borrow().clone()
    }

    /// Indicators as they stood a second ago.
    #[must_use]
    pub fn indicators(&self) -> Vec<IndicatorRow> {
        self.shared.indicators.lock().clone()
    }

    /// The congestion level of a message processor; 0 for none.
    #[must_use]
    pub fn congestion_level(&self, worker: usize) -> usize {
        self.shared.gauges.get(worker).map_or(0, Gauges::level)
    }

    /// The open connections of a message processor.
    #[must_use]
    pub fn connections_of(&self, worker: usize) -> i64 {
        self.shared.gauges.get(worker).map_or(0, Gauges::connections)
    }

    /// Has a message processor take this for its CPU load in percent, instead of what is measured; none: what
    /// is measured. For drills and tests.
    pub fn drive_load(&self, worker: usize, load: Option<f64>) {
        if let Some(gauges) = self.shared.gauges.get(worker) {
            gauges.drive(load);
        }
    }

    /// Changes what can be changed while it runs ([`LIVE`]), and reads files again. The rest of `config` is not
    /// looked at.
    ///
    /// # Errors
    /// When a file that it names cannot be used; nothing is changed then.
    pub fn reload(&self, config: &Config) -> Result<(), String> {
        for peer in &config.peers {
            peer_config(peer, &self.shared.keys).map_err(|reason| format!("peer {}: {reason}", peer.host))?;
        }
        let files = self.shared.keys.look()?;
        self.shared.publish(|next| {
            next.peers.clone_from(&config.peers);
            next.dynamic_peers.clone_from(&config.dynamic_peers);
            next.routing.clone_from(&config.routing);
            next.applications.clone_from(&config.applications);
            next.ingress = config.ingress;
            next.throttle_groups.clone_from(&config.throttle_groups);
            next.overload.clone_from(&config.overload);
            next.topology_hiding.clone_from(&config.topology_hiding);
            next.indicators.clone_from(&config.indicators);
            next.trace.clone_from(&config.trace);
        })?;
        files.take();
        Ok(())
    }

    /// Reads certificates, keys and trust again; handshakes from now on use them. Answers whether something has
    /// changed.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reread(&self) -> Result<bool, String> {
        Ok(self.shared.keys.look()?.take())
    }

    /// Finishes the requests under way, says goodbye to the peers and stops. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(self) -> std::io::Result<()> {
        self.threads.stop()
    }
}
