//! The database processor as a network function.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use dp_proto::Outcome;
use function::live::{Effective, Live};
use function::sbi::config::Nrf;
use function::sbi::{Operational, Registration, State, certify_instance, nrfs};
use function::{
    Beginning, Common, Front, Listeners, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
    settle_instance,
};
use nrf_client::{Nrfs, PeerTokens};
use overload::cpu::{CpuLoad, read};
use parking_lot::Mutex;
use sbi::client::Client;
use telemetry::{AlarmKind, Alarms, Declaration, Registry};
use tls::{ClientTls, HTTP2, ServerTls, Watched};

use crate::alarms::{CONGESTED, CPU, DAMAGED, NOT_FOLLOWED, PROFILE};
use crate::config::Config;
use crate::control::{Control, Progress};
use crate::data::{Data, Holder};
use crate::journal::{Keeper, client, follow};
use crate::metrics::{BEHIND, METRICS, Meters, NAMES, NUMBERS, OFFSET};
use crate::pages;
use crate::transport::{Desk, accept};

/// The keys of TLS files in the settings.
const TLS: &str = "tls";
const CLIENT_TLS: &str = "clientTls";
/// Interval at which alarms follow the counters.
const WATCH: Duration = Duration::from_secs(1);
/// Rounds without a new case, after which an alarm is cleared.
const QUIET: u32 = 5;
/// Share of the processor time of all workers, in percent, from which on the processor is busy.
const BUSY: f64 = 80.0;

/// A database processor: what its threads share.
pub struct DatabaseProcessor {
    control: Arc<Control>,
}

/// A running database processor.
pub type Running = function::Running<DatabaseProcessor>;

/// Starts a database processor: binds everything. Blocks until it listens.
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
    addresses: Vec<SocketAddr>,
    watched: Arc<Watched>,
    /// Of the connections of routers.
    tls: Option<ServerTls>,
    /// Of the connections to subscriber database servers and NRFs.
    client_tls: Option<ClientTls>,
}

impl Bound {
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
        let addresses = self.addresses.iter();
        addresses
            .map(|address| ("queries of routers", address.to_string()))
            .collect()
    }

    fn watched(&self) -> Option<&Arc<Watched>> {
        Some(&self.watched)
    }

    fn reload_files(&self, settings: &Common<'_>) -> Result<bool, String> {
        let wanted = [(TLS, settings.tls), (CLIENT_TLS, settings.client_tls)];
        Ok(self.watched.prepare(&wanted)?.apply())
    }
}

impl NetworkFunction for DatabaseProcessor {
    const NAME: &'static str = "dp";
    const TITLE: &'static str = "database processor";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Arc<Holder>;
    type Listeners = Bound;
    type Worker = ();

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: &config.nf_instance_id,
            listen: listening("listen", &config.listen),
            workers: config.workers,
            cores: &[],
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: None,
            directory: config.directory.as_deref(),
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Bound, StartError> {
        if let (false, Some(directory)) = (config.nrfs.is_empty(), &config.directory) {
            let id = &mut config.nf_instance_id;
            certify_instance(id, None, config.client_tls.as_ref())?;
            settle_instance(id, directory, Self::NAME)?;
        }
        let watched = Arc::<Watched>::default();
        let tls = config.tls.as_ref();
        let tls = tls.map(|files| watched.open(TLS, files, |material| material.server(&[])));
        let client_tls = config.client_tls.as_ref();
        let client_tls =
            client_tls.map(|files| watched.open(CLIENT_TLS, files, |material| material.client(HTTP2)));
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
        Ok(Bound {
            listeners: Mutex::new(listeners),
            addresses,
            watched,
            tls: tls.transpose().map_err(StartError::Config)?,
            client_tls: client_tls.transpose().map_err(StartError::Config)?,
        })
    }

    fn derive(
        config: &Arc<Config>,
        before: Option<&Effective<Config, Arc<Holder>>>,
    ) -> Result<Arc<Holder>, String> {
        if config.sds.is_some() {
            // Its data do not change with settings.
            return Ok(before.map(|before| before.derived.clone()).unwrap_or_default());
        }
        let holder = Holder::default();
        if let Some(data) = Data::of_files(config)? {
            holder.store(Arc::new(data));
        }
        Ok(Arc::new(holder))
    }

    /// The files are read again.
    fn rederive(now: &Effective<Config, Arc<Holder>>) -> Result<Option<Arc<Holder>>, String> {
        let config = &now.config;
        if config.numbers.is_none() && config.names.is_none() {
            return Ok(None);
        }
        Self::derive(config, Some(now)).map(Some)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let now = opening.live.load_full();
        let control = Arc::new(Control {
            live: opening.live.clone(),
            meters: Arc::new(Meters::new(&opening.registry)),
            alarms: opening.alarms.clone(),
            progress: Arc::default(),
        });
        observe(&opening.registry, &control.progress, &opening.live);
        let ready = opening.health.component("data");
        let mut registered = None;
        match (&now.config.sds, &now.config.directory) {
            (Some(sds), Some(directory)) => {
                let holder = now.derived.clone();
                let keeper = Keeper::open(directory, now.config.max_names, holder);
                let keeper = keeper.map_err(StartError::Config)?;
                let client = client(opening.listeners.client_tls.clone());
                let nrfs = (!now.config.nrfs.is_empty()).then(|| nrfs_of(&now.config, &client));
                let tokens = nrfs
                    .clone()
                    .map(|nrfs| PeerTokens::new(nrfs, &now.config.nf_instance_id, PROFILE.nf_type));
                let following = follow(sds.clone(), (client, tokens), keeper, control.clone(), ready);
                tokio::task::spawn_local(following);
                registered = nrfs.map(|nrfs| (registration(&opening), nrfs));
            }
            _ if now.derived.load().is_some() => ready.ready(),
            _ => {
                ready.ready();
                // One that listens nowhere is not asked.
                let words = "no data: set `dp.numbers` and `dp.names`, or `dp.sds`";
                let is_asked = !now.config.listen.0.is_empty();
                ready.remark(is_asked.then(|| words.to_owned()));
            }
        }
        tokio::task::spawn_local(watch(control.clone(), opening.workers));
        let (shutdown, drained) = (opening.shutdown, opening.drained);
        Ok(Opened::new(Arc::new(Self { control }), async move {
            if let Some((registration, nrfs)) = registered {
                registration.stay_until(shutdown, &nrfs).await;
            }
            drained.fired().await;
        }))
    }

