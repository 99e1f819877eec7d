//! The SCEF as a network function: how it opens, and what its threads share.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use axum::Router;
use function::sbi::{Operational, Routed as _, State};
use function::{
    Beginning, Common, Counts, NetworkFunction, Opened, Opening, Page, Seat, StartError, listening,
    settle_instance, store_copies,
};
use sbi::client::Client;
use store::{Batch, Condition, Index, Record, Sweep, SweepConfig, Table};
use telemetry::{AlarmKind, Declaration};

use crate::config::Config;
use crate::events::Event;
use crate::listeners::Listening;
use crate::live::{Derived, Effective};
use crate::notices::{self, Servers};
use crate::quotas::{Buffers, Quota};
use crate::record::{Id, PENDING, Subscription, Trigger};
use crate::repository::Repository;
use crate::shared::Scef;
use crate::worker::{Front, Worker};
use crate::{agent, ending, gathered, outcomes, pages};

/// A running SCEF.
pub type Running = function::Running<Scef>;

/// Time for Diameter peers to answer a DPR.
const DISCONNECT_GRACE: std::time::Duration = std::time::Duration::from_secs(1);
/// Records that are removed at once.
const MOST: usize = 256;

/// Starts an SCEF. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// Removes records whose time is over, as long as the control thread runs.
fn sweep<T: Record>(table: &Table<T>) {
    match Sweep::new(table.clone(), SweepConfig::default()) {
        Ok(sweep) => drop(tokio::task::spawn_local(async move { sweep.run().await })),
        Err(error) => tracing::error!(%error, table = T::TABLE.name, "expired records are not removed"),
    }
}

/// Removes subscriptions and triggers that were not confirmed: their SCS/AS had no answer. What is confirmed is not read.
async fn remove_pending(repository: &Repository) -> Result<(), store::Error> {
    remove_under(repository, &repository.subscriptions, Subscription::PENDING_ONES).await?;
    remove_under(repository, &repository.triggers, Trigger::PENDING_ONES).await
}

async fn remove_under<T: Record>(
    repository: &Repository,
    table: &Table<T>,
    pending: Index,
) -> Result<(), store::Error> {
    loop {
        let found = table.find(pending, PENDING, MOST).await?;
        let mut batch = Batch::default();
        for one in &found {
            batch.delete(table, &one.key(), Condition::Always);
        }
        if found.is_empty() {
            return Ok(());
        }
        repository.commit(batch).await?;
    }
}

/// The tasks of the control thread; they end with it.
fn spawn_tasks(opening: &Opening<Scef>, scef: &Arc<Scef>, pending: notifier::Receiver) {
    let config = opening.live.load_full().config.clone();
    let limits = Arc::new(config.client.clone());
    let tls = opening.listeners.t8.client_tls();
    let client = Client::with_names(limits.clone(), tls.clone(), None);
    let guarding = opening.live.clone();
    let guard = function::sbi::guard(move || guarding.load().destinations.clone());
    let servers = Servers {
        client: Client::guarded(limits, tls, None, Some(guard)),
        repository: scef.repository.clone(),
        live: opening.live.clone(),
        counters: scef.counts.control(),
        done: Rc::default(),
    };
    tokio::task::spawn_local(function::sbi::follow_key_sets(opening.live.clone(), client));
    tokio::task::spawn_local(notifier::run(pending, Rc::new(servers)));
    let counting = scef.clone();
    tokio::task::spawn_local(notices::requeue(
        scef.repository.clone(),
        scef.queue.clone(),
        move || counting.count(Event::NotificationDeferred),
    ));
    sweep(&scef.repository.subscriptions);
    tokio::task::spawn_local(ending::run(scef.clone(), scef.counts.control()));
    tokio::task::spawn_local(gathered::run(scef.clone()));
    tokio::task::spawn_local(gathered::data::run(scef.clone()));
    tokio::task::spawn_local(outcomes::run(scef.clone(), scef.counts.control()));
    tokio::task::spawn_local(notices::expire(
        scef.repository.notices.clone(),
        scef.counts.control(),
    ));
    tokio::task::spawn_local(notices::expire(
        scef.repository.reports.clone(),
        scef.counts.control(),
    ));
    sweep(&scef.repository.answers);
}

