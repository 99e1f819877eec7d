//! The ENUM server as a network function.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use function::live::Effective;
use function::{
    Beginning, Common, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Declaration};

use crate::alarms::{DAMAGED, NO_PROFILE, UNWRITTEN};
use crate::config::Config;
use crate::control::Control;
use crate::metrics::{CHANGED, METRICS, Meters, Outcome};
use crate::pages;
use crate::tables::Tables;
use crate::transport::{self, Desk};

/// Interval at which alarms follow the counters.
const WATCH: Duration = Duration::from_secs(5);
/// Rounds without a new case, after which an alarm is cleared.
const QUIET: u32 = 12;

/// What helps against changes that are not in effect.
const ADVICE: &str = "import them into the file of numbers, and reload";

/// An ENUM server: what its threads share.
pub struct EnumServer {
    control: Arc<Control>,
}

/// A running ENUM server.
pub type Running = function::Running<EnumServer>;

/// Starts an ENUM server: binds everything. Blocks until it listens.
///
/// # Errors
/// When an address cannot be bound or a file cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// The sockets of every worker.
pub struct Bound {
    /// By worker, which takes its own.
    sockets: Mutex<Vec<Vec<(UdpSocket, TcpListener)>>>,
    addresses: Vec<SocketAddr>,
}

impl Bound {
    fn take(&self, worker: usize) -> Vec<(UdpSocket, TcpListener)> {
        self.sockets
            .lock()
            .get_mut(worker)
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

impl Listeners for Bound {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        self.addresses
            .iter()
            .map(|address| ("ENUM over UDP and TCP", address.to_string()))
            .collect()
    }
}

impl NetworkFunction for EnumServer {
    const NAME: &'static str = "enum";
    const TITLE: &'static str = "ENUM server";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Arc<Tables>;
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: "",
            listen: listening("listen", &config.listen),
            workers: config.workers,
            cores: &[],
            tls: None,
            client_tls: None,
            other_tls: None,
            directory: config.directory.as_deref(),
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        let mut sockets: Vec<Vec<(UdpSocket, TcpListener)>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for wanted in config.listen.iter() {
            let (bound, address) = worker::bind_each(wanted, workers, |address| {
                pair(address).map_err(|source| StartError::Listen { address, source })
            })?;
            for (mine, pair) in sockets.iter_mut().zip(bound) {
                mine.push(pair);
            }
            addresses.push(address);
        }
        Ok(Bound {
            sockets: Mutex::new(sockets),
            addresses,
        })
    }

    fn derive(
        config: &Arc<Config>,
        before: Option<&Effective<Config, Arc<Tables>>>,
    ) -> Result<Arc<Tables>, String> {
        Tables::load(config, before.map(|before| &*before.derived)).map(Arc::new)
    }

    /// The file of numbers, and the keys, are read again.
    fn rederive(now: &Effective<Config, Arc<Tables>>) -> Result<Option<Arc<Tables>>, String> {
        if now.derived.numbers.is_none() && now.config.tsig.is_empty() {
            return Ok(None);
        }
        Tables::load(&now.config, Some(&now.derived)).map(|tables| Some(Arc::new(tables)))
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let control = Arc::new(Control {
            live: opening.live.clone(),
            meters: Arc::new(Meters::new(&opening.registry)),
            alarms: opening.alarms.clone(),
        });
        let changes = opening.live.load().derived.changes.clone();
        if let Some(changes) = &changes {
            let changes = Arc::downgrade(changes);
            let count = move || changes.upgrade().map_or(0.0, |changes| changes.count() as f64);
            opening.registry.observe(&CHANGED, count);
        }
        tokio::task::spawn_local(watch(control.clone()));
        tokio::task::spawn_local(settle(opening.live.clone()));
        let drained = opening.drained;
        Ok(Opened::new(Arc::new(Self { control }), async move {
            drained.fired().await;
            if let Some(changes) = changes {
                changes.close();
            }
        }))
    }