    fn worker(
        self: &Arc<Self>,
        _: &Seat<Self>,
        _: &Arc<Effective<Config, Arc<Holder>>>,
        _: Option<&Rc<()>>,
    ) -> Rc<()> {
        Rc::default()
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let seat = front.seat();
        let meters = front.function().control.meters.clone();
        let tls = seat.listeners.tls.clone();
        let desk = Rc::new(Desk::new(seat.live.clone(), meters, tls));
        let mut tasks = Vec::new();
        for listener in seat.listeners.take(seat.context.index) {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let accepting = accept(listener, desk.clone(), seat.context.shutdown.clone());
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
        vec![NOT_FOLLOWED, DAMAGED, PROFILE.not_registered, CONGESTED, CPU]
    }

    fn hints(_: &str) -> Vec<String> {
        vec!["signalbox dp data".to_owned()]
    }
}

/// The NRFs, as this processor sends requests to them.
fn nrfs_of(config: &Config, client: &Client) -> Rc<Nrfs> {
    let settings = nrf_settings(config);
    let nrfs = nrfs(
        &settings,
        PROFILE.nf_type,
        &config.nf_instance_id,
        client.clone(),
        None,
    );
    Rc::new(nrfs)
}

fn nrf_settings(config: &Config) -> Nrf {
    Nrf {
        api_roots: config.nrfs.clone(),
        ..Nrf::default()
    }
}

/// The processor as a consumer at the NRFs (TS 29.510 §5.2.2.2): they grant tokens to those that they know.
fn registration(opening: &Opening<DatabaseProcessor>) -> Registration {
    let config = &opening.live.load().config;
    Registration {
        profile: PROFILE,
        instance: config.nf_instance_id.clone(),
        settings: nrf_settings(config),
        secure: config.tls.is_some(),
        listens: opening.listeners.addresses.clone(),
        root: String::new(),
        operational: Arc::new(Operational::new(opening.workers, State::Serving)),
        alarms: opening.alarms.clone(),
        health: opening.health.clone(),
    }
}

/// Shows how much is loaded, and how far the journal is followed.
fn observe(registry: &Registry, progress: &Arc<Progress>, live: &Arc<Live<Config, Arc<Holder>>>) {
    let (offset, behind) = (progress.clone(), progress.clone());
    registry.observe(&OFFSET, move || offset.offset() as f64);
    registry.observe(&BEHIND, move || behind.behind() as f64);
    let of_data = |count: fn(&Data) -> f64| {
        let live = Arc::downgrade(live);
        move || {
            let holder = live.upgrade().map(|live| live.load().derived.clone());
            holder.map_or(0.0, |holder| holder.load().as_deref().map_or(0.0, count))
        }
    };
    registry.observe(&NUMBERS, of_data(|data| data.map.count() as f64));
    registry.observe(&NAMES, of_data(|data| data.names.len() as f64));
}

/// Raises and clears alarms by what was counted.
async fn watch(control: Arc<Control>, workers: usize) {
    let mut seen = [(0, QUIET); 2];
    let mut cpu = CpuLoad::new();
    loop {
        let watched = [(Outcome::Damaged, &DAMAGED), (Outcome::Congested, &CONGESTED)];
        for ((outcome, kind), (before, quiet)) in watched.into_iter().zip(&mut seen) {
            let now = control.meters.value(outcome);
            *quiet = if now > *before { 0 } else { quiet.saturating_add(1) };
            *before = now;
            let detail = (*quiet < QUIET).then(|| format!("{now} queries since the start"));
            control.alarms.set(kind, "dp", detail);
        }
        let used = read::process().and_then(|used| cpu.feed(used, Instant::now()));
        if let Some(used) = used {
            show_cpu(&control.alarms, used, workers);
        }
        tokio::time::sleep(WATCH).await;
    }
}

/// Raises the alarm for the time of processors that the process uses, in percent of one of them.
fn show_cpu(alarms: &Alarms, used: f64, workers: usize) {
    let share = used / workers.max(1) as f64;
    alarms.above(&CPU, "dp", share, BUSY, "% of the workers' processor time");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_all_workers_raises_the_alarm() {
        let alarms = Alarms::new(&Registry::new());
        for (used, is_raised) in [
            (90.0, false),
            (159.0, false),
            (170.0, true),
            (155.0, true),
            (150.0, false),
        ] {
            show_cpu(&alarms, used, 2);
            let active = alarms.active();
            assert_eq!(
                active.iter().any(|alarm| alarm.number == 19_900),
                is_raised,
                "{used} %"
            );
        }
    }
}
