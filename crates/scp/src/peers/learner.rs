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

use std::cell::{Cell, RefCell};
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
use telemetry::admin::REGISTRATION;
use telemetry::health::Component;
use telemetry::{Alarms, Dependency, Health};
use tokio::sync::{mpsc, watch};

use super::book::{Book, Change, Heard, Renewed};
use super::callbacks::Callbacks;
use super::doubts::Doubts;
use super::nrf::{Held, NrfSet};
use super::own_profile;
use crate::alarms::NRF_UNREACHABLE;
use crate::config::{Config, Discovery};
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
    /// Discoveries and heart-beats that no NRF answered.
    pub(crate) doubts: Arc<Doubts>,
    pub(crate) health: Health,
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
                .map(|set| self.follow(config.clone(), set.clone(), sender.clone()));
            let present = asked.iter().map(|set| self.presence(config.clone(), set.clone()));
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

    /// Subscribes, audits and renews until the book is dropped; checks the NRFs at once when none has answered a worker.
    async fn follow(&self, config: Arc<Config>, nrf: Rc<NrfSet>, sender: mpsc::Sender<Heard>) {
        let settings = &config.nrf;
        let reachable = self.reachable(&config, &nrf);
        let mut doubts = self.doubts.follow();
        loop {
            let Some(complete) = round(&config, &nrf, &sender, &reachable).await else {
                return;
            };
            reachable.set(complete);
            let pause = match complete {
                true => {
                    let renewal = nrf.subscriptions.borrow().values().map(Held::renew_at).min();
                    let until_renewal = renewal.map(|renew| renew.saturating_duration_since(Instant::now()));
                    let audit = settings.audit_interval.duration();
                    until_renewal.map_or(audit, |renewal| renewal.min(audit))
                }
                false => settings.retry_interval.duration(),
            };
            let retry = settings.retry_interval.duration();
            let next = tokio::time::Instant::now() + pause.max(Duration::from_millis(100));
            // Doubts that the round itself has settled.
            doubts.mark_unchanged();
            // Without subscriptions and heart-beats only discoveries need the NRF, and they raise doubts.
            let checks = !nrf.nf_types.is_empty() || nrf.registers;
            loop {
                if !complete {
                    break;
                }
                let wakes = tokio::select! {
                    () = tokio::time::sleep_until(next) => Wakes::Round,
                    () = tokio::time::sleep(CHECK), if checks => Wakes::Check,
                    // The sender lives as long as this.
                    _ = doubts.changed() => Wakes::Doubt,
                };
                if wakes == Wakes::Round {
                    break;
                }
                if !nrf.answers().await {
                    reachable.set(false);
                    break;
                }
                reachable.answered();
                if wakes == Wakes::Doubt {
                    // An NRF answers this, so it failed for a moment, or for some queries only.
                    tokio::time::sleep(retry).await;
                    doubts.mark_unchanged();
                }
            }
            if !complete || !reachable.get() {
                tokio::time::sleep(retry.max(Duration::from_millis(100))).await;
                // A round with each type in turn may take long: it waits until an NRF answers at all.
                while !nrf.answers().await {
                    tokio::time::sleep(retry.max(Duration::from_millis(100))).await;
                }
            }
        }
    }

    fn reachable(&self, config: &Config, nrf: &Rc<NrfSet>) -> Reachable {
        let set = set_name(nrf.number);
        let component = self.health.component(&format!("NRF {set}"));
        component.ready();
        Reachable {
            alarms: self.alarms.clone(),
            component,
            set,
            roots: nrf.roots.join(", "),
            network: self.published.clone(),
            relays_anything: config.forward_to_unknown,
            discovery: config.discovery.clone(),
            answers: Cell::new(true),
            nrf: nrf.clone(),
            standing: self.health.dependency(&format!("NRF {}", set_name(nrf.number))),
            health: self.health.clone(),
        }
    }

    /// Registers this SCP and sends heart-beats.
    async fn presence(&self, config: Arc<Config>, nrf: Rc<NrfSet>) {
        if !config.nrf.register {
            return std::future::pending().await;
        }
        let registration = Registration {
            config,
            load: self.load.clone(),
            doubts: self.doubts.clone(),
            registered: Registered::new(&self.health, nrf.number),
        };
        stay_registered(&nrf.nrfs, &registration).await;
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

/// Interval at which the SCP checks whether an NRF of a set answers, where no discovery shows it.
const CHECK: Duration = Duration::from_secs(5);

/// What ends the pause between two rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    Round,
    Check,
    Doubt,
}

