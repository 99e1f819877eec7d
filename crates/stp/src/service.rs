//! The STP as a network function.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use function::live::{Changes, Effective};
use function::{
    Beginning, Common, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Declaration};

use crate::config::Config;
use crate::control::{Control, DESTINATION_UNREACHABLE, HOP_DOWN, LINK_DOWN, LINK_INHIBITED};
use crate::link::{Desk, SctpBound, accept, accept_sctp, connect};
use crate::tables::Tables;
use crate::{gauges, metrics, pages};

/// Interval at which timers of the control side are checked.
const TICK: Duration = Duration::from_millis(100);

/// A signal transfer point: what its threads share.
pub struct Stp {
    control: Arc<Control>,
}

/// A running signal transfer point.
pub type Running = function::Running<Stp>;

/// Starts a signal transfer point: binds everything. Blocks until it listens.
///
/// # Errors
/// When an address cannot be bound or a file cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// The listeners of every worker.
pub struct Bound {
    /// By worker, which takes its own.
    listeners: Mutex<Vec<Vec<TcpListener>>>,
    sctp: Mutex<Vec<Option<SctpBound>>>,
    addresses: Vec<SocketAddr>,
    /// Where the last of them is of SCTP.
    has_sctp: bool,
}

impl Bound {
    fn take_sctp(&self, worker: usize) -> Option<SctpBound> {
        self.sctp.lock().get_mut(worker).and_then(Option::take)
    }

    fn take(&self, worker: usize) -> Vec<TcpListener> {
        let mut all = self.listeners.lock();
        all.get_mut(worker).map(std::mem::take).unwrap_or_default()
    }
}

impl Listeners for Bound {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let count = self.addresses.len() - usize::from(self.has_sctp);
        let name = |at| if at < count { "M3UA over TCP" } else { "M3UA" };
        let addresses = self.addresses.iter().enumerate();
        addresses
            .map(|(at, address)| (name(at), address.to_string()))
            .collect()
    }
}

impl NetworkFunction for Stp {
    const NAME: &'static str = "stp";
    const TITLE: &'static str = "signal transfer point";
    const PAGES: &'static [Page] = pages::PAGES;
    // Links, destinations and rules are an operator's, no peer makes series.
    const SERIES: usize = 65_536;

    type Config = Config;
    type Derived = Arc<Tables>;
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: "",
            listen: [
                listening("listen", &config.listen),
                listening("sctpListen", &config.sctp_listen),
            ]
            .concat(),
            workers: config.workers,
            cores: &[],
            tls: None,
            client_tls: None,
            other_tls: None,
            directory: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for wanted in config.listen.iter() {
            let (bound, address) = worker::bind_each(wanted, workers, |address| {
                let listener = worker::bind(address).and_then(|one| Ok((one.local_addr()?, one)));
                let listener = listener.map_err(|source| StartError::Listen { address, source });
                listener.map(|(at, listener)| (listener, at))
            })?;
            for (mine, listener) in listeners.iter_mut().zip(bound) {
                mine.push(listener);
            }
            addresses.push(address);
        }
        let mut sctp = Vec::new();
        if let Some(first) = config.sctp_listen.first() {
            let others: Vec<_> = config.sctp_listen.iter().skip(1).map(|one| one.ip()).collect();
            let (bound, address) = worker::bind_each(first, workers, |address| {
                SctpBound::bind(address, &others).map_err(|source| StartError::Listen { address, source })
            })?;
            sctp = bound.into_iter().map(Some).collect();
            addresses.push(address);
        }
        Ok(Bound {
            listeners: Mutex::new(listeners),
            has_sctp: !sctp.is_empty(),
            sctp: Mutex::new(sctp),
            addresses,
        })
    }

    fn derive(
        config: &Arc<Config>,
        _: Option<&Effective<Config, Arc<Tables>>>,
    ) -> Result<Arc<Tables>, String> {
        Tables::load(config).map(Arc::new)
    }

    /// The files of translations, numbers and equipment are read again.
    fn rederive(now: &Effective<Config, Arc<Tables>>) -> Result<Option<Arc<Tables>>, String> {
        let mut sets = now.config.translation.sets.iter();
        let numbers = now.config.number_services.file.as_ref();
        if sets.all(|set| set.file.is_none()) && numbers.is_none() && now.config.equipment.is_none() {
            return Ok(None);
        }
        Tables::load(&now.config).map(|tables| Some(Arc::new(tables)))
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        // Before what is in effect is read: a change between both would be missed.
        let changes = opening.live.changes();
        let now = opening.live.load_full();
        let control = Control::new(
            &now.config,
            now.derived.clone(),
            &opening.registry,
            &opening.alarms,
        );
        let control = Arc::new(control);
        gauges::observe(&opening.registry, &control);
        tokio::task::spawn_local(keep_time(control.clone()));
        tokio::task::spawn_local(follow_settings(control.clone(), opening.live.clone(), changes));
        let drained = opening.drained;
        let function = Arc::new(Self { control });
        Ok(Opened::new(function, async move { drained.fired().await }))
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
        let (seat, stp) = (front.seat(), front.function());
        let index = seat.context.index;
        let desk = Desk::new(stp.control.clone(), seat.live.clone());
        let mut tasks = Vec::new();
        for listener in seat.listeners.take(index) {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let accepting = accept(listener, desk.clone(), seat.context.shutdown.clone());
            tasks.push(tokio::task::spawn_local(accepting));
        }
        if let Some(bound) = seat.listeners.take_sctp(index) {
            let accepting = accept_sctp(
                bound.into_listener()?,
                desk.clone(),
                seat.context.shutdown.clone(),
            );
            tasks.push(tokio::task::spawn_local(accepting));
        }
        let config = seat.live.load().config.clone();
        let workers = seat.context.count.max(1);
        let mine = config.links.iter().enumerate().filter(|(_, link)| link.connect);
        for (link, _) in mine.filter(|(link, _)| link % workers == index) {
            let connecting = connect(link, desk.clone(), seat.context.shutdown.clone());
            tokio::task::spawn_local(connecting);
        }
        drop(beginning);
        seat.context.shutdown.fired().await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        Ok(())
    }

    /// Routes, screening lists and translations are in effect when a reload has returned.
    fn reloaded(&self, _: &Arc<Effective<Config, Arc<Tables>>>, now: &Arc<Effective<Config, Arc<Tables>>>) {
        self.control.replace(now.derived.clone());
    }

    fn routes(self: &Arc<Self>) -> Router {
        pages::routes(&self.control)
    }

    fn metrics() -> Vec<Declaration> {
        metrics::METRICS.to_vec()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![LINK_DOWN, HOP_DOWN, DESTINATION_UNREACHABLE, LINK_INHIBITED]
    }

    fn hints(_: &str) -> Vec<String> {
        vec![
            "signalbox stp links".to_owned(),
            "signalbox stp routes".to_owned(),
        ]
    }
}

/// Runs the timers of the control side.
async fn keep_time(control: Arc<Control>) {
    loop {
        tokio::time::sleep(TICK).await;
        let now = Instant::now();
        if control.wake().is_some_and(|at| at <= now) {
            control.tick(now);
        }
    }
}

/// Adopts tables that were derived again because a file has changed.
async fn follow_settings(control: Arc<Control>, live: Arc<function::Live<Stp>>, mut changes: Changes) {
    while changes.next().await {
        let derived = live.load().derived.clone();
        if !Arc::ptr_eq(&control.state.load().tables, &derived) {
            control.replace(derived);
        }
    }
}
