//! Wires the function together: workers, the control thread, and what goes between them.

mod control;
mod gate;
mod running;
mod state;
mod worker;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::worker::{Pinning, Shutdown, Threads, WorkerContext};
use arc_swap::ArcSwap;
use diameter::proto::known::disconnect_cause;
use sbi::dns::Dns;
use sbi::server::Interface;
use sbi::tls::Tls;
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
    let tls = Tls::open(config.tls.as_ref(), config.client_tls.as_ref()).map_err(StartError::Config)?;
    let rx_tls = config.rx.open_tls().map_err(StartError::Config)?.map(Arc::new);
    let names = names(&config)?;
    let count = ::worker::count(config.workers);
    let interface = Interface::bind(config.listen.iter(), count, tls.server())?;
    let (seats, diameter) = rx::seats(&config.rx, rx_tls.as_deref(), count)?;
    let shutdown = Shutdown::new();
    let counters: Vec<Arc<Counters>> = (0..=count).map(|_| Arc::default()).collect();
    let switches = Arc::new(Switches::new(count, config.overload.enabled));

    // The URIs the BSF hands out name the port it really has.
    let mut config = config;
    if config.api_root.is_empty() {
        config.api_root = interface.root();
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
        tls: tls.clone(),
        rx_tls: rx_tls.clone(),
        names,
        address: interface.addresses().first().copied(),
        switches: switches.clone(),
        shutdown: shutdown.clone(),
    }
    .start()?;

    let seats = Arc::new(parking_lot::Mutex::new(seats));
    let interface = Arc::new(interface);
    let parts = Parts {
        live: live.clone(),
        repository: repository.clone(),
        switches: switches.clone(),
        notifications,
        told,
        workers: count,
    };
    let (offered, worker_counters) = (interface.clone(), counters.clone());
    let run = move |context: WorkerContext| {
        let seat = seats.lock().get_mut(context.index).and_then(Option::take);
        let (parts, counters) = (parts.clone(), worker_counters[context.index].clone());
        let interface = offered.clone();
        async move {
            let service = Rc::new(Front::new(parts, context.index, counters));
            tokio::task::spawn_local(service.clone().watch_load());
            let agent = match seat {
                Some(seat) => Some(rx::run(seat, service.clone())?),
                None => None,
            };
            let limits = Arc::new(service.current().config().server.clone());
            let ended = interface.serve(&context, service, limits).await;
            if let Some(agent) = agent {
                agent.stop(DISCONNECT_GRACE, disconnect_cause::REBOOTING).await;
            }
            ended
        }
    };
    let pinning = Pinning::to(&config.cores);
    let workers = ::worker::spawn(count, "bsf", &pinning, &shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    Ok(Running {
        interface,
        diameter,
        repository,
        switches,
        counters,
        live,
        tls,
        rx_tls,
        threads: Threads::new(shutdown, workers).and(control),
    })
}

/// What resolves names, if not the system.
fn names(config: &Config) -> Result<Option<Dns>, StartError> {
    let wanted = !config.dns.servers.is_empty() || config.notifications.dns_srv;
    let names = wanted.then(|| Dns::start(&config.dns)).transpose();
    names.map_err(StartError::io("starting to resolve names"))
}

/// How long Diameter peers may take to say good-bye.
const DISCONNECT_GRACE: Duration = Duration::from_secs(1);
