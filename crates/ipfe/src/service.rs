//! Wires the front end together: workers that accept and carry connections, and one that looks after processors.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use telemetry::{Alarms, Health, Registry};
use tokio::net::{TcpListener, TcpStream};
use worker::{Pinning, Shutdown, Threads, WorkerContext};

use crate::backend::{BackendRow, Set};
use crate::check::look_after;
use crate::config::Config;
use crate::error::StartError;
use crate::metrics::{self, Counters};
use crate::splice::carry;

/// After accepting failed (no descriptors left, usually), nothing is accepted for so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running front end. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    addresses: Vec<SocketAddr>,
    sets: Vec<Arc<Set>>,
    metrics: Registry,
    alarms: Alarms,
    health: Health,
    threads: Threads,
}

/// A listener before it belongs to a runtime, and whose it is.
type Bound = (std::net::TcpListener, Arc<Set>);

/// Starts a front end: binds everything. Blocks until it listens.
///
/// # Errors
/// When an address cannot be bound; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    let count = worker::count(config.workers);
    let sets: Vec<Arc<Set>> = config
        .target_sets
        .iter()
        .map(|set| Arc::new(Set::new(set)))
        .collect();
    let (listeners, addresses) = bind(&config, &sets, count)?;
    let (registry, counters) = metrics::register(&sets);
    let alarms = Alarms::new(&registry);
    let places: Vec<_> = listeners.into_iter().map(Some).collect();
    let places = Arc::new(std::sync::Mutex::new(places));
    let shutdown = Shutdown::new();
    let (known, watched, settings) = (sets.clone(), alarms.clone(), Arc::new(config));
    let workers = worker::spawn(count, "ipfe", &Pinning::Free, &shutdown, move |context| {
        let mine = places
            .lock()
            .ok()
            .and_then(|mut places| places.get_mut(context.index)?.take());
        let (sets, alarms) = (known.clone(), watched.clone());
        run(
            context,
            mine.unwrap_or_default(),
            sets,
            alarms,
            counters.clone(),
            settings.clone(),
        )
    })
    .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        addresses,
        sets,
        metrics: registry,
        alarms,
        health: Health::new(),
        threads: Threads::new(shutdown, workers),
    })
}

/// Listeners for each worker, and the addresses in the order of the configuration.
fn bind(
    config: &Config,
    sets: &[Arc<Set>],
    workers: usize,
) -> Result<(Vec<Vec<Bound>>, Vec<SocketAddr>), StartError> {
    let mut listeners: Vec<Vec<Bound>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for (settings, set) in config.target_sets.iter().zip(sets) {
        for wanted in settings.listen.iter() {
            let (bound, address) = worker::bind_each(wanted, workers, |address| {
                let listener = worker::bind(address).and_then(|one| Ok((one.local_addr()?, one)));
                let listener = listener.map_err(StartError::io(format!("listening at {address}")));
                listener.map(|(at, listener)| (listener, at))
            })?;
            for (mine, listener) in listeners.iter_mut().zip(bound) {
                mine.push((listener, set.clone()));
            }
            addresses.push(address);
        }
    }
    Ok((listeners, addresses))
}

/// The life of a worker.
async fn run(
    context: WorkerContext,
    listeners: Vec<Bound>,
    sets: Vec<Arc<Set>>,
    alarms: Alarms,
    counters: Counters,
    config: Arc<Config>,
) -> std::io::Result<()> {
    let mut tasks = Vec::new();
    if context.index == 0 {
        for set in &sets {
            for backend in &set.backends {
                let task = look_after(set.clone(), backend.clone(), config.check.clone(), alarms.clone());
                tasks.push(tokio::task::spawn_local(task));
            }
        }
    }
    for (listener, set) in listeners {
        let listener = TcpListener::from_std(listener)?;
        let task = accept(listener, set, counters.clone(), config.connect.duration());
        tasks.push(tokio::task::spawn_local(task));
    }
    context.shutdown.fired().await;
    // No new connections; those that stand may end by themselves for a while.
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let end = tokio::time::Instant::now() + config.drain.duration();
    let any = || {
        sets.iter()
            .flat_map(|set| &set.backends)
            .any(|one| one.connections() > 0)
    };
    while any() && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn accept(listener: TcpListener, set: Arc<Set>, counters: Counters, connect: Duration) {
    loop {
        match listener.accept().await {
            Ok((client, remote)) => {
                if set.is_full() {
                    counters.full.inc();
                    continue;
                }
                let (set, counters) = (set.clone(), counters.clone());
                tokio::task::spawn_local(async move {
                    if let Err(error) = serve(client, &set, &counters, connect).await {
                        tracing::debug!(%remote, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "nothing can be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Finds a processor for a connection and carries it to its end.
async fn serve(
    client: TcpStream,
    set: &Arc<Set>,
    counters: &Counters,
    patience: Duration,
) -> std::io::Result<()> {
    let mut tried = Vec::new();
    // Closing without a byte: the client connects again, or elsewhere.
    while let Some(counted) = set.choose(&tried) {
        let attempt = TcpStream::connect(counted.backend.address);
        match tokio::time::timeout(patience, attempt).await {
            Ok(Ok(backend)) => {
                counters.accepted.inc();
                client.set_nodelay(true)?;
                backend.set_nodelay(true)?;
                return carry(&client, &backend, &counted.backend.bytes).await;
            }
            Ok(Err(_)) | Err(_) => {
                counters.retried.inc();
                tried.push(counted.backend.address);
            }
        }
    }
    counters.unavailable.inc();
    Ok(())
}

impl Running {
    /// Where it listens, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its metrics.
    #[must_use]
    pub fn metrics(&self) -> &Registry {
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

    /// The message processors, as they stand.
    #[must_use]
    pub fn backends(&self) -> Vec<BackendRow> {
        self.sets
            .iter()
            .flat_map(|set| set.rows().collect::<Vec<_>>())
            .collect()
    }

    /// Takes no more connections, waits a little for those that stand, and ends them. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(self) -> std::io::Result<()> {
        self.threads.stop()
    }
}
