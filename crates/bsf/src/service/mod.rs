//! Wires the function together: workers, the control thread, and what goes between them.

mod control;
mod running;
mod state;
mod worker;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::worker::{Pinning, Shutdown, WorkerContext};
use arc_swap::ArcSwap;
use diameter::proto::known::disconnect_cause;
use sbi::server::{self, ServerStats};
use tokio::sync::mpsc;

use self::worker::Parts;
use crate::config::Config;
use crate::error::StartError;
use crate::events::Counters;
use crate::live::Live;
use crate::rx;

pub use running::Running;
pub use state::State;
pub(crate) use state::Switches;
pub(crate) use worker::{Front, Worker};

/// Starts a BSF: binds, reads what the store has, and serves. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start(config: Config) -> Result<Running, StartError> {
    let tls = |error: sbi::tls::TlsError| StartError::Config(error.to_string());
    let server_tls = config
        .tls
        .as_ref()
        .map(sbi::tls::server)
        .transpose()
        .map_err(tls)?;
    let client_tls = config
        .client_tls
        .as_ref()
        .map(sbi::tls::client)
        .transpose()
        .map_err(tls)?;
    let count = match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let (listeners, addresses) = bind(&config, count)?;
    let (seats, diameter) = rx::seats(&config.rx, count)?;
    let shutdown = Shutdown::new();
    let counters: Vec<Arc<Counters>> = (0..=count).map(|_| Arc::default()).collect();
    let servers: Vec<Arc<ServerStats>> = (0..count).map(|_| Arc::default()).collect();
    let switches = Arc::new(Switches::new(count, config.overload.enabled));

    // The URIs the BSF hands out name the port it really has.
    let mut config = config;
    if config.api_root.is_empty()
        && let Some(address) = addresses.first()
    {
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        config.api_root = format!("{scheme}://{address}");
    }
    let config = Arc::new(config);
    let live = Live::new(config.clone()).map_err(StartError::Config)?;
    let live = Arc::new(ArcSwap::from_pointee(live));
    let (notifications, incoming) = mpsc::channel(config.notifications.queue.max(1));
    let (told, hears) = mpsc::channel(control::TOLD);
    let (repository, control) = control::Control {
        live: live.clone(),
        incoming,
        notifications: notifications.clone(),
        hears,
        counters: counters[count].clone(),
        client_tls,
        address: addresses.first().copied(),
        switches: switches.clone(),
        shutdown: shutdown.clone(),
    }
    .start()?;

    let listeners = Arc::new(parking_lot::Mutex::new(listeners));
    let seats = Arc::new(parking_lot::Mutex::new(seats));
    let pinning = match config.cores.is_empty() {
        true => Pinning::Free,
        false => Pinning::Cores(config.cores.clone()),
    };
    let parts = Parts {
        live: live.clone(),
        repository: repository.clone(),
        switches: switches.clone(),
        notifications,
        told,
        workers: count,
    };
    let (worker_counters, worker_servers) = (counters.clone(), servers.clone());
    let run = move |context: WorkerContext| {
        let mine = std::mem::take(&mut listeners.lock()[context.index]);
        let seat = seats.lock().get_mut(context.index).and_then(Option::take);
        let (parts, counters) = (parts.clone(), worker_counters[context.index].clone());
        let (stats, tls) = (worker_servers[context.index].clone(), server_tls.clone());
        async move {
            let service = Rc::new(Front::new(parts, context.index, counters));
            tokio::task::spawn_local(service.clone().watch_load());
            let agent = match seat {
                Some(seat) => Some(rx::run(seat, service.clone())?),
                None => None,
            };
            let limits = Arc::new(service.current().config().server.clone());
            let serving = mine.into_iter().map(|listener| {
                let (service, limits, tls) = (service.clone(), limits.clone(), tls.clone());
                server::serve(
                    listener,
                    service,
                    limits,
                    tls,
                    stats.clone(),
                    context.shutdown.clone(),
                )
            });
            let ended = futures_util::future::try_join_all(serving).await.map(drop);
            if let Some(agent) = agent {
                agent.stop(DISCONNECT_GRACE, disconnect_cause::REBOOTING).await;
            }
            ended
        }
    };
    let workers = ::worker::spawn(count, "bsf", &pinning, &shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        addresses,
        diameter,
        repository,
        switches,
        counters,
        servers,
        live,
        shutdown,
        workers: Some(workers),
        control: Some(control),
    })
}

/// How long Diameter peers may take to say good-bye.
const DISCONNECT_GRACE: Duration = Duration::from_secs(1);

/// One listener per worker and address.
type Listeners = Vec<Vec<std::net::TcpListener>>;

fn bind(config: &Config, workers: usize) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let mut listeners: Listeners = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for wanted in config.listen.iter() {
        let mut address = wanted;
        for mine in &mut listeners {
            let what = || StartError::io(format!("listening at {address}"));
            let listener = server::bind(address).map_err(what())?;
            // With port 0 the first worker's port is everybody's.
            let bound = listener.local_addr().map_err(what())?;
            address = bound;
            mine.push(listener);
        }
        addresses.push(address);
    }
    Ok((listeners, addresses))
}
