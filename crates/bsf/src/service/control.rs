//! The control thread: opens the store, delivers notifications, registers at the NRF, audits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ::worker::Shutdown;
use arc_swap::ArcSwap;
use diameter::tls::FollowedTls;
use nrf_client::{Presence as _, deregister, stay_registered};
use sbi::client::Client;
use sbi::dns::Dns;
use sbi::tls::Tls;
use tokio::sync::mpsc;

use super::Switches;
use crate::audit::Auditor;
use crate::error::StartError;
use crate::events::Counters;
use crate::live::Live;
use crate::notify::{self, Notification};
use crate::peers::nrf::{self, Registration};
use crate::peers::{key_sets, pcfs};
use crate::repository::Repository;
use crate::rx;
use crate::score;

/// How often changes of other instances on the same database are looked for.
const REFRESH: Duration = Duration::from_secs(1);
/// What the NRF has told and the audit has not heard; beyond, the next walk finds out.
pub(super) const TOLD: usize = 1_024;

/// What the thread is made of.
pub(super) struct Control {
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) incoming: mpsc::Receiver<Notification>,
    pub(super) notifications: mpsc::Sender<Notification>,
    pub(super) hears: mpsc::Receiver<pcfs::Told>,
    pub(super) counters: Arc<Counters>,
    pub(super) tls: Arc<Tls>,
    /// That of Diameter.
    pub(super) rx_tls: Option<Arc<FollowedTls>>,
    /// What resolves names; none: the system.
    pub(super) names: Option<Dns>,
    /// Where the first worker listens.
    pub(super) address: Option<SocketAddr>,
    pub(super) switches: Arc<Switches>,
    pub(super) shutdown: Shutdown,
}

impl Control {
    /// Starts the thread; answers when the store is open.
    pub(super) fn start(self) -> Result<(Repository, JoinHandle<()>), StartError> {
        // Of the standard library: whoever starts a BSF may do so from inside a runtime.
        let (ready, opened) = std::sync::mpsc::sync_channel(1);
        let thread = ::worker::control("bsf-control", move || async move {
            let config = self.live.load().config.clone();
            match Repository::open(&config.store, config.max_candidates).await {
                Ok(repository) => {
                    if ready.send(Ok(repository.clone())).is_ok() {
                        self.run(repository).await;
                    }
                }
                Err(error) => drop(ready.send(Err(StartError::from(error)))),
            }
        })
        .map_err(StartError::io("starting the control thread"))?;
        let gone = |_| StartError::Config("the control thread ended before it was ready".to_owned());
        Ok((opened.recv().map_err(gone)??, thread))
    }

    async fn run(self, repository: Repository) {
        let config = self.live.load().config.clone();
        let limits = Arc::new(config.client.clone());
        let client = Client::with_names(limits, self.tls.client(), self.names.clone());
        tokio::task::spawn_local(self.tls.follow());
        let interval = config.rx.tls.as_ref().map(|files| files.check_interval);
        if let Some((tls, interval)) = self.rx_tls.zip(interval).filter(|(_, each)| !each.is_zero()) {
            tokio::task::spawn_local(tls.follow(interval.duration()));
        }
        if config.store.engine == store::EngineKind::Mariadb {
            tokio::task::spawn_local(refresh(repository.clone()));
        }
        if config.rx.enabled {
            let (repository, counters) = (repository.clone(), self.counters.clone());
            tokio::task::spawn_local(rx::tidy(repository, self.live.clone(), counters));
        }
        tokio::task::spawn_local(key_sets::follow(self.live.clone(), client.clone()));
        let (live, switches) = (self.live.clone(), self.switches.clone());
        tokio::task::spawn_local(score::keep(live, switches, repository.clone()));
        let nrfs = nrf::nrfs(&config, client.clone());
        let auditor = Auditor::new(
            self.live.clone(),
            repository,
            nrfs.clone(),
            self.notifications,
            self.counters.clone(),
        );
        tokio::task::spawn_local(auditor.run(self.hears));
        let registered = self
            .address
            .filter(|_| !nrfs.is_empty())
            .map(|address| Registration {
                config: config.clone(),
                address,
                switches: self.switches,
            });
        let asked = nrfs.clone();
        let notifying = notify::deliver(
            self.incoming,
            notify::Ways {
                client,
                nrfs,
                names: self.names,
            },
            self.live,
            self.counters,
        );
        let notifying = async {
            tokio::select! {
                () = notifying => {}
                () = self.shutdown.fired() => {}
            }
        };
        let registering = async {
            let Some(registered) = registered else {
                return;
            };
            tokio::select! {
                () = stay_registered(&asked, &registered) => {}
                () = self.shutdown.fired() => {}
            }
            deregister(&asked, registered.id()).await;
        };
        tokio::join!(notifying, registering);
    }
}

async fn refresh(repository: Repository) {
    loop {
        tokio::time::sleep(REFRESH).await;
        if let Err(error) = repository.refresh().await {
            tracing::warn!(%error, "changes of other instances could not be read");
        }
    }
}
