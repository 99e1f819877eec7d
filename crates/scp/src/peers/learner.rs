//! Learns profiles from NRFs: by subscriptions and their notifications, and by an audit that finds the changes of lost
//! notifications.
//!
//! ```text
//! worker: NFStatusNotify ─► hint ─┐
//! audit, per NF type ─────────────┼─► book ─ pending changes as a batch ─► new snapshot, swapped in
//! profile, looked up for a hint ──┘
//! ```
//!
//! A notification is a hint: its change counts when the NRFs of the subscription confirm it.
//!
//! Requests in flight keep the snapshot they began with. While no NRF answers, the cached profiles stay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use function::Shutdown;
use futures_util::future::join_all;
use nrf_client::{Nrfs, Presence, Turns, stay_registered};
use routing::network::{Network, Producer};
use sbi::client::Client;
use serde_json::Value;
use telemetry::Alarms;
use tokio::sync::{mpsc, watch};

use super::book::{Book, Change, Heard, Renewed};
use super::callbacks::Callbacks;
use super::nrf::{Held, NrfSet};
use super::own_profile;
use crate::alarms::NRF_UNREACHABLE;
use crate::config::Config;
use crate::discovery::Vouched;
use crate::events::Metrics;

/// Learns the network.
pub(crate) struct Learner {
    pub(crate) client: Client,
    pub(crate) published: Arc<ArcSwap<Network>>,
    pub(crate) vouched: Arc<Vouched>,
    pub(crate) metrics: Metrics,
    pub(crate) alarms: Alarms,
    /// Load of this SCP in percent, for its profile.
    pub(crate) load: Arc<AtomicU8>,
    /// Callback paths for NRFs.
    pub(crate) callbacks: Arc<Callbacks>,
}

impl Learner {
    /// Learns until the SCP stops; then deregisters. `changes` receives the notifications that workers accept;
    /// `settings` are those in effect.
    pub(crate) async fn run(
        self,
        sender: mpsc::Sender<Heard>,
        changes: mpsc::Receiver<Heard>,
        settings: watch::Receiver<Arc<Config>>,
        shutdown: Shutdown,
    ) {
        let config = settings.borrow().clone();
        let sets = RefCell::new(self.nrf_sets(&config));
        let book = Book::new(
            statics(&config),
            self.published.clone(),
            self.vouched.clone(),
            self.metrics.clone(),
            sets.borrow().clone(),
            sender.clone(),
            &config.nrf,
        );
        let (renew, renewals) = mpsc::channel(4);
        tokio::select! {
            () = book.keep(changes, renewals) => {}
            () = self.follow_settings(settings, &sets, &sender, &renew) => {}
            () = shutdown.fired() => {}
        }
        let (id, sets) = (&config.nf_instance_id, sets.take());
        // An unreachable NRF detects the missing heart-beats.
        join_all(sets.iter().map(|set| set.deregister(id))).await;
    }

    /// Learns from the NRFs of the settings and follows changes of these settings.
    async fn follow_settings(
        &self,
        mut settings: watch::Receiver<Arc<Config>>,
        sets: &RefCell<Vec<Rc<NrfSet>>>,
        sender: &mpsc::Sender<Heard>,
        renew: &mpsc::Sender<Renewed>,
    ) {
        loop {
            let config = settings.borrow_and_update().clone();
            let asked: Vec<Rc<NrfSet>> = sets
                .borrow()
                .iter()
                .filter(|set| !set.nrfs.is_empty())
                .cloned()
                .collect();
            let following = asked
                .iter()
                .map(|set| follow(config.clone(), set.clone(), sender.clone(), self.alarms.clone()));
            let present = asked
                .iter()
                .map(|set| presence(config.clone(), set.clone(), self.load.clone()));
            let mut known = config.clone();
            let nrfs_changed = async {
                loop {
                    if settings.changed().await.is_err() {
                        // The SCP is stopping.
                        std::future::pending::<()>().await;
                    }
                    let now = settings.borrow_and_update().clone();
                    let profile = |config: &Config| own_profile::profile(config, 0);
                    if now.nrf != known.nrf || profile(&now) != profile(&known) {
                        return now;
                    }
                    if now.producers != known.producers {
                        // The book ends together with this loop, so an error needs no handling.
                        let renewed = Renewed {
                            statics: statics(&now),
                            nrfs: None,
                        };
                        let _ = renew.send(renewed).await;
                    }
                    known = now;
                }
            };
            // Without an NRF this future never ends.
            let learning = async {
                join_all(following).await;
                std::future::pending::<()>().await;
            };
            let wanted = tokio::select! {
                wanted = nrfs_changed => wanted,
                () = learning => return,
                _ = join_all(present), if !asked.is_empty() => return,
            };
            let new = self.nrf_sets(&wanted);
            let old = sets.replace(new.clone());
            let renewed = Renewed {
                statics: statics(&wanted),
                nrfs: Some((new.clone(), wanted.nrf.clone())),
            };
            let _ = renew.send(renewed).await;
            // The old subscriptions end: a removed NRF need not notify any more, the others get new subscriptions.
            let stays = |set: &NrfSet| new.iter().any(|one| one.roots == set.roots);
            let leaving = old.iter().map(|set| async {
                set.unsubscribe().await;
                if !stays(set) {
                    set.deregister(&wanted.nf_instance_id).await;
                }
            });
            join_all(leaving).await;
        }
    }

