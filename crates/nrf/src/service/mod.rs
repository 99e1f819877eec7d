//! Wires the function together: workers, the control thread, and what goes between them.

mod gate;
mod running;
mod worker;

use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ::worker::{Pinning, Shutdown, Threads, WorkerContext};
use arc_swap::ArcSwap;
use sbi::client::Client;
use sbi::server::Interface;
use sbi::tls::Tls;
use store::{Store, TableDef};
use tokio::sync::mpsc;

use self::worker::{Front, Parts};
use crate::config::Config;
use crate::error::StartError;
use crate::events::Counters;
use crate::live::Live;
use crate::registry::registrar::{Registrar, Waiting, Write};
use crate::registry::{ProfileRecord, Snapshot, SubscriptionRecord};

pub use running::Running;
pub(crate) use worker::Worker;

/// Starts an NRF: binds, reads what the store has, and serves. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    let tls = Tls::open(config.tls.as_ref(), config.client_tls.as_ref()).map_err(StartError::Config)?;
    let count = ::worker::count(config.workers);
    let interface = Interface::bind(config.listen.iter(), count, tls.server())?;
    let shutdown = Shutdown::new();
    let published: Arc<ArcSwap<Snapshot>> = Arc::default();
    let counters: Vec<Arc<Counters>> = (0..=count).map(|_| Arc::default()).collect();

    // The URIs the NRF hands out name the port it really has.
    let mut resolved = config;
    if resolved.api_root.is_empty() {
        resolved.api_root = interface.root();
    }
    let config = Arc::new(resolved);
    let cores = config.cores.clone();
    let live = Live::new(config).map_err(StartError::Config)?;
    let live = Arc::new(ArcSwap::from_pointee(live));

    let (writes, store, control) = control(
        live.clone(),
        published.clone(),
        counters[count].clone(),
        tls.clone(),
    )?;
    let shared = Parts {
        live: live.clone(),
        published: published.clone(),
        writes,
        waiting: Waiting::default(),
        client_tls: tls.client(),
    };
    let interface = Arc::new(interface);
    let (offered, worker_counters) = (interface.clone(), counters.clone());
    let run = move |context: WorkerContext| {
        let counters = worker_counters[context.index].clone();
        let (shared, interface) = (shared.clone(), offered.clone());
        async move {
            let limits = Arc::new(shared.live.load().config.server.clone());
            let service = Rc::new(Front::new(shared, counters));
            tokio::task::spawn_local(service.clone().watch_load());
            tokio::task::spawn_local(service.clone().watch_scps());
            interface.serve(&context, service, limits).await
        }
    };
    let pinning = Pinning::to(&cores);
    let workers = ::worker::spawn(count, "nrf", &pinning, &shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        interface,
        published,
        counters,
        live,
        tls,
        store,
        threads: Threads::new(shutdown, workers).and(control),
    })
}

/// Starts the control thread: the registrar and the delivery of notifications.
fn control(
    live: Arc<ArcSwap<Live>>,
    published: Arc<ArcSwap<Snapshot>>,
    counters: Arc<Counters>,
    tls: Arc<Tls>,
) -> Result<(mpsc::Sender<Write>, Store, JoinHandle<()>), StartError> {
    let Live {
        config, screening, ..
    } = (**live.load()).clone();
    let (writes, incoming) = mpsc::channel(config.max_waiting_writes.max(1));
    // Of the standard library: whoever starts an NRF may do so from inside a runtime.
    let (ready, opened) = std::sync::mpsc::sync_channel::<Result<Store, StartError>>(1);
    let thread = ::worker::control("nrf-control", move || async move {
        let (notify, notifications) = mpsc::channel(config.subscriptions.queue_total.max(1));
        let tables = [
            TableDef::of::<ProfileRecord>(),
            TableDef::of::<SubscriptionRecord>(),
        ];
        let opened = async {
            let store = Store::open(&config.store, &tables).await?;
            let registrar = Registrar::open(
                config.clone(),
                screening,
                store.clone(),
                published,
                notify,
                counters.clone(),
            );
            Ok::<_, store::Error>((registrar.await?, store))
        };
        let (registrar, store) = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                let _ = ready.send(Err(error.into()));
                return;
            }
        };
        let client = Client::with_names(Arc::new(config.client.clone()), tls.client(), None);
        tokio::task::spawn_local(tls.follow());
        let (states, retrieved) = mpsc::channel(1);
        for set in &config.growth.sets {
            let (settings, set) = (config.growth.clone(), set.clone());
            let (client, counters, states) = (client.clone(), counters.clone(), states.clone());
            let own = config.nf_instance_id.clone();
            tokio::task::spawn_local(crate::growth::follow(
                settings, set, own, client, counters, states,
            ));
        }
        drop(states);
        tokio::task::spawn_local(rotate_keys(live.clone()));
        let delivery = crate::notify::deliver(notifications, client, config.subscriptions.clone(), counters);
        tokio::task::spawn_local(delivery);
        if ready.send(Ok(store)).is_ok() {
            registrar.run(incoming, retrieved, live).await;
        }
    })
    .map_err(StartError::io("starting the control thread"))?;
    let gone = || StartError::Config("the control thread ended before it was ready".to_owned());
    let store = opened.recv().map_err(|_| gone())??;
    Ok((writes, store, thread))
}

/// Makes this NRF's own key anew when it is old enough.
async fn rotate_keys(live: Arc<ArcSwap<Live>>) {
    /// How often it is looked at; a key is weeks old.
    const INTERVAL: Duration = Duration::from_secs(60);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let config = live.load().config.clone();
        let directory = &config.store.embedded.directory;
        let every = config.tokens.rotate_every.duration();
        if config.tokens.signing_keys.is_empty()
            && crate::tokens::is_due(directory, every, std::time::SystemTime::now())
        {
            match Live::new(config) {
                Ok(renewed) => {
                    live.store(Arc::new(renewed));
                    tracing::info!("another key signs tokens from now on");
                }
                Err(error) => tracing::error!(error, "the key that signs tokens could not be made anew"),
            }
        }
    }
}
