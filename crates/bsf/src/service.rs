//! The BSF as a network function: how it opens, and what its control thread does.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use function::sbi::{Operational, Registration, Routed as _, nrfs};
use function::{
    Beginning, Common, Counts, NetworkFunction, Opened, Opening, Page, Seat, StartError, Tolerated,
    listening, settle_instance, store_copies,
};
use sbi::client::Client;
use sbi::dns::Dns;
use telemetry::{AlarmKind, Alarms, Declaration};
use tokio::sync::mpsc;

use crate::audit::{Auditor, BRAKED};
use crate::config::Config;
use crate::events::DROPPED;
use crate::flights::Flights;
use crate::latency::Latencies;
use crate::listeners::Listening;
use crate::live::{Derived, Effective, Live};
use crate::notify::{Notices, Subscribers};
use crate::operator::OperatorSettings;
use crate::owed::Owed;
use crate::peers::sets::Sets;
use crate::profile::PROFILE;
use crate::repository::Repository;
use crate::rx;
use crate::score::{Measured, Score, points_of};
use crate::shared::Bsf;
use crate::state::Switches;
use crate::worker::{Front, Worker};
use crate::{pages, paying};

/// A running BSF.
pub type Running = function::Running<Bsf>;

/// Interval between checks for changes by other instances on the same database.
const REFRESH: Duration = Duration::from_secs(1);
/// Changes of PCFs that wait for the audit; beyond, the next walk finds them.
const PCF_CHANGES: usize = 1_024;

/// Starts a BSF. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

impl NetworkFunction for Bsf {
    const NAME: &'static str = "bsf";
    const TITLE: &'static str = "BSF";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Listening;
    type Worker = Worker;

