//! The PCF as a network function: how it opens, and what its control thread does.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use diameter::proto::known::disconnect_cause;
use function::sbi::{Operational, Registration};
use function::{
    Beginning, Common, Counts, Listeners as _, NetworkFunction, Opened, Opening, Page, Seat, StartError,
    Tolerated, listening, store_copies,
};
use sbi::client::Client;
use sbi::dns::Dns;
use serde_json::json;
use store::{Record, Sweep, SweepConfig, Table};
use telemetry::{AlarmKind, Alarms, Declaration};
use tls::TlsFiles;

use crate::activity::{Activity, PolicyEvents, UNWRITTEN};
use crate::api::{bdt, sm};
use crate::audit;
use crate::change::{ends, owed};
use crate::config::{Config, Nrf};
use crate::delivery;
use crate::events::DROPPED;
use crate::finished::Finished;
use crate::gx;
use crate::latency::Latencies;
use crate::listeners::Listening;
use crate::live::{Derived, Effective};
use crate::notices::{Applications, Consumers, Notices, deliver};
use crate::operator::OperatorSettings;
use crate::outbound;
use crate::pages;
use crate::profile::{PROFILE, PROFILE_WITH_BDT};
use crate::removals::Removals;
use crate::renewal;
use crate::reports;
use crate::repository::Repository;
use crate::restarts::Restarts;
use crate::sd;
use crate::shared::Pcf;
use crate::sources::Versions;
use crate::unreadable::UNREADABLE;
use crate::worker::{Front, Worker};

/// How long the Diameter node waits for answers when a worker ends.
const DISCONNECT_GRACE: Duration = Duration::from_secs(1);

/// Pause between two counts of the records of each table.
const COUNTED: Duration = Duration::from_secs(10);

/// A running PCF.
pub type Running = function::Running<Pcf>;

/// Starts a PCF. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file, a policy project or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// What resolves names; none: the system.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let wanted = !config.dns.servers.is_empty() || config.nrf.dns_srv;
    let names = wanted.then(|| Dns::start(&config.dns));
    names
        .transpose()
        .map_err(StartError::io("starting to resolve names"))
}

/// The activity of traced subscribers, those included that an operator has added before, and the records of policy events.
fn journals(
    config: &Config,
    alarms: &Alarms,
    traced: Vec<String>,
) -> Result<(Arc<Activity>, PolicyEvents), StartError> {
    let started = Activity::start(config, alarms.clone(), traced).map(Arc::new);
    let events = PolicyEvents::start(&config.policy_events, alarms.clone());
    let both = started.and_then(|activity| Ok((activity, events?)));
    both.map_err(StartError::io("starting to write journals"))
}

/// TLS of other interfaces than the service-based one, of which that counts that is checked most often.
fn other_tls(config: &Config) -> Option<&TlsFiles> {
    let files = [config.diameter.tls.as_ref(), config.notifier.tls.as_ref()];
    let checked = files.into_iter().flatten();
    checked.min_by_key(|files| {
        let interval = files.check_interval.duration();
        // Without an interval they are checked at a reload only.
        (interval.is_zero(), interval)
    })
}

/// What the PCF registers at the NRF.
fn registration(
    config: &Config,
    opening: &Opening<Pcf>,
    operational: Arc<Operational>,
) -> Option<Registration> {
    let listens = opening.listeners.sbi.addresses().to_vec();
    (!listens.is_empty()).then(|| Registration {
        profile: match config.bdt.windows.is_empty() {
            true => PROFILE,
            false => PROFILE_WITH_BDT,
        },
        instance: config.nf_instance_id.clone(),
        settings: with_diameter_names(config),
        secure: config.tls.is_some(),
        listens,
        root: config.api_root.clone(),
        operational,
        alarms: opening.alarms.clone(),
        health: opening.health.clone(),
    })
}