/// One pass over all types of a set: subscribes where it is due, and audits. Returns whether all succeeded; `None` when
/// the book has ended.
async fn round(
    config: &Config,
    nrf: &NrfSet,
    sender: &mpsc::Sender<Heard>,
    reachable: &Reachable,
) -> Option<bool> {
    let mut complete = true;
    for nf_type in &nrf.nf_types {
        let now = Instant::now();
        let renew_at = nrf.subscriptions.borrow().get(nf_type).map(Held::renew_at);
        let mut succeeded = true;
        if renew_at.is_none_or(|renew| now >= renew) {
            succeeded = nrf.subscribe(config, nf_type).await;
        }
        let began = Instant::now();
        match nrf.all_of(nf_type, config.nrf.audit_mode, config).await {
            Some(producers) => {
                let change = Change::Audited {
                    nf_type: nf_type.clone(),
                    began,
                    producers,
                };
                let set = nrf.number;
                sender.send(Heard { set, change }).await.ok()?;
            }
            None => succeeded = false,
        }
        if !succeeded {
            complete = false;
            reachable.set(false);
            if !nrf.answers().await {
                break;
            }
        }
    }
    Some(complete)
}

/// Name of a set of NRFs.
fn set_name(number: usize) -> String {
    format!("set {number}")
}

/// State of a set of NRFs as operators see it; ends when the SCP no longer follows the set.
struct Reachable {
    alarms: Alarms,
    component: Component,
    set: String,
    roots: String,
    network: Arc<ArcSwap<Network>>,
    /// Whether producers that are not known get requests as well.
    relays_anything: bool,
    /// What becomes of delegated discovery meanwhile.
    discovery: Discovery,
    answers: Cell<bool>,
    nrf: Rc<NrfSet>,
    /// When an NRF of it answered last, and the last error.
    standing: Dependency,
    health: Health,
}

impl Reachable {
    fn get(&self) -> bool {
        self.answers.get()
    }

    /// An NRF of the set has answered.
    fn answered(&self) {
        self.standing.succeeded(&self.nrf.nrfs.answered_by());
    }

    /// Sets alarm and readiness: without NRFs the SCP serves with what it knows, if it knows anything.
    fn set(&self, answers: bool) {
        self.answers.set(answers);
        let reason = self.nrf.nrfs.last_failure();
        if answers {
            self.answered();
        } else {
            self.standing.failed(&reason);
        }
        let wrong = (!answers).then(|| format!("{}; last error: {reason}", self.roots));
        self.alarms.set(&NRF_UNREACHABLE, &self.set, wrong);
        let known = self.network.load().len();
        if answers || known > 0 || self.relays_anything {
            self.component.ready();
        } else {
            self.component.not_ready(format!(
                "no NRF answers ({}), and no producer is known",
                self.roots
            ));
        }
        let remark = || {
            let served = self.discovery.without_nrf(known);
            format!("no NRF answers ({}); {served}", self.roots)
        };
        self.component.remark((!answers && known > 0).then(remark));
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        self.alarms.clear(&NRF_UNREACHABLE, &self.set);
        self.component.ready();
        self.component.remark(None);
        self.health.without(&format!("NRF {}", self.set));
    }
}

/// Whether this SCP is registered at a set of NRFs, as `/status` shows it; ends when the SCP leaves the set.
struct Registered {
    health: Health,
    name: String,
}

impl Registered {
    fn new(health: &Health, set: usize) -> Self {
        let name = match set {
            0 => REGISTRATION.to_owned(),
            further => format!("{REGISTRATION} set {further}"),
        };
        let health = health.clone();
        Self { health, name }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.health.without(&self.name);
    }
}

/// Registration of this SCP at NRFs.
struct Registration {
    config: Arc<Config>,
    load: Arc<AtomicU8>,
    doubts: Arc<Doubts>,
    registered: Registered,
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

    fn report(&self, outcome: Result<&str, &str>) {
        let standing = self.registered.health.dependency(&self.registered.name);
        match outcome {
            Ok(nrf) => standing.succeeded(&format!("registered at {nrf}")),
            Err(reason) => {
                standing.failed(&format!("no NRF has accepted the registration: {reason}"));
                self.doubts.raise();
            }
        }
    }
}