    fn common(config: &Config) -> Common<'_> {
        let mut listen = listening("listen", &config.listen);
        if config.rx.enabled {
            listen.extend(listening("rx.listen", &config.rx.listen));
            listen.extend(listening("rx.sctpListen", &config.rx.sctp_listen));
        }
        Common {
            admin: config.admin,
            instance: &config.nf_instance_id,
            listen,
            directory: Some(&config.store.embedded.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: config.rx.tls.as_ref(),
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Listening, StartError> {
        let directory = &config.store.embedded.directory;
        let (tls, client_tls) = (config.tls.as_ref(), config.client_tls.as_ref());
        function::sbi::certify_instance(&mut config.nf_instance_id, tls, client_tls)?;
        settle_instance(&mut config.nf_instance_id, directory, Self::NAME)?;
        let listeners = Listening::reserve(config, &Self::common(config), workers)?;
        // The URIs that the BSF hands out name the port it really has.
        if config.api_root.is_empty() {
            config.api_root = listeners.sbi.root(&config.nrf.api_roots)?;
        }
        Ok(listeners)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let config = opening.live.load_full().config.clone();
        let names = names(&config)?;
        opening.wait_for_store(&config.store).await?;
        let repository = Repository::open(&config.store, config.max_candidates).await?;
        opening.watch_store(repository.store());
        let operator = OperatorSettings::read(repository.store(), &config.nf_instance_id).await?;
        let operational = Arc::new(Operational::new(opening.workers, operator.state));
        let switches = Switches::new(
            opening.workers,
            operational.clone(),
            operator.congestion_control(config.overload.enabled),
        );
        let (queue, pending) = notifier::queue(config.notifications.queue);
        let (pcf_changes, changed) = mpsc::channel(PCF_CHANGES);
        let (sets, questions) = Sets::new();
        let bsf = Arc::new(Self {
            live: opening.live.clone(),
            notices: Notices {
                repository: repository.clone(),
                queue,
                owed: Owed::default(),
            },
            switches: Arc::new(switches),
            operator: tokio::sync::Mutex::new(operator),
            congestion_configured: config.overload.enabled,
            pcf_changes,
            brake: Arc::default(),
            flights: Flights::default(),
            rx_latency: Latencies::new(&opening.registry),
            sets,
            names: names.clone(),
            counts: Counts::new(opening.workers, &opening.registry),
            tolerated: Tolerated::new(&DROPPED, &opening.registry),
            workers: opening.workers,
            diameter: opening.listeners.diameter().to_vec(),
        });
        pages::observe(&opening.registry, &bsf);

        let limits = Arc::new(config.client.clone());
        let tls = opening.listeners.sbi.client_tls();
        let client = Client::with_names(limits.clone(), tls.clone(), names.clone());
        let guarding = opening.live.clone();
        let guard = function::sbi::guard(move || guarding.load().destinations.clone());
        let guarded = Client::guarded(limits, tls, names.clone(), Some(guard));
        let instance = &config.nf_instance_id;
        let nrfs = nrfs(
            &config.nrf,
            PROFILE.nf_type,
            instance,
            client.clone(),
            names.clone(),
        );
        let nrfs = Rc::new(nrfs);
        let (live, counters) = (opening.live.clone(), bsf.counts.control());
        // These tasks end with the control thread.
        if config.store.engine != store::EngineKind::Embedded {
            tokio::task::spawn_local(refresh(repository.clone()));
        }
        if config.rx.enabled {
            tokio::task::spawn_local(rx::tidy(repository.clone(), live.clone(), counters.clone()));
        }
        tokio::task::spawn_local(function::sbi::follow_key_sets(live.clone(), client));
        tokio::task::spawn_local(keep_score(live.clone(), bsf.clone(), opening.alarms.clone()));
        let auditor = Auditor::new(
            live.clone(),
            bsf.notices.clone(),
            nrfs.clone(),
            counters.clone(),
            (bsf.brake.clone(), opening.alarms.clone()),
        );
        tokio::task::spawn_local(auditor.run(changed));
        tokio::task::spawn_local(questions.answer(nrfs.clone()));
        let subscribers = Subscribers {
            client: guarded,
            nrfs: nrfs.clone(),
            names,
            repository: repository.clone(),
            live,
            counters,
            random: worker::Random::default(),
        };
        tokio::task::spawn_local(notifier::run(pending, Rc::new(subscribers)));
        if !repository.is_shared() {
            paying::pay(&bsf.notices).await?;
            tokio::task::spawn_local(paying::settle(bsf.notices.clone()));
        }

        let listens = function::Listeners::addresses(&*opening.listeners.sbi).to_vec();
        let serves = !listens.is_empty() && !nrfs.is_empty();
        let registration = serves.then(|| Registration {
            profile: PROFILE,
            instance: config.nf_instance_id.clone(),
            settings: config.nrf.clone(),
            secure: config.tls.is_some(),
            listens,
            root: config.api_root.clone(),
            operational,
            alarms: opening.alarms.clone(),
            health: opening.health.clone(),
        });
        let store = repository.store().clone();
        let control = async move {
            if let Some(registration) = registration {
                registration.stay_until(opening.shutdown, &nrfs).await;
            }
            opening.drained.fired().await;
            store.close().await;
        };
        Ok(Opened::new(bsf, control))
    }

    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Effective>,
        before: Option<&Rc<Worker>>,
    ) -> Rc<Worker> {
        let before = before.map(|worker| &**worker);
        Rc::new(Worker::new(self, seat, now.clone(), before))
    }

    async fn serve(front: Rc<Front>, beginning: Beginning) -> io::Result<()> {
        let (bsf, index) = (front.function().clone(), front.seat().context.index);
        let sampled = move |worker: &Worker| {
            let shedder = worker.shedder();
            shedder.enforce(bsf.switches.congestion());
            bsf.switches.operational().set_load(index, shedder.load());
            worker.completion().measured(index, shedder);
        };
        tokio::task::spawn_local(front.clone().watch_load(|worker| worker.shedder(), sampled));
        let listeners = front.seat().listeners.clone();
        let agent = match listeners.seat(front.seat().context.index) {
            Some(seat) => Some(rx::run(seat, front.clone())?),
            None => None,
        };
        drop(beginning);
        let limits = Arc::new(front.worker().config().server.clone());
        let ended = listeners.sbi.serve_routed(front, limits).await;
        if let Some(agent) = agent {
            rx::stop(agent).await;
        }
        ended
    }

    fn reloaded(&self, before: &Arc<Effective>, now: &Arc<Effective>) {
        let enabled = now.config.overload.enabled;
        if enabled != before.config.overload.enabled {
            self.switches.set_congestion(enabled);
        }
    }

    fn routes(self: &Arc<Self>) -> Router {
        let own = Arc::downgrade(self);
        pages::routes(&own).merge(store_copies::routes(&own, |bsf| bsf.repository().store()))
    }

    fn beside(config: &mut Config, admins: &[SocketAddr]) {
        config.other_admins = admins.to_vec();
    }

    fn metrics() -> Vec<Declaration> {
        pages::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![PROFILE.not_registered, BRAKED]
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}

/// The resolver of names; none: the system.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let services = config.notifications.dns_srv || config.nrf.dns_srv;
    let peers = config.rx.enabled && config.rx.peers.iter().any(|peer| !peer.names.is_empty());
    let wanted = !config.dns.servers.is_empty() || services || peers;
    let names = wanted.then(|| Dns::start(&config.dns)).transpose();
    names.map_err(StartError::io("starting to resolve names"))
}

async fn refresh(repository: Repository) {
    loop {
        tokio::time::sleep(REFRESH).await;
        if let Err(error) = repository.refresh().await {
            tracing::warn!(%error, "failed to read changes of other instances");
        }
    }
}

/// Updates the score after each interval, until dropped.
async fn keep_score(live: Arc<Live>, bsf: Arc<Bsf>, alarms: Alarms) {
    let mut before = bsf.switches.work();
    loop {
        let settings = live.load().config.scoring.clone();
        tokio::time::sleep(settings.interval.duration()).await;
        let now = bsf.switches.work();
        let delays = bsf.repository().store().stats().replication_delay;
        let measured = Measured {
            requests: now.0.saturating_sub(before.0),
            failures: now.1.saturating_sub(before.1),
            time: Duration::from_micros(now.2.saturating_sub(before.2)),
            load: bsf.load().into(),
            delay: delays
                .into_iter()
                .map(|(_, delay)| delay)
                .max()
                .unwrap_or_default(),
            alarm_points: points_of(&alarms.active(), &settings.alarm_points),
        };
        before = now;
        bsf.switches.set_score(Score::of(&settings, &measured));
    }
}

#[cfg(test)]
mod tests;
