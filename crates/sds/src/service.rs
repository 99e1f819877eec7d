//! The SDS as a network function: how it opens, and what its threads share.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use function::sbi::config::Nrf;
use function::sbi::{Operational, Profile, Registration, Routed as _, Sbi, State, nrfs};
use function::{
    Beginning, Common, Counts, NetworkFunction, Opened, Opening, Page, Seat, Shutdown, StartError, listening,
    settle_instance, store_copies,
};
use sbi::client::Client;
use store::{EngineKind, Stored};
use telemetry::{AlarmKind, Declaration, Severity, health::Component};
use tokio::sync::watch;

use crate::config::Config;
use crate::data::{Data, Files};
use crate::dispatch::{JOURNAL, PROVISIONING};
use crate::journal::{Journal, Keeper, Known, Refused};
use crate::live::{Derived, Effective};
use crate::pages;
use crate::record::Head;
use crate::repository::Repository;
use crate::shared::Sds;
use crate::tail::Tail;
use crate::upkeep;
use crate::worker::{Front, Worker};

/// What every SDS of ours says in its profile at the NRFs.
const PROFILE: &Profile = &Profile {
    nf_type: "SDS",
    info: "customInfo",
    services: &[(PROVISIONING, "1.0.0"), (JOURNAL, "1.0.0")],
    // Another server takes a checkpoint. Those of provisioning are a setting.
    allowed_nf_types: |service| if service == JOURNAL { &["DP", "SDS"] } else { &[] },
    // The number is ours.
    not_registered: AlarmKind {
        number: 10593,
        name: "Subscriber Database Server Not Registered",
        severity: Severity::Major,
        text: "No NRF has accepted the registration of the server, so that none grants access tokens for its services.",
        advice: "Check `sds.nrfs` and the log; the alarm clears by itself.",
    },
};

/// A running SDS.
pub type Running = function::Running<Sds>;

/// Starts an SDS. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

/// Reads the records of the directory; they belong to the journal with this identity. A text to load must be of the journal
/// that the store has.
async fn read(files: &Files, stored: Option<Head>) -> Result<(Data, Option<String>), StartError> {
    let files = files.clone();
    let read = tokio::task::spawn_blocking(move || files.open(stored.as_ref()));
    let read = read
        .await
        .map_err(|error| StartError::Config(error.to_string()))?;
    read.map_err(|error| StartError::Config(error.to_string()))
}

/// The head of the journal, which is created where there is none.
async fn head_of(
    repository: &Repository,
    files: &Files,
    data: &Arc<Data>,
    journal: Option<String>,
) -> Result<Stored<Head>, StartError> {
    let (mut own, offset) = (journal, data.offset());
    if repository.head().await?.is_none() {
        // Records whose journal is lost begin another one: processors have to take them whole.
        let id = uuid::Uuid::new_v4().to_string();
        if own.is_some() {
            // Before the journal: one that is there has the identity that the records have.
            let (files, data, new) = (files.clone(), data.clone(), id.clone());
            let saved = tokio::task::spawn_blocking(move || files.checkpoint(&data, &new)).await;
            let saved = saved.map_err(|error| StartError::Config(error.to_string()))?;
            saved.map_err(|error| StartError::Config(error.to_string()))?;
            own = Some(id.clone());
        }
        tracing::info!(journal = id, offset, "no journal in the store; creating one");
        let first = offset + 1;
        repository.create(&Head { id, offset, first }).await?;
    }
    let missing = || StartError::Config("the store does not return the head of the journal".to_owned());
    let head = repository.head().await?.ok_or_else(missing)?;
    match own {
        Some(own) if own != head.id => Err(StartError::Config(format!(
            "the records in `directory` are of journal {own}, the store has journal {}; put a checkpoint of a server \
             with this journal into the directory as load.csv",
            head.id
        ))),
        _ => Ok(head),
    }
}

/// Why the server does not start, with what helps.
fn unstartable(refused: &Refused) -> String {
    match refused {
        Refused::Older { store, own } => format!(
            "the store has transactions up to {store} alone, the records in `directory` have those up to {own}. Where its node \
             lags, start again when it has caught up. Where it was restored from a backup: with `embedded`, remove \
             store.embedded.directory, and a new journal begins with the records; with other databases, put a checkpoint \
             of offset {store} or before into `directory` as load.csv"
        ),
        other => other.to_string(),
    }
}

/// The server at the NRFs (TS 29.510 §5.2.2.2).
///
/// Its service of provisioning has no list of its own: the one of the profile applies to it (TS 29.510 §6.1.6.2.3).
fn registration(config: &Config, opening: &Opening<Sds>, sds: &Sds) -> Result<Registration, StartError> {
    let provisioners = config.provisioners.clone().into();
    Ok(Registration {
        profile: PROFILE,
        instance: config.nf_instance_id.clone(),
        settings: Nrf {
            api_roots: config.nrfs.clone(),
            profile: [("allowedNfTypes".to_owned(), provisioners)]
                .into_iter()
                .collect(),
            ..Nrf::default()
        },
        secure: config.tls.is_some(),
        listens: function::Listeners::addresses(&*opening.listeners).to_vec(),
        root: opening.listeners.root(&config.nrfs)?,
        operational: sds.operational.clone(),
        alarms: opening.alarms.clone(),
        health: opening.health.clone(),
    })
}

