//! The NRF as a network function: what its threads share, how it opens, what its control thread does.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use axum::Router;
use function::sbi::{Routed as _, Sbi};
use function::{
    Beginning, Common, Counts, Front, NetworkFunction, Opened, Opening, Page, Seat, StartError, Tolerated,
    listening, settle_instance, store_copies,
};
use registry::{ProfileRecord, Snapshot, SubscriptionRecord};
use sbi::client::Client;
use sbi::dns::Dns;
use store::{Store, TableDef};
use telemetry::{AlarmKind, Declaration};
use tokio::sync::mpsc;
use worker::Random;

use crate::cluster::{Cluster, MEMBER_DEAD};
use crate::config::Config;
use crate::events::DROPPED;
use crate::growth::{SET_NOT_RETRIEVED, Standing};
use crate::live::{Derived, Effective, Live};
use crate::notify::{RESYNCS, Subscribers};
use crate::pages;
use crate::registrar::{Inputs, OwedRecord, Registrar, Waiting};
use crate::shared::Nrf;
use crate::worker::Worker;

/// Questions of admin pages that may be pending; further pages wait.
const LOOKS: usize = 8;

/// A running NRF.
pub type Running = function::Running<Nrf>;

/// Starts an NRF. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    function::start(config)
}

impl NetworkFunction for Nrf {
    const NAME: &'static str = "nrf";
    const TITLE: &'static str = "NRF";
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
            directory: Some(&config.store.embedded.directory),
            workers: config.workers,
            cores: &config.cores,
            tls: config.tls.as_ref(),
            client_tls: config.client_tls.as_ref(),
            other_tls: None,
        }
    }

    fn bind(config: &mut Config, workers: usize) -> Result<Sbi, StartError> {
        let directory = &config.store.embedded.directory;
        let (tls, client_tls) = (config.tls.as_ref(), config.client_tls.as_ref());
        function::sbi::certify_instance(&mut config.nf_instance_id, tls, client_tls)?;
        settle_instance(&mut config.nf_instance_id, directory, Self::NAME)?;
        let sbi = Sbi::reserve(&config.listen, &Self::common(config), workers)?;
        // The URIs that the NRF hands out name the port it really has.
        if config.api_root.is_empty() {
            config.api_root = sbi.root(&[])?;
        }
        Ok(sbi)
    }

    fn derive(config: &Arc<Config>, before: Option<&Effective>) -> Result<Derived, String> {
        Derived::new(config, before)
    }

    async fn open(opening: Opening<Self>) -> Result<Opened<Self>, StartError> {
        let now = opening.live.load_full();
        let config = now.config.clone();
        let counts = Counts::new(opening.workers, &opening.registry);
        let mut tables = vec![
            TableDef::of::<ProfileRecord>(),
            TableDef::of::<SubscriptionRecord>(),
        ];
        match config.cluster.enabled {
            true => tables.extend(Cluster::tables()),
            false => tables.push(TableDef::of::<OwedRecord>()),
        }
        opening.wait_for_store(&config.store).await?;
        let store = Store::open(&config.store, &tables).await?;
        opening.watch_store(&store);
        let cluster = match config.cluster.enabled {
            true => Some(Cluster::join(&store, &config).await?),
            false => None,
        };
        let published: Arc<ArcSwap<Snapshot>> = Arc::default();
        let (queue, pending) = notifier::queue(config.subscriptions.queue_total);
        let registrar = Registrar::open(
            config.clone(),
            now.screening.clone(),
            store.clone(),
            published.clone(),
            queue.clone(),
            (counts.control(), Tolerated::new(&DROPPED, &opening.registry)),
            cluster.as_ref(),
        );
        let registrar = registrar.await?;
        pages::observe(&opening.registry, &published, queue);
        let handoff = cluster.as_ref().map(|cluster| cluster.handoff.clone());
        if let Some(handoff) = &handoff {
            pages::observe_cluster(&opening.registry, handoff);
        }

        let client_tls = opening.listeners.client_tls();
        let names = names(&config)?;
        let limits = Arc::new(config.client.clone());
        let client = Client::with_names(limits.clone(), client_tls.clone(), names.clone());
        let live = opening.live.clone();
        let guard = function::sbi::guard(move || live.load().destinations.clone());
        let guarded = Client::guarded(limits, client_tls, names.clone(), Some(guard));
        // These tasks end with the control thread.
        let (states, retrieved) = mpsc::channel(1);
        let sets = config.growth.sets.iter();
        let growth: Vec<Arc<Standing>> = sets.map(|set| Arc::new(Standing::new(set.clone()))).collect();
        for standing in &growth {
            let following = crate::growth::follow(
                config.growth.clone(),
                standing.clone(),
                config.nf_instance_id.clone(),
                client.clone(),
                counts.control(),
                opening.alarms.clone(),
                states.clone(),
            );
            tokio::task::spawn_local(following);
        }
        drop(states);
        tokio::task::spawn_local(rotate_keys(opening.live.clone()));
        let (resyncs, resyncing) = mpsc::channel(RESYNCS);
        let subscribers = Subscribers {
            client: guarded,
            live: opening.live.clone(),
            counters: counts.control(),
            resyncs,
            names: names.clone().filter(|_| config.dns_srv),
            random: Random::default(),
        };
        tokio::task::spawn_local(notifier::run(pending, Rc::new(subscribers)));

        let (drift, drifts) = mpsc::channel(1);
        if let Some(cluster) = cluster {
            let health = opening.health.component("cluster");
            let following = crate::cluster::follow(cluster, drift, health, opening.alarms.clone());
            tokio::task::spawn_local(following);
        }

        let (writes, incoming) = mpsc::channel(config.max_waiting_writes.max(1));
        let (looks, looked) = mpsc::channel(LOOKS);
        let nrf = Arc::new(Self {
            published,
            counts,
            writes,
            waiting: Waiting::default(),
            cluster: handoff,
            names,
            live: opening.live.clone(),
            looks,
            growth,
            store,
            scps_down: (0..opening.workers).map(|_| AtomicU64::new(0)).collect(),
        });
        let inputs = Inputs {
            writes: incoming,
            retrieved,
            resyncs: resyncing,
            drifts,
            looks: looked,
        };
        let control = registrar.run(inputs, opening.live.follower(), opening.drained);
        Ok(Opened::new(nrf, control))
    }

    fn worker(
        self: &Arc<Self>,
        seat: &Seat<Self>,
        now: &Arc<Effective>,
        before: Option<&Rc<Worker>>,
    ) -> Rc<Worker> {
        Rc::new(Worker::new(
            self,
            seat,
            now.clone(),
            before.map(|worker| &**worker),
        ))
    }

    async fn serve(front: Rc<Front<Self>>, beginning: Beginning) -> io::Result<()> {
        let index = front.seat().context.index;
        tokio::task::spawn_local(front.clone().watch_load(
            |worker| worker.shedder(),
            move |worker| worker.completion().measured(index, worker.shedder()),
        ));
        tokio::task::spawn_local(watch_scps(front.clone()));
        let limits = Arc::new(front.seat().live.load().config.server.clone());
        let listeners = front.seat().listeners.clone();
        drop(beginning);
        listeners.serve_routed(front, limits).await
    }

    fn routes(self: &Arc<Self>) -> Router {
        let own = Arc::downgrade(self);
        pages::routes(&own).merge(store_copies::routes(&own, |nrf| &nrf.store))
    }

    fn beside(config: &mut Config, admins: &[SocketAddr]) {
        config.other_admins = admins.to_vec();
    }

    fn metrics() -> Vec<Declaration> {
        pages::metrics()
    }

    fn alarms() -> Vec<AlarmKind> {
        vec![SET_NOT_RETRIEVED, MEMBER_DEAD]
    }

    fn hints(uri: &str) -> Vec<String> {
        pages::hints(uri)
    }
}