/// The settings of the registration, with the names of the Diameter node in `pcfInfo` (TS 29.510 §6.1.6.2.20) where the operator gives
/// no others: a BSF that looks for another PCF of the set sends Rx requests there.
fn with_diameter_names(config: &Config) -> Nrf {
    let mut settings = config.nrf.clone();
    if !config.diameter.enabled {
        return settings;
    }
    let info = settings.profile.entry("pcfInfo").or_insert_with(|| json!({}));
    if let Some(info) = info.as_object_mut() {
        for (member, name) in [
            ("rxDiamHost", &config.diameter.host),
            ("rxDiamRealm", &config.diameter.realm),
        ] {
            info.entry(member).or_insert_with(|| json!(name));
        }
    }
    settings
}

/// Counts the records of each table now and then, as long as the control thread runs.
async fn count_records(pcf: Weak<Pcf>) {
    while let Some(pcf) = pcf.upgrade() {
        match pcf.repository.counts().await {
            Ok(counts) => *pcf.records.lock() = counts,
            Err(error) => tracing::debug!(%error, "the records of the store were not counted"),
        }
        drop(pcf);
        tokio::time::sleep(COUNTED).await;
    }
}

/// Removes records whose time is over, as long as the control thread runs.
fn sweep<T: Record>(table: &Table<T>) {
    match Sweep::new(table.clone(), SweepConfig::default()) {
        Ok(sweep) => drop(tokio::task::spawn_local(async move { sweep.run().await })),
        Err(error) => tracing::error!(%error, table = T::TABLE.name, "expired records are not removed"),
    }
}

impl NetworkFunction for Pcf {
    const NAME: &'static str = "pcf";
    const TITLE: &'static str = "PCF";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Listening;
    type Worker = Worker;

