//! An NRF that runs: what can be asked of it and done to it from outside.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sbi::server::Interface;
use sbi::tls::Tls;
use store::Store;
use worker::Threads;

use crate::config::Config;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::registry::Snapshot;

/// A running NRF. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    pub(super) interface: Arc<Interface>,
    pub(super) published: Arc<ArcSwap<Snapshot>>,
    pub(super) counters: Vec<Arc<Counters>>,
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) tls: Arc<Tls>,
    pub(super) store: Store,
    pub(super) threads: Threads,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.interface.addresses()
    }

    /// The registry as of now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
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

    /// Where it keeps the registry.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Takes the settings of [`KEYS`](crate::KEYS) from another configuration; the rest stays. Requests in
    /// progress end as they began.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reconfigure(&self, wanted: &Config) -> Result<(), String> {
        let now = self.live.load();
        let mut config = (*now.config).clone();
        config.discovery = wanted.discovery.clone();
        config.forwarding = wanted.forwarding.clone();
        config.heart_beat = crate::config::HeartBeat {
            audit_interval: config.heart_beat.audit_interval,
            ..wanted.heart_beat.clone()
        };
        config.max_profile_size = wanted.max_profile_size;
        config.max_profiles = wanted.max_profiles;
        config.identity = wanted.identity.clone();
        config.max_waiting_bytes = wanted.max_waiting_bytes;
        config.outgoing = wanted.outgoing.clone();
        config.patches = wanted.patches.clone();
        config.patterns = wanted.patterns.clone();
        config.overload = wanted.overload.clone();
        config.screening = wanted.screening.clone();
        config.slf = wanted.slf.clone();
        let subscriptions = &mut config.subscriptions;
        subscriptions.load_threshold = wanted.subscriptions.load_threshold;
        subscriptions.max = wanted.subscriptions.max;
        subscriptions.max_per_source = wanted.subscriptions.max_per_source;
        subscriptions.max_per_subscriber = wanted.subscriptions.max_per_subscriber;
        subscriptions.max_size = wanted.subscriptions.max_size;
        subscriptions.max_validity = wanted.subscriptions.max_validity;
        subscriptions.unregistered_validity = wanted.subscriptions.unregistered_validity;
        subscriptions.notify_changes = wanted.subscriptions.notify_changes;
        config.tokens = wanted.tokens.clone();
        config.tls.clone_from(&wanted.tls);
        config.client_tls.clone_from(&wanted.client_tls);
        let live = Live::new(Arc::new(config))?;
        self.tls.reload(wanted.tls.as_ref(), wanted.client_tls.as_ref())?;
        self.live.store(Arc::new(live));
        Ok(())
    }

    /// Reads certificates, keys and authorities again; handshakes from now on use them. Answers whether something
    /// has changed.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reread(&self) -> Result<bool, String> {
        self.tls.reread()
    }

    /// Finishes the requests in progress and stops. Blocks.
    ///
    /// # Errors
    /// The first error a worker ended with.
    pub fn stop(self) -> std::io::Result<()> {
        // The last sender of writes goes with the workers, which ends the control thread.
        self.threads.stop()
    }
}
