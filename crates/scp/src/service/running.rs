//! An SCP that runs: what can be asked of it and done to it from outside.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sbi::server::Interface;
use sbi::tls::Tls;
use serde_json::Value;
use telemetry::Registry;
use tokio::sync::watch;
use worker::Threads;

use super::explain;
use crate::config::Config;
use crate::feed;
use crate::live::Live;
use crate::network::Network;

/// A running SCP. Dropping it stops it as [`Running::stop`] does, without waiting.
#[derive(Debug)]
pub struct Running {
    pub(super) interface: Arc<Interface>,
    pub(super) network: Arc<ArcSwap<Network>>,
    pub(super) live: Arc<ArcSwap<Live>>,
    /// The settings in effect, for whoever learns the network.
    pub(super) settings: watch::Sender<Arc<Config>>,
    pub(super) tls: Arc<Tls>,
    pub(super) threads: Threads,
    pub(super) registry: Registry,
    /// Feeds that others have replaced, until they have sent what they had.
    pub(super) retiring: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.interface.addresses()
    }

    /// The network as of now.
    #[must_use]
    pub fn network(&self) -> Arc<Network> {
        self.network.load_full()
    }

    /// Counts of the servers, one per worker.
    pub fn servers(&self) -> impl Iterator<Item = sbi::server::StatsSnapshot> {
        self.interface.stats()
    }

    /// Every service instance it could send to, in the order of service, priority and distance.
    #[must_use]
    pub fn routes(&self) -> Value {
        explain::routes(&self.network.load(), &self.live.load())
    }

    /// Where a request to this path with these headers would go, and why: `apiroot`, `nfinst`, `nfset` or
    /// discovery parameters as pairs.
    #[must_use]
    pub fn explain(&self, method: &str, path: &str, hints: &[(String, String)]) -> Value {
        explain::explain(&self.network.load(), &self.live.load(), method, path, hints)
    }

    /// How often each mediation rule has applied: group, rule, count.
    #[must_use]
    pub fn mediation(&self) -> Vec<(String, String, u64)> {
        let live = self.live.load();
        let applied = live.engine.applied();
        applied
            .map(|(group, rule, count)| (group.to_owned(), rule.to_owned(), count))
            .collect()
    }

    /// Takes the settings of [`KEYS`](crate::KEYS) from another configuration; the rest stays. Requests under
    /// way end as they began.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reconfigure(&self, wanted: &Config) -> Result<(), String> {
        // One change at a time: each builds on what the last has made.
        let mut retiring = self.retiring.lock();
        let now = self.live.load_full();
        let mut config = (*now.config).clone();
        config.discovery = wanted.discovery.clone();
        config.follow_redirects = wanted.follow_redirects;
        config.allowed_networks.clone_from(&wanted.allowed_networks);
        config.forward_to_unknown = wanted.forward_to_unknown;
        config.late_requests = wanted.late_requests.clone();
        config.max_forward_hops = wanted.max_forward_hops;
        config.mediation = wanted.mediation.clone();
        config.next_hops = wanted.next_hops.clone();
        config.nf_status = wanted.nf_status.clone();
        config.nrf = wanted.nrf.clone();
        config.producers = wanted.producers.clone();
        config.places = wanted.places.clone();
        config.policies = wanted.policies.clone();
        config.protection = wanted.protection.clone();
        config.security = wanted.security.clone();
        config.tls.clone_from(&wanted.tls);
        config.client_tls.clone_from(&wanted.client_tls);
        config.feed = wanted.feed.clone();
        let config = Arc::new(config);
        let mut live = Live::new(config.clone(), now.feed.clone())?;
        let other_feed = now.config.feed != config.feed;
        if other_feed {
            let feed = feed::start(&config, config.workers, &self.registry);
            live.feed = feed.map_err(|error| error.to_string())?.map(Arc::new);
        }
        if let Err(fault) = self.tls.reload(wanted.tls.as_ref(), wanted.client_tls.as_ref()) {
            if let Some(feed) = live.feed.filter(|_| other_feed) {
                feed.stop();
            }
            return Err(fault);
        }
        self.live.store(Arc::new(live));
        self.settings.send_replace(config);
        if let Some(old) = now.feed.clone().filter(|_| other_feed) {
            // The snapshot has the feed, too, but gives it no copies.
            drop(now);
            retiring.retain(|one| !one.is_finished());
            retiring.push(std::thread::spawn(move || old.retire()));
        }
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
        let ended = self.threads.stop();
        // After the workers: what they have given is still sent.
        if let Some(feed) = &self.live.load().feed {
            feed.stop();
        }
        for one in self.retiring.into_inner() {
            if one.join().is_err() {
                tracing::error!("the end of a feed panicked; see the log");
            }
        }
        ended
    }
}