impl NetworkFunction for Scef {
    const NAME: &'static str = "scef";
    const TITLE: &'static str = "SCEF";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Listening;
    type Worker = Worker;

    fn common(config: &Config) -> Common<'_> {
        let mut listen = listening("listen", &config.listen);
        listen.extend(listening("diameter.listen", &config.diameter.listen));
        Common {
            admin: config.admin,
            instance: &config.nf_instance_id,
            listen,
            directory: Some(&config.store.embedded.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: config.diameter.tls.as_ref(),
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Listening, StartError> {
        let (tls, client_tls) = (config.tls.as_ref(), config.client_tls.as_ref());
        function::sbi::certify_instance(&mut config.nf_instance_id, tls, client_tls)?;
        let directory = &config.store.embedded.directory;
        settle_instance(&mut config.nf_instance_id, directory, Self::NAME)?;
        let listeners = Listening::reserve(config, &Self::common(config), workers)?;
        // The URIs that the SCEF hands out name the port it really has.
        if config.api_root.is_empty() {
            config.api_root = listeners.t8.root(&[])?;
        }
        Ok(listeners)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let config = opening.live.load_full().config.clone();
        opening.wait_for_store(&config.store).await?;
        let repository = Repository::open(&config.store).await?;
        opening.watch_store(repository.store());
        let (queue, pending) = notifier::queue(config.notifications.queue);
        let scef = Arc::new(Self {
            repository: repository.clone(),
            orders: opening.listeners.orders.clone(),
            queue,
            subscriptions: Quota::default(),
            configurations: Quota::default(),
            triggers: Quota::default(),
            buffers: Buffers::default(),
            counts: Counts::new(opening.workers, &opening.registry),
            operational: Operational::new(opening.workers, State::Serving),
            workers: opening.workers,
            live: opening.live.clone(),
            hss: opening.health.dependency("HSS"),
            sms_sc: opening.health.dependency("SMS-SC"),
            diameter: opening.listeners.diameter().to_vec(),
        });
        remove_pending(&repository).await?;
        notices::resume(&repository, &scef.queue, Id::MAX).await?;
        pages::observe(&opening.registry, &scef);
        spawn_tasks(&opening, &scef, pending);
        let store = repository.store().clone();
        let control = async move {
            opening.drained.fired().await;
            store.close().await;
        };
        Ok(Opened::new(scef, control))
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
        let (scef, index) = (front.function().clone(), front.seat().context.index);
        let sampled = move |worker: &Worker| {
            scef.operational.set_load(index, worker.shedder().load());
            worker.completion().measured(index, worker.shedder());
        };
        tokio::task::spawn_local(front.clone().watch_load(|worker| worker.shedder(), sampled));
        let listeners = front.seat().listeners.clone();
        let seat = (index == 0).then(|| listeners.seat()).flatten();
        let node = seat.map(|seat| agent::run(seat, &front)).transpose()?;
        drop(beginning);
        let limits = Arc::new(front.worker().config().server.clone());
        let ended = listeners.t8.serve_routed(front, limits).await;
        if let Some(node) = node {
            let rebooting = diameter::proto::known::disconnect_cause::REBOOTING;
            node.node().stop(DISCONNECT_GRACE, rebooting).await;
        }
        ended
    }

    fn routes(self: &Arc<Self>) -> Router {
        let own = Arc::downgrade(self);
        pages::routes(&own).merge(store_copies::routes(&own, |scef| scef.repository.store()))
    }

    fn beside(config: &mut Config, admins: &[SocketAddr]) {
        config.other_admins = admins.to_vec();
    }

    fn metrics() -> Vec<Declaration> {
        pages::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        Vec::new()
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}