    /// The sets of NRFs: `nrf.roots`, then those of `nrf.sets`.
    fn nrf_sets(&self, config: &Config) -> Vec<Rc<NrfSet>> {
        let settings = &config.nrf;
        let further = settings.sets.iter().map(|set| (&set.roots, &set.nf_types));
        std::iter::once((&settings.roots, &settings.nf_types))
            .chain(further)
            .enumerate()
            .map(|(number, (roots, nf_types))| {
                let nf_types = if nf_types.is_empty() {
                    &settings.nf_types
                } else {
                    nf_types
                };
                let metrics = self.metrics.clone();
                let nrfs = Nrfs::new(
                    Turns::new(roots),
                    self.client.clone(),
                    settings.timeout.duration(),
                )
                .as_instance(&config.nf_instance_id, "SCP")
                .on_failure(move || metrics.nrf_failures.inc());
                Rc::new(NrfSet {
                    number,
                    nf_types: nf_types.clone(),
                    roots: roots.clone(),
                    registers: settings.register,
                    nrfs,
                    subscriptions: RefCell::default(),
                    callbacks: self.callbacks.clone(),
                })
            })
            .collect()
    }
}

/// The producers of the configuration, by id.
pub(crate) fn statics(config: &Config) -> BTreeMap<Arc<str>, Arc<Producer>> {
    let producers = config
        .producers
        .iter()
        .filter_map(|profile| Producer::from_value(profile).ok());
    producers
        .map(|producer| (producer.id.clone(), Arc::new(producer)))
        .collect()
}

/// Subscribes, audits and renews until the book is dropped.
async fn follow(config: Arc<Config>, nrf: Rc<NrfSet>, sender: mpsc::Sender<Heard>, alarms: Alarms) {
    let settings = &config.nrf;
    let subscriptions = &nrf.subscriptions;
    let reachable = Reachable {
        alarms,
        set: format!("set {}", nrf.number),
    };
    loop {
        let mut complete = true;
        for nf_type in &nrf.nf_types {
            let now = Instant::now();
            let renew_at = subscriptions.borrow().get(nf_type).map(Held::renew_at);
            if renew_at.is_none_or(|renew| now >= renew) {
                complete &= nrf.subscribe(&config, nf_type).await;
            }
            let began = Instant::now();
            match nrf.all_of(nf_type, settings.audit_mode, &config).await {
                Some(producers) => {
                    let change = Change::Audited {
                        nf_type: nf_type.clone(),
                        began,
                        producers,
                    };
                    let set = nrf.number;
                    if sender.send(Heard { set, change }).await.is_err() {
                        return;
                    }
                }
                None => complete = false,
            }
        }
        let wrong = (!complete).then(|| nrf.roots.join(", "));
        reachable.alarms.set(&NRF_UNREACHABLE, &reachable.set, wrong);
        let pause = match complete {
            true => {
                let renewal = subscriptions.borrow().values().map(Held::renew_at).min();
                let until_renewal = renewal.map(|renew| renew.saturating_duration_since(Instant::now()));
                let audit = settings.audit_interval.duration();
                until_renewal.map_or(audit, |renewal| renewal.min(audit))
            }
            false => settings.retry_interval.duration(),
        };
        tokio::time::sleep(pause.max(Duration::from_millis(100))).await;
    }
}

/// The alarm of a set of NRFs, which ends when the SCP no longer follows the set.
struct Reachable {
    alarms: Alarms,
    set: String,
}

impl Drop for Reachable {
    fn drop(&mut self) {
        self.alarms.clear(&NRF_UNREACHABLE, &self.set);
    }
}

/// Registers this SCP and sends heart-beats.
async fn presence(config: Arc<Config>, nrf: Rc<NrfSet>, load: Arc<AtomicU8>) {
    if !config.nrf.register {
        return std::future::pending().await;
    }
    stay_registered(&nrf.nrfs, &Registration { config, load }).await;
}

/// Registration of this SCP at NRFs.
struct Registration {
    config: Arc<Config>,
    load: Arc<AtomicU8>,
}

impl Presence for Registration {
    fn id(&self) -> &str {
        &self.config.nf_instance_id
    }

    fn profile(&self) -> Value {
        own_profile::profile(&self.config, self.load())
    }

    fn status(&self) -> &'static str {
        "REGISTERED"
    }

    fn load(&self) -> u8 {
        self.load.load(Ordering::Relaxed)
    }

    fn heart_beat(&self) -> Duration {
        self.config.nrf.heart_beat.duration()
    }

    fn retry(&self) -> Duration {
        self.config.nrf.retry_interval.duration()
    }
}