    fn worker(
        self: &Arc<Self>,
        _: &Seat<Self>,
        _: &Arc<Effective<Config, Arc<Tables>>>,
        _: Option<&Rc<()>>,
    ) -> Rc<()> {
        Rc::default()
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let seat = front.seat();
        let desk = Rc::new(Desk::new(
            seat.live.clone(),
            front.function().control.meters.clone(),
        ));
        let mut tasks = Vec::new();
        for (udp, tcp) in seat.listeners.take(seat.context.index) {
            let udp = tokio::net::UdpSocket::from_std(udp)?;
            let tcp = tokio::net::TcpListener::from_std(tcp)?;
            tasks.push(tokio::task::spawn_local(transport::serve(udp, desk.clone())));
            let accepting = transport::accept(tcp, desk.clone(), seat.context.shutdown.clone());
            tasks.push(tokio::task::spawn_local(accepting));
        }
        drop(beginning);
        seat.context.shutdown.fired().await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        Ok(())
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.control)
    }

    fn metrics() -> Vec<Declaration> {
        METRICS.to_vec()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![UNWRITTEN, DAMAGED, NO_PROFILE]
    }

    fn hints(address: &str) -> Vec<String> {
        let mut hints = vec![
            "signalbox enum trees".to_owned(),
            "signalbox enum profiles".to_owned(),
        ];
        if let Ok(address) = address.parse::<SocketAddr>() {
            let (ip, port) = (address.ip(), address.port());
            hints.push(format!("dig @{ip} -p {port} e164.arpa SOA"));
        }
        hints
    }
}

/// Binds both transports at one address; where it has no port, at one that is free in both.
fn pair(address: SocketAddr) -> io::Result<((UdpSocket, TcpListener), SocketAddr)> {
    const ATTEMPTS: usize = 32;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let udp = transport::bind(address)?;
        let at = udp.local_addr()?;
        match worker::bind(at) {
            Ok(tcp) => return Ok(((udp, tcp), at)),
            Err(_) if address.port() == 0 && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

/// Raises and clears alarms by what was counted.
async fn watch(server: Arc<Control>) {
    let mut seen = [(0, QUIET); 2];
    loop {
        let live = server.live.load().derived.clone();
        let unwritten = live.changes.as_ref().and_then(|changes| changes.failure());
        server.alarms.set(&UNWRITTEN, "changed numbers", unwritten);
        let watched = [(Outcome::Damaged, &DAMAGED), (Outcome::NoProfile, &NO_PROFILE)];
        for ((outcome, kind), (before, quiet)) in watched.into_iter().zip(&mut seen) {
            let now = server.meters.value(outcome);
            *quiet = if now > *before { 0 } else { quiet.saturating_add(1) };
            *before = now;
            let detail = (*quiet < QUIET).then(|| format!("{now} queries since the start"));
            server.alarms.set(kind, "numbers", detail);
        }
        let aside = live
            .numbers
            .as_ref()
            .map_or(0, |numbers| numbers.load().aside.len());
        let detail = (aside > 0).then(|| format!("{aside} changes are not in effect: {ADVICE}"));
        server.alarms.set(&DAMAGED, "changed numbers", detail);
        drop(live);
        tokio::time::sleep(WATCH).await;
    }
}

/// Drops changes that a file of numbers has as well, once it is in effect.
async fn settle(live: Arc<function::Live<EnumServer>>) {
    let mut changes = live.changes();
    let mut before = None;
    loop {
        let now = live.load_full();
        if let (Some(numbers), Some(changed)) = (now.derived.numbers.clone(), now.derived.changes.clone())
            && before
                .as_ref()
                .is_none_or(|before| !Arc::ptr_eq(before, &now.derived))
        {
            // It may write a file.
            let settled = tokio::task::spawn_blocking(move || changed.settle(&numbers)).await;
            if let Err(error) = settled {
                tracing::warn!(%error, "changed numbers are not compared with the file of numbers");
            }
        }
        before = Some(now.derived.clone());
        drop(now);
        if !changes.next().await {
            return;
        }
    }
}