    fn common(config: &Config) -> Common<'_> {
        let mut listen = listening("listen", &config.listen);
        if config.diameter.enabled {
            listen.extend(listening("diameter.listen", &config.diameter.listen));
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
            other_tls: other_tls(config),
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Listening, StartError> {
        let directory = &config.store.embedded.directory;
        let (tls, client_tls) = (config.tls.as_ref(), config.client_tls.as_ref());
        function::sbi::certify_instance(&mut config.nf_instance_id, tls, client_tls)?;
        function::settle_instance(&mut config.nf_instance_id, directory, Self::NAME)?;
        let listeners = Listening::reserve(config, &Self::common(config), workers)?;
        // The URIs that the PCF hands out name the port it really has.
        if config.api_root.is_empty() {
            config.api_root = listeners.sbi.root(&config.nrf.api_roots)?;
        }
        Ok(listeners)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    fn rederive(now: &Effective) -> Result<Option<Derived>, String> {
        Derived::with_changed_projects(now)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let config = opening.live.load_full().config.clone();
        let names = self::names(&config)?;
        opening.wait_for_store(&config.store).await?;
        let repository = Repository::open(&config.store, config.max_candidates).await?;
        let repository = repository.with_largest(config.max_association_size.as_usize());
        let repository = repository.with_ends(&config.nf_instance_id, config.end_attempts());
        repository.unreadable().watch(opening.alarms.clone());
        opening.watch_store(repository.store());
        let operator = OperatorSettings::read(repository.store(), &config.nf_instance_id).await?;
        let operational = Arc::new(Operational::new(opening.workers, operator.state));
        let (queue, pending) = notifier::queue(config.notifications.queue);
        // One for each notification that may be in flight.
        let (reports, inbox) = reports::channel(config.notifications.parallel);
        let (applications, pending_applications) = notifier::queue(config.notifications.queue);
        let root: Arc<str> = config.api_root.trim_end_matches('/').into();
        let traced = repository.traced(&config.nf_instance_id).await?;
        let removals = Arc::<Removals>::default();
        let (activity, policy_events) = journals(&config, &opening.alarms, traced)?;
        let pcf = Arc::new(Self {
            live: opening.live.clone(),
            repository: repository.clone(),
            notices: Notices {
                queue,
                applications,
                root: root.clone(),
                activity: activity.clone(),
                removals: removals.clone(),
            },
            operational: operational.clone(),
            operator: tokio::sync::Mutex::new(operator),
            counts: Counts::new(opening.workers, &opening.registry),
            latencies: Arc::new(Latencies::new(&opening.registry)),
            activity: activity.clone(),
            tracing: tokio::sync::Mutex::default(),
            policy_events,
            workers: opening.workers,
            orders: opening.listeners.diameter.orders.clone(),
            diameter: opening.listeners.diameter.addresses.clone(),
            restarts: Restarts::default(),
            records: parking_lot::Mutex::default(),
            finished: Finished::default(),
            removed: Finished::within(config.end_attempts().saturating_mul(4)),
            brake: Arc::default(),
            alarms: opening.alarms.clone(),
            reports: inbox,
            versions: Versions::default(),
            tolerated: Tolerated::new(&DROPPED, &opening.registry),
            names: names.clone(),
        });
        pages::observe(&opening.registry, &pcf);

        let limits = Arc::new(config.client.clone());
        let tls = opening.listeners.sbi.client_tls();
        let client = Client::with_names(limits.clone(), tls.clone(), names.clone());
        let guarding = opening.live.clone();
        let guard = function::sbi::guard(move || guarding.load().destinations.clone());
        let guarded = Client::guarded(limits, tls, names.clone(), Some(guard));
        let nrfs = outbound::nrfs(&config, client.clone(), names);
        // These tasks end with the control thread.
        tokio::task::spawn_local(function::sbi::follow_key_sets(opening.live.clone(), client));
        let consumers = Rc::new(Consumers {
            client: guarded,
            repository: repository.clone(),
            live: opening.live.clone(),
            counters: pcf.counts.control(),
            root,
            reports,
            activity,
            removals,
        });
        tokio::task::spawn_local(deliver(pending, consumers.clone()));
        let applications = Rc::new(Applications(consumers));
        tokio::task::spawn_local(deliver(pending_applications, applications));
        tokio::task::spawn_local(count_records(Arc::downgrade(&pcf)));
        sweep(repository.ledgers());
        sweep(repository.states());
        sweep(repository.ended_sessions());
        sweep(repository.bdt_policies());
        sweep(repository.bdt_loads());
        let registration = registration(&config, &opening, operational).filter(|_| !nrfs.is_empty());
        let store = repository.store().clone();
        let control = async move {
            if let Some(registration) = registration {
                registration.stay_until(opening.shutdown, &nrfs).await;
            }
            opening.drained.fired().await;
            store.close().await;
        };
        Ok(Opened::new(pcf, control))
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
        let (pcf, index) = (front.function().clone(), front.seat().context.index);
        let sampled = move |worker: &Worker| {
            pcf.operational.set_load(index, worker.shedder().load());
            worker.completion().measured(index, worker.shedder());
            worker.queue().measure();
        };
        tokio::task::spawn_local(front.clone().watch_load(|worker| worker.shedder(), sampled));
        tokio::task::spawn_local(delivery::run(front.clone()));
        tokio::task::spawn_local(sd::run(front.clone()));
        tokio::task::spawn_local(audit::run(front.clone()));
        tokio::task::spawn_local(renewal::run(front.clone()));
        if let Some(mut reports) = front.function().reports.take() {
            let front = front.clone();
            tokio::task::spawn_local(async move {
                while let Some(report) = reports.recv().await {
                    sm::answered(&front.worker(), report).await;
                }
            });
        }
        tokio::task::spawn_local(owed::run(front.clone()));
        tokio::task::spawn_local(ends::run(front.clone()));
        tokio::task::spawn_local(bdt::upkeep::run(front.clone()));
        tokio::task::spawn_local(gx::end_lost(front.clone()));
        let limits = Arc::new(front.worker().config().server.clone());
        let listeners = front.seat().listeners.clone();
        let node = listeners.diameter.run(&front)?;
        drop(beginning);
        let ended = listeners.sbi.serve(front, limits).await;
        if let Some(node) = node {
            node.node()
                .stop(DISCONNECT_GRACE, disconnect_cause::REBOOTING)
                .await;
        }
        ended
    }

    fn routes(self: &Arc<Self>) -> Router {
        let own = Arc::downgrade(self);
        pages::routes(&own).merge(store_copies::routes(&own, |pcf| pcf.repository().store()))
    }

    fn beside(config: &mut Config, admins: &[SocketAddr]) {
        config.other_admins = admins.to_vec();
    }

    fn metrics() -> Vec<Declaration> {
        pages::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![PROFILE.not_registered, UNWRITTEN, audit::BRAKED, UNREADABLE]
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}
