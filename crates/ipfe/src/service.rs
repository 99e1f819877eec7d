//! The front end as a network function: workers accept and carry connections, the control thread checks processors.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use function::live::Effective;
use function::{
    Common, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
};
use parking_lot::Mutex;
use telemetry::Declaration;
use tokio::net::{TcpListener, TcpStream};

use crate::backend::{BackendRow, Set};
use crate::check::look_after;
use crate::config::Config;
use crate::metrics::{self, Counters};
use crate::pages;
use crate::splice::{bound_silence, carry};

/// After accepting failed (no descriptors left, usually), nothing is accepted for so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which a worker that drains checks whether connections are left.
const DRAIN_CHECK: Duration = Duration::from_millis(20);

/// An IP front end: what its threads share.
#[derive(Debug)]
pub struct Ipfe {
    sets: Vec<Arc<Set>>,
    counters: Counters,
}

/// A running front end.
pub type Running = function::Running<Ipfe>;

/// Starts a front end: binds everything. Blocks until it listens.
///
/// # Errors
/// When an address cannot be bound; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// A listener, and the target set whose address it has.
type SetListener = (std::net::TcpListener, Arc<Set>);

/// Target sets, and the listeners of every worker.
#[derive(Debug)]
pub struct Bound {
    sets: Vec<Arc<Set>>,
    /// By worker, which takes its own.
    listeners: Mutex<Vec<Vec<SetListener>>>,
    addresses: Vec<SocketAddr>,
}

impl Bound {
    fn new(config: &Config, workers: usize) -> Result<Self, StartError> {
        let sets: Vec<Arc<Set>> = config
            .target_sets
            .iter()
            .map(|set| Arc::new(Set::new(set)))
            .collect();
        let mut listeners: Vec<Vec<SetListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for (settings, set) in config.target_sets.iter().zip(&sets) {
            for wanted in settings.listen.iter() {
                let (bound, address) = worker::bind_each(wanted, workers, |address| {
                    let listener = worker::bind(address).and_then(|one| Ok((one.local_addr()?, one)));
                    let listener = listener.map_err(|source| StartError::Listen { address, source });
                    listener.map(|(at, listener)| (listener, at))
                })?;
                for (mine, listener) in listeners.iter_mut().zip(bound) {
                    mine.push((listener, set.clone()));
                }
                addresses.push(address);
            }
        }
        Ok(Self {
            sets,
            listeners: Mutex::new(listeners),
            addresses,
        })
    }
}

impl Listeners for Bound {
    /// They listen from the moment they are bound; workers accept.
    fn listen(&self) -> Result<(), StartError> {
        Ok(())
    }

    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let addresses = self.addresses.iter();
        addresses.map(|address| ("TCP", address.to_string())).collect()
    }
}

impl NetworkFunction for Ipfe {
    const NAME: &'static str = "ipfe";
    const TITLE: &'static str = "IP front end";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = ();
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        let sets = config.target_sets.iter().enumerate();
        let listens = sets.map(|(index, set)| listening(&format!("targetSets[{index}].listen"), &set.listen));
        Common {
            admin: config.admin,
            listen: listens.flatten().collect(),
            workers: config.workers,
            cores: &[],
            tls: None,
            client_tls: None,
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        Bound::new(config, workers)
    }

    fn derive(_: &Arc<Config>, _: Option<&Effective<Config, ()>>) -> Result<(), String> {
        Ok(())
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let sets = opening.listeners.sets.clone();
        let check = opening.live.load().config.check.clone();
        for set in &sets {
            for backend in &set.backends {
                // These tasks end with the control thread.
                let task = look_after(
                    set.clone(),
                    backend.clone(),
                    check.clone(),
                    opening.alarms.clone(),
                );
                tokio::task::spawn_local(task);
            }
        }
        let counters = metrics::observe(&opening.registry, &sets);
        let drained = opening.drained;
        Ok(Opened::new(Arc::new(Self { sets, counters }), async move {
            drained.fired().await;
        }))
    }

    fn worker(
        self: &Arc<Self>,
        _: &Seat<Self>,
        _: &Arc<Effective<Config, ()>>,
        _: Option<&Rc<()>>,
    ) -> Rc<()> {
        Rc::default()
    }

    async fn serve(front: Rc<Front<Self>>) -> io::Result<()> {
        let (seat, ipfe) = (front.seat(), front.function());
        let config = seat.live.load().config.clone();
        let mine = seat
            .listeners
            .listeners
            .lock()
            .get_mut(seat.context.index)
            .map(std::mem::take);
        let mut tasks = Vec::new();
        for (listener, set) in mine.unwrap_or_default() {
            let listener = TcpListener::from_std(listener)?;
            let task = accept(listener, set, ipfe.counters.clone(), config.clone());
            tasks.push(tokio::task::spawn_local(task));
        }
        seat.context.shutdown.fired().await;
        // No new connections; open ones may end by themselves for a while.
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let end = tokio::time::Instant::now() + config.drain.duration();
        let any = || {
            let mut backends = ipfe.sets.iter().flat_map(|set| &set.backends);
            backends.any(|one| one.connections() > 0)
        };
        while any() && tokio::time::Instant::now() < end {
            tokio::time::sleep(DRAIN_CHECK).await;
        }
        Ok(())
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.sets)
    }

    fn metrics() -> Vec<Declaration> {
        metrics::METRICS.to_vec()
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox ipfe backends".to_owned()]
    }
}

impl Ipfe {
    /// The message processors and their state.
    #[must_use]
    pub fn backends(&self) -> Vec<BackendRow> {
        let rows = self.sets.iter().map(|set| set.rows().collect::<Vec<_>>());
        rows.flatten().collect()
    }
}

async fn accept(listener: TcpListener, set: Arc<Set>, counters: Counters, config: Arc<Config>) {
    loop {
        match listener.accept().await {
            Ok((client, remote)) => {
                if set.is_full() {
                    counters.full.inc();
                    continue;
                }
                let (set, counters, config) = (set.clone(), counters.clone(), config.clone());
                tokio::task::spawn_local(async move {
                    if let Err(error) = serve(client, &set, &counters, &config).await {
                        tracing::debug!(%remote, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "connections cannot be accepted");
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
    config: &Config,
) -> std::io::Result<()> {
    let mut tried = Vec::new();
    // Closing without a byte: the client connects again, or elsewhere.
    while let Some(counted) = set.choose(&tried) {
        let attempt = TcpStream::connect(counted.backend.address);
        match tokio::time::timeout(config.connect.duration(), attempt).await {
            Ok(Ok(backend)) => {
                counters.accepted.inc();
                client.set_nodelay(true)?;
                backend.set_nodelay(true)?;
                for side in [&client, &backend] {
                    bound_silence(side, config.silence.duration())?;
                }
                let linger = config.linger.duration();
                return carry(&client, &backend, &counted.backend.bytes, linger).await;
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