/// The resolver of names; none: the system.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let wanted = config.dns_srv || !config.dns.servers.is_empty();
    let names = wanted.then(|| Dns::start(&config.dns)).transpose();
    names.map_err(StartError::io("starting to resolve names"))
}

/// Checks the health of the SCPs on the route to location functions.
async fn watch_scps(front: Rc<Front<Nrf>>) {
    /// How often to check whether there is an SCP to check.
    const IDLE: Duration = Duration::from_secs(1);
    loop {
        let worker = front.worker();
        if worker.slf().scp_interval().is_some() {
            worker.slf().check_scps().await;
            worker.show_scps(front.seat().context.index);
        }
        tokio::time::sleep(worker.slf().scp_interval().unwrap_or(IDLE)).await;
    }
}

/// Rotates this NRF's own signing key when it is old enough.
async fn rotate_keys(live: Arc<Live>) {
    /// How often to check; a key is weeks old.
    const INTERVAL: Duration = Duration::from_secs(60);
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = rotate_key_if_due(&live, SystemTime::now()) {
            tracing::error!(error, "the signing key of access tokens could not be rotated");
        }
    }
}

/// Rotates the signing key if it is due; whether it was.
pub(crate) fn rotate_key_if_due(live: &Live, now: SystemTime) -> Result<bool, String> {
    let config = live.load().config.clone();
    let every = config.tokens.rotate_every.duration();
    let due = config.tokens.signing_keys.is_empty()
        && crate::tokens::is_due(&config.store.embedded.directory, every, now);
    if due {
        live.rederive(Derived::with_keys)?;
        tracing::info!("signing key of access tokens rotated");
    }
    Ok(due)
}