/// Stays registered until the shutdown.
async fn register(registration: &Registration, client: Client, shutdown: Shutdown) {
    let Registration {
        settings, instance, ..
    } = registration;
    let nrfs = nrfs(settings, PROFILE.nf_type, instance, client, None);
    registration.stay_until(shutdown, &Rc::new(nrfs)).await;
}

/// Transactions that are made durable or removed together, at most.
const fn together(engine: EngineKind) -> usize {
    match engine {
        // It locks row after row, and a transaction that takes seconds is rolled back.
        EngineKind::Cassandra => 16,
        EngineKind::Embedded | EngineKind::Mariadb => 256,
    }
}

/// Shows as readiness whether the server follows the journal.
async fn show(mut known: watch::Receiver<Known>, component: Component) {
    loop {
        let stopped = known.borrow_and_update().stopped.clone();
        match stopped {
            None => component.ready(),
            Some(reason) => component.not_ready(reason),
        }
        if known.changed().await.is_err() {
            return;
        }
    }
}

impl NetworkFunction for Sds {
    const NAME: &'static str = "sds";
    const TITLE: &'static str = "SDS";
    const PAGES: &'static [Page] = pages::PAGES;

    type Config = Config;
    type Derived = Derived;
    type Listeners = Sbi;
    type Worker = Worker;

    fn common(config: &Config) -> Common<'_> {
        Common {
            admin: config.admin,
            instance: &config.nf_instance_id,
            listen: listening("listen", &config.listen),
            directory: Some(&config.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Sbi, StartError> {
        function::sbi::certify_instance(
            &mut config.nf_instance_id,
            config.tls.as_ref(),
            config.client_tls.as_ref(),
        )?;
        settle_instance(&mut config.nf_instance_id, &config.directory, Self::NAME)?;
        Sbi::reserve(&config.listen, &Self::common(config), workers)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let config = opening.live.load_full().config.clone();
        let files = Files::new(&config.directory);
        let files = files.map_err(|error| StartError::Config(error.to_string()))?;
        opening.wait_for_store(&config.store).await?;
        let repository = Repository::open(&config.store).await?;
        let stored = repository.head().await?.map(|head| head.record);
        let (data, journal) = read(&files, stored).await?;
        let data = Arc::new(data);
        opening.watch_store(repository.store());
        let head = head_of(&repository, &files, &data, journal).await?;
        let tail = Arc::new(Tail::default());
        let (known, watched) = watch::channel(Known {
            head: head.record.clone(),
            stopped: None,
        });
        let mut keeper = Keeper {
            repository: repository.clone(),
            data: data.clone(),
            tail: tail.clone(),
            head,
            known,
            stale: true,
            together: together(config.store.engine),
        };
        keeper
            .catch_up()
            .await
            .map_err(|refused| StartError::Config(unstartable(&refused)))?;
        let (journal, orders) = Journal::channel();
        let sds = Arc::new(Self {
            repository: repository.clone(),
            data,
            tail,
            journal,
            known: watched.clone(),
            pollers: Arc::default(),
            counts: Counts::new(opening.workers, &opening.registry),
            operational: Arc::new(Operational::new(opening.workers, State::Serving)),
            workers: opening.workers,
            live: opening.live.clone(),
            shutdown: opening.shutdown.clone(),
        });
        pages::observe(&opening.registry, &sds);
        let poll = match config.store.engine {
            // One process has the store.
            EngineKind::Embedded => Duration::ZERO,
            EngineKind::Mariadb | EngineKind::Cassandra => config.journal.poll.duration(),
        };
        tokio::task::spawn_local(keeper.run(orders, poll));
        tokio::task::spawn_local(show(watched, opening.health.component("journal")));
        tokio::task::spawn_local(upkeep::run(sds.clone(), files, sds.counts.control()));
        let tls = opening.listeners.client_tls();
        let client = Client::with_names(Arc::new(config.client.clone()), tls, None);
        let key_sets = function::sbi::follow_key_sets(opening.live.clone(), client.clone());
        tokio::task::spawn_local(key_sets);
        let registration = (!config.nrfs.is_empty()).then(|| registration(&config, &opening, &sds));
        let registration = registration.transpose()?;
        let store = repository.store().clone();
        let control = async move {
            if let Some(registration) = registration {
                register(&registration, client, opening.shutdown).await;
            }
            opening.drained.fired().await;
            store.close().await;
        };
        Ok(Opened::new(sds, control))
    }

    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Effective>,
        before: Option<&Rc<Worker>>,
    ) -> Rc<Worker> {
        Rc::new(Worker::new(self, seat, now.clone(), before))
    }

    async fn serve(front: Rc<Front>, beginning: Beginning) -> io::Result<()> {
        let (sds, index) = (front.function().clone(), front.seat().context.index);
        let sampled = move |worker: &Worker| {
            sds.operational.set_load(index, worker.shedder().load());
            worker.completion().measured(index, worker.shedder());
        };
        tokio::task::spawn_local(front.clone().watch_load(|worker| worker.shedder(), sampled));
        let listeners = front.seat().listeners.clone();
        drop(beginning);
        let limits = Arc::new(front.worker().config().server.clone());
        listeners.serve_routed(front, limits).await
    }

    fn routes(self: &Arc<Self>) -> Router {
        let own = Arc::downgrade(self);
        pages::routes(&own).merge(store_copies::routes(&own, |sds| sds.repository.store()))
    }

    fn metrics() -> Vec<Declaration> {
        pages::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![PROFILE.not_registered]
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}
