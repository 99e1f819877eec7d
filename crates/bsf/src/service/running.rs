//! A BSF that runs: what can be asked of it and done to it from outside.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use diameter::tls::{ChangedTls, FollowedTls};
use sbi::server::Interface;
use sbi::tls::Tls;
use worker::Threads;

use super::state::{State, Switches};
use crate::config::Config;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::repository::Repository;
use crate::score::Score;

/// A running BSF. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    pub(super) interface: Arc<Interface>,
    pub(super) diameter: Vec<SocketAddr>,
    pub(super) repository: Repository,
    pub(super) switches: Arc<Switches>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) tls: Arc<Tls>,
    pub(super) rx_tls: Option<Arc<FollowedTls>>,
    pub(super) threads: Threads,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.interface.addresses()
    }

    /// Where it listens for Diameter.
    #[must_use]
    pub fn diameter_addresses(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// Its bindings.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// How far it is open.
    #[must_use]
    pub fn state(&self) -> State {
        self.switches.state()
    }

    /// Opens it or shuts it down in steps.
    pub fn set_state(&self, state: State) {
        tracing::info!(?state, "operational state");
        self.switches.set_state(state);
    }

    /// Whether requests are discarded at congestion levels.
    #[must_use]
    pub fn congestion_control(&self) -> bool {
        self.switches.congestion()
    }

    /// Turns discards at congestion levels on or off.
    pub fn set_congestion_control(&self, on: bool) {
        self.switches.set_congestion(on);
    }

    /// Load of the busiest worker, in percent of a core.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.switches.load()
    }

    /// How well it does, as of the last interval.
    #[must_use]
    pub fn score(&self) -> Score {
        self.switches.score()
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counters.iter().map(|counters| counters.get(event)).sum()
    }

    /// Counts of the servers, one per worker.
    pub fn servers(&self) -> impl Iterator<Item = sbi::server::StatsSnapshot> {
        self.interface.stats()
    }

    /// Takes the settings of [`KEYS`](crate::KEYS) from another configuration; the rest stays. Requests in
    /// progress end as they began. Files that settings name are read again.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reconfigure(&self, wanted: &Config) -> Result<(), String> {
        let now = self.live.load();
        let next = now.with(wanted)?;
        let rx = self.look_at_rx()?;
        self.tls.reload(wanted.tls.as_ref(), wanted.client_tls.as_ref())?;
        self.take_rx(rx);
        if next.config.overload.enabled != now.config.overload.enabled {
            self.switches.set_congestion(next.config.overload.enabled);
        }
        self.live.store(Arc::new(next));
        Ok(())
    }

    /// Reads certificates, keys and authorities again; handshakes from now on use them. Answers whether something
    /// has changed.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reread(&self) -> Result<bool, String> {
        let rx = self.look_at_rx()?;
        let changed = self.tls.reread()?;
        Ok(self.take_rx(rx) || changed)
    }

    /// What the files of Diameter have become.
    fn look_at_rx(&self) -> Result<Option<ChangedTls>, String> {
        let looked = self.rx_tls.as_ref().map(|tls| tls.look());
        let looked = looked.transpose().map_err(|error| format!("rx.tls: {error}"))?;
        Ok(looked.flatten())
    }

    /// Uses that from now on. Answers whether there was anything.
    fn take_rx(&self, changed: Option<ChangedTls>) -> bool {
        let changed = self.rx_tls.as_ref().zip(changed);
        changed.map(|(tls, changed)| tls.take(changed)).is_some()
    }

    /// Finishes the requests in progress and stops. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(self) -> std::io::Result<()> {
        let ended = self.threads.stop();
        let store = self.repository.store().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        // In a thread of its own: whoever stops a BSF may do so from inside a runtime.
        let closing = std::thread::spawn(move || runtime.map(|runtime| runtime.block_on(store.close())));
        match closing.join() {
            Ok(closed) => closed.and(ended),
            Err(_) => Err(std::io::Error::other("closing the store panicked; see the log")),
        }
    }
}