#[cfg(test)]
mod tests {
    use function::testing::UnderLoad;
    use http::{Request, StatusCode};
    use sbi::Body;
    use sbi::client::{ClientConfig, Origin, SendOptions};

    use super::*;

    const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

    fn config(directory: &std::path::Path, round: u32) -> Config {
        let mut config = Config {
            listen: settings::Listen(vec![([127, 0, 0, 1], 0).into()]),
            workers: 2,
            ..Config::default()
        };
        config.store.embedded.directory = directory.to_owned();
        config.tokens.rotate_every = settings::Period::from_secs(86_400);
        config.max_profiles = 1_000 + round as usize;
        // What workers have cached is invalidated in every other round.
        config.discovery.max_profiles = 5 + (round / 2) as usize;
        config
    }

    async fn send(client: &Client, origin: &Origin, request: http::Request<Body>) -> StatusCode {
        let sent = client.send(origin, request, SendOptions::default()).await;
        sent.expect("an answer").status()
    }

    fn put(load: u64) -> http::Request<Body> {
        let profile = format!(
            r#"{{"nfInstanceId":"{ID}","nfType":"UDM","nfStatus":"REGISTERED","ipv4Addresses":["127.0.0.1"],"load":{}}}"#,
            load % 100
        );
        Request::put(format!("/nnrf-nfm/v1/nf-instances/{ID}"))
            .header("content-type", "application/json")
            .body(Body::from(profile))
            .unwrap()
    }

    /// A hundred reloads under load, beside rotations of the signing key: no request, registration or change is lost.
    #[test]
    fn reloads_beside_key_rotations_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let running = start(config(directory.path(), 0)).unwrap();
        let live = running.handle().live().clone();
        let origin: Origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
        let key = directory.path().join("token-key.der");
        let rotations = std::sync::atomic::AtomicU32::new(0);
        let load = |goes_on: &dyn Fn() -> bool| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            tokio::task::LocalSet::new().block_on(&runtime.unwrap(), async {
                let client = Client::new(Arc::new(ClientConfig::default()), None);
                assert_eq!(send(&client, &origin, put(0)).await, StatusCode::CREATED);
                let mut rounds = 0;
                while goes_on() {
                    rounds += 1;
                    assert_eq!(send(&client, &origin, put(rounds)).await, StatusCode::OK);
                    for path in [
                        "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF".to_owned(),
                        format!("/nnrf-nfm/v1/nf-instances/{ID}"),
                        "/oauth2/jwks".to_owned(),
                    ] {
                        let request = Request::get(&path).body(Body::empty()).unwrap();
                        assert_eq!(send(&client, &origin, request).await, StatusCode::OK, "{path}");
                    }
                }
                assert!(rounds > 0);
            });
        };
        UnderLoad {
            times: 100,
            wanted: |round| config(directory.path(), round),
            is_in_effect: |round, config: &Config| config.max_profiles == 1_000 + round as usize,
            beside: || {
                let old = SystemTime::now() - Duration::from_secs(90_000);
                let aged = std::fs::File::options()
                    .write(true)
                    .open(&key)
                    .and_then(|file| file.set_modified(old));
                // A reload may be replacing the key at this moment.
                let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
                assert!(
                    aged.map_or_else(missing, |()| true),
                    "the key cannot be made older"
                );
                // A reload rotates a key that is due as well.
                if rotate_key_if_due(&live, SystemTime::now()).unwrap() {
                    rotations.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            },
            load,
        }
        .run(&running);
        assert!(rotations.into_inner() > 0);
        // The last key made is the one that signs.
        let newest = Derived::new(&live.load().config, None).unwrap();
        assert_eq!(*newest.issuer, *live.load().issuer);
        assert_eq!(running.snapshot().len(), 1);
        running.stop().unwrap();
    }
}
