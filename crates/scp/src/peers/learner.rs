//! Learning the network from NRFs: subscriptions and their notifications, and an audit that finds what a lost
//! notification would have told.
//!
//! ```text
//! worker: NFStatusNotify ─► Change ─┐
//! audit, per NF type ───────────────┼─► book ─ all that waits at once ─► new snapshot, swapped in
//! profile fetched for a change ─────┘
//! ```
//!
//! Requests under way go on with the snapshot they began with. While no NRF answers, what is known stays.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use worker::Shutdown;

use super::own_profile;
use super::sets::Turns;
use crate::config::{AuditMode, Config};
use crate::events::Metrics;
use crate::network::{Network, Producer};

/// Where NRFs send their notifications; those of further sets behind it, by the number of the set.
const CALLBACK_PATH: &str = "/signalbox-scp/v1/nf-status-notify";

fn callback_path(set: usize) -> String {
    match set {
        0 => CALLBACK_PATH.to_owned(),
        set => format!("{CALLBACK_PATH}/{set}"),
    }
}

/// The set whose NRFs notify at this path, if it is one for notifications.
pub(crate) fn callback_set(path: &str) -> Option<usize> {
    match path.strip_prefix(CALLBACK_PATH)? {
        "" => Some(0),
        rest => rest.strip_prefix('/')?.parse().ok().filter(|set| *set > 0),
    }
}

/// What an NRF of a set tells.
#[derive(Debug)]
pub(crate) struct Heard {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    pub(crate) set: usize,
    pub(crate) change: Change,
}

/// Something that has changed in the network.
#[derive(Debug)]
pub(crate) enum Change {
    /// A profile, new or changed.
    Put(Arc<Producer>),
    /// An NF has deregistered.
    Gone(Arc<str>),
    /// A profile has changed, and only its URI is told.
    Fetch(String),
    /// A profile that was fetched, if an NRF answered.
    Fetched(String, Option<Arc<Producer>>),
    /// Everything of a type, as an audit that began then has found it.
    Audited {
        nf_type: String,
        began: Instant,
        producers: Vec<Arc<Producer>>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationData<'a> {
    event: String,
    nf_instance_uri: String,
    #[serde(borrow)]
    nf_profile: Option<&'a RawValue>,
}

/// What a notification tells (`NotificationData`, TS 29.510 §6.1.6.2.17).
///
/// # Errors
/// What is wrong with it.
pub(crate) fn change_of(body: &[u8]) -> Result<Change, String> {
    let data: NotificationData<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    match (data.event.as_str(), data.nf_profile) {
        ("NF_DEREGISTERED", _) => {
            let id = data.nf_instance_uri.rsplit('/').next().unwrap_or_default();
            Ok(Change::Gone(id.to_ascii_lowercase().into()))
        }
        (_, Some(profile)) => {
            let producer = Producer::learned(profile.get().as_bytes()).map_err(|error| error.to_string())?;
            Ok(Change::Put(Arc::new(producer)))
        }
        // Only what has changed is told, or an event of a later release: the profile says it all.
        (_, None) => Ok(Change::Fetch(data.nf_instance_uri)),
    }
}

/// Learns the network.
pub(crate) struct Learner {
    pub(crate) client: Client,
    pub(crate) published: Arc<ArcSwap<Network>>,
    pub(crate) metrics: Metrics,
    /// Load of this SCP in percent, for its profile.
    pub(crate) load: Arc<AtomicU8>,
}

impl Learner {
    /// Learns until the SCP stops; then deregisters. `changes` is what workers are told; `settings` are those in
    /// effect, of which `nrf` and `producers` are followed.
    pub(crate) async fn run(
        self,
        sender: mpsc::Sender<Heard>,
        changes: mpsc::Receiver<Heard>,
        settings: watch::Receiver<Arc<Config>>,
        shutdown: Shutdown,
    ) {
        let config = settings.borrow().clone();
        let sets = RefCell::new(self.nrf_sets(&config));
        let book = Book {
            statics: statics(&config),
            touched: AHashMap::new(),
            origins: AHashMap::new(),
            published: self.published.clone(),
            metrics: self.metrics.clone(),
            sets: sets.borrow().clone(),
            sender: sender.clone(),
            fetching: AHashMap::new(),
        };
        let (renew, renewals) = mpsc::channel(4);
        tokio::select! {
            () = book.keep(changes, renewals) => {}
            () = self.follow_settings(settings, &sets, &sender, &renew) => {}
            () = shutdown.fired() => {}
        }
        let (id, sets) = (&config.nf_instance_id, sets.take());
        // The NRFs may be gone as well; then their auditors find out.
        join_all(sets.iter().map(|set| set.deregister(id))).await;
    }

    /// Learns from the NRFs that the settings name, and from others when they name others.
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
                .filter(|set| set.nrfs.len() > 0)
                .cloned()
                .collect();
            let following = asked
                .iter()
                .map(|set| follow(config.clone(), set.clone(), sender.clone()));
            let present = asked
                .iter()
                .map(|set| presence(config.clone(), set.clone(), self.load.clone()));
            let mut known = config.clone();
            let nrfs_changed = async {
                loop {
                    if settings.changed().await.is_err() {
                        // The SCP is going.
                        std::future::pending::<()>().await;
                    }
                    let now = settings.borrow_and_update().clone();
                    if now.nrf != known.nrf {
                        return now;
                    }
                    if now.producers != known.producers {
                        // Whoever keeps the book ends with this loop.
                        let renewed = Renewed {
                            statics: statics(&now),
                            sets: None,
                        };
                        let _ = renew.send(renewed).await;
                    }
                    known = now;
                }
            };
            // Without an NRF there is nothing to learn, and nothing that ends.
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
                sets: Some(new.clone()),
            };
            let _ = renew.send(renewed).await;
            // Who is not asked any more need not tell any more; the others are subscribed to anew.
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
                Rc::new(NrfSet {
                    number,
                    nf_types: nf_types.clone(),
                    roots: roots.clone(),
                    registers: settings.register,
                    nrfs: Turns::new(roots),
                    subscriptions: RefCell::default(),
                    client: self.client.clone(),
                    timeout: settings.timeout.duration(),
                    metrics: self.metrics.clone(),
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

fn instance_path(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

/// The one who changes the snapshot.
struct Book {
    statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// When a notification last told of an NF: an audit that began before knows less.
    touched: AHashMap<Arc<str>, Instant>,
    /// The set that an NF was learned from: only that one's silence about it says that it is gone.
    origins: AHashMap<Arc<str>, usize>,
    published: Arc<ArcSwap<Network>>,
    metrics: Metrics,
    sets: Vec<Rc<NrfSet>>,
    sender: mpsc::Sender<Heard>,
    /// Profiles being fetched.
    fetching: AHashMap<String, Fetching>,
}

/// Settings that have changed.
struct Renewed {
    statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// Absent: as before.
    sets: Option<Vec<Rc<NrfSet>>>,
}

/// A profile being fetched.
struct Fetching {
    began: Instant,
    /// It has changed again meanwhile.
    again: bool,
}

/// Changes that are applied together at most. A storm costs a snapshot for as many, not one each.
const BATCH: usize = 1_024;
/// How long it is remembered that a notification told of an NF: longer than an audit takes.
const REMEMBERED: Duration = Duration::from_secs(120);

impl Book {
    async fn keep(mut self, mut changes: mpsc::Receiver<Heard>, mut renewals: mpsc::Receiver<Renewed>) {
        let mut waiting = Vec::with_capacity(64);
        loop {
            tokio::select! {
                count = changes.recv_many(&mut waiting, BATCH) => if count == 0 { return },
                Some(renewed) = renewals.recv() => {
                    self.renew(renewed);
                    continue;
                }
            }
            let mut next: BTreeMap<Arc<str>, Option<Arc<Producer>>> = BTreeMap::new();
            for Heard { set, change } in waiting.drain(..) {
                self.note(set, change, &mut next);
            }
            if !next.is_empty() {
                self.origins.retain(|id, _| !matches!(next.get(id), Some(None)));
                let network = self.published.load().after(next);
                self.published.store(Arc::new(network));
            }
            let now = Instant::now();
            self.touched
                .retain(|_, told| now.saturating_duration_since(*told) < REMEMBERED);
        }
    }

    /// Takes over changed settings. What an NRF tells of an NF goes before what the settings say; what was learned
    /// from a set that is named no more goes with it, and one that stands in the place of another is given the
    /// time to tell what it knows.
    fn renew(&mut self, renewed: Renewed) {
        let mut next: BTreeMap<Arc<str>, Option<Arc<Producer>>> = BTreeMap::new();
        let old = std::mem::replace(&mut self.statics, renewed.statics);
        if let Some(sets) = renewed.sets {
            self.sets = sets;
            let count = self.sets.len();
            let statics = &self.statics;
            self.origins.retain(|id, set| {
                let stays = *set < count;
                if !stays {
                    next.insert(id.clone(), statics.get(id).cloned());
                }
                stays
            });
        }
        for id in old.keys().chain(self.statics.keys()) {
            if !self.origins.contains_key(id) && old.get(id) != self.statics.get(id) {
                next.insert(id.clone(), self.statics.get(id).cloned());
            }
        }
        if !next.is_empty() {
            let network = self.published.load().after(next);
            self.published.store(Arc::new(network));
        }
    }

    fn note(&mut self, set: usize, change: Change, next: &mut BTreeMap<Arc<str>, Option<Arc<Producer>>>) {
        match change {
            Change::Put(producer) => {
                self.metrics.notified.inc();
                self.touched.insert(producer.id.clone(), Instant::now());
                self.origins.insert(producer.id.clone(), set);
                next.insert(producer.id.clone(), Some(producer));
            }
            // Another set knows it, too, and has not let it go.
            Change::Gone(id) if self.origins.get(&id).is_some_and(|origin| *origin != set) => {}
            Change::Gone(id) => {
                self.metrics.notified.inc();
                self.touched.insert(id.clone(), Instant::now());
                next.insert(id.clone(), self.statics.get(&id).cloned());
            }
            Change::Fetch(uri) => {
                // One fetch of a profile at a time: two could overtake each other, and the older one win.
                if let Some(fetching) = self.fetching.get_mut(&uri) {
                    fetching.again = true;
                } else {
                    let began = Instant::now();
                    self.fetching
                        .insert(uri.clone(), Fetching { began, again: false });
                    self.fetch(set, uri);
                }
            }
            Change::Fetched(uri, producer) => {
                let Some(fetching) = self.fetching.remove(&uri) else {
                    return;
                };
                // A notification that came while the profile was on its way may tell of a later state, even of the
                // NF's end: which of the two is older nobody can say, so the profile is fetched again.
                let told_meanwhile = producer.as_ref().is_some_and(|producer| {
                    let told = self.touched.get(&producer.id);
                    told.is_some_and(|told| *told > fetching.began)
                });
                if let Some(producer) = producer.filter(|_| !told_meanwhile) {
                    self.note(set, Change::Put(producer), next);
                }
                if fetching.again || told_meanwhile {
                    self.note(set, Change::Fetch(uri), next);
                }
            }
            Change::Audited {
                nf_type,
                began,
                producers,
            } => self.audited(set, &nf_type, began, producers, next),
        }
    }

    /// Fetches a profile that has changed; again for a while when no NRF answers, then the audit finds it.
    fn fetch(&self, set: usize, uri: String) {
        /// Tries, with pauses that double.
        const TRIES: u32 = 5;
        const PAUSE: Duration = Duration::from_millis(200);
        // A path that names no set: somebody else's notification.
        let Some(nrf) = self.sets.get(set).cloned() else {
            return;
        };
        let sender = self.sender.clone();
        tokio::task::spawn_local(async move {
            let mut producer = None;
            for tried in 0..TRIES {
                if let Some(found) = nrf.profile(&uri).await {
                    producer = found.map(Arc::new);
                    break;
                }
                tokio::time::sleep(PAUSE * 2_u32.pow(tried)).await;
            }
            // Nobody listens any more: then nobody needs it.
            let change = Change::Fetched(uri, producer);
            let _ = sender.send(Heard { set, change }).await;
        });
    }

    fn audited(
        &mut self,
        set: usize,
        nf_type: &str,
        began: Instant,
        producers: Vec<Arc<Producer>>,
        next: &mut BTreeMap<Arc<str>, Option<Arc<Producer>>>,
    ) {
        let network = self.published.load_full();
        let touched = &self.touched;
        let is_newer = |id: &str| touched.get(id).is_some_and(|told| *told >= began);
        let mut named = ahash::AHashSet::with_capacity(producers.len());
        for producer in producers {
            let id = producer.id.clone();
            named.insert(id.clone());
            let same = network.producer(&id).is_some_and(|known| **known == *producer);
            if !same && !is_newer(&id) {
                self.metrics.audited.inc();
                self.origins.insert(id.clone(), set);
                next.insert(id, Some(producer));
            }
        }
        let gone = network
            .producers()
            .filter(|known| &*known.nf_type == nf_type && !named.contains(&known.id))
            .filter(|known| !is_newer(&known.id))
            .filter(|known| self.origins.get(&known.id).is_none_or(|origin| *origin == set));
        for known in gone {
            let fallback = self.statics.get(&known.id);
            if fallback.is_none_or(|fallback| **fallback != **known) {
                self.metrics.audited.inc();
                next.insert(known.id.clone(), fallback.cloned());
            }
        }
    }
}

/// Subscribes, audits, and renews, for as long as somebody listens.
async fn follow(config: Arc<Config>, nrf: Rc<NrfSet>, sender: mpsc::Sender<Heard>) {
    let settings = &config.nrf;
    let subscriptions = &nrf.subscriptions;
    loop {
        let mut complete = true;
        for nf_type in &nrf.nf_types {
            let now = Instant::now();
            let known = subscriptions.borrow().get(nf_type).cloned();
            let holds = known.as_ref().is_some_and(|(_, renew)| now < *renew);
            if !holds {
                let renewed = match &known {
                    Some((path, _)) => nrf.renew(path, settings.subscription_validity.duration()).await,
                    None => None,
                };
                let made = match renewed {
                    Some(renewed) => Some(renewed),
                    None => nrf.subscribe(&config, nf_type).await,
                };
                match made {
                    Some(made) => subscriptions.borrow_mut().insert(nf_type.clone(), made),
                    None => subscriptions.borrow_mut().remove(nf_type),
                };
                complete &= subscriptions.borrow().contains_key(nf_type);
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
        let pause = match complete {
            true => {
                let renewal = subscriptions.borrow().values().map(|(_, renew)| *renew).min();
                let until_renewal = renewal.map(|renew| renew.saturating_duration_since(Instant::now()));
                let audit = settings.audit_interval.duration();
                until_renewal.map_or(audit, |renewal| renewal.min(audit))
            }
            false => settings.retry_interval.duration(),
        };
        tokio::time::sleep(pause.max(Duration::from_millis(100))).await;
    }
}

/// Registers this SCP and keeps it registered.
async fn presence(config: Arc<Config>, nrf: Rc<NrfSet>, load: Arc<AtomicU8>) {
    if !config.nrf.register {
        return std::future::pending().await;
    }
    let path = instance_path(&config.nf_instance_id);
    let mut registered = false;
    let mut pause = config.nrf.heart_beat.duration();
    loop {
        let percent = load.load(Ordering::Relaxed);
        if registered {
            let beat = json!([
                {"op": "replace", "path": "/nfStatus", "value": "REGISTERED"},
                {"op": "add", "path": "/load", "value": percent},
            ]);
            let answer = nrf
                .send(
                    Method::PATCH,
                    &path,
                    Some(("application/json-patch+json", beat.to_string())),
                )
                .await;
            // Unknown there: it has lost us, or another NRF of the set answers.
            registered = answer.is_some_and(|(status, ..)| status.is_success());
        }
        if !registered {
            let profile = own_profile::profile(&config, percent).to_string();
            let answer = nrf
                .send(Method::PUT, &path, Some(("application/json", profile)))
                .await;
            if let Some((status, _, body)) = answer.filter(|(status, ..)| status.is_success()) {
                let assigned: Option<u64> = serde_json::from_slice::<Value>(&body)
                    .ok()
                    .and_then(|profile| profile["heartBeatTimer"].as_u64());
                pause = assigned.map_or(pause, |seconds| Duration::from_secs(seconds.max(1)));
                registered = true;
                tracing::info!(%status, "registered at the NRF");
            }
        }
        let pause = if registered {
            pause
        } else {
            config.nrf.retry_interval.duration()
        };
        tokio::time::sleep(pause).await;
    }
}

/// The NRFs of a set; whoever answers is asked until it fails.
struct NrfSet {
    /// 0 for `nrf.roots`, then the sets of `nrf.sets`.
    number: usize,
    /// What is learned from it.
    nf_types: Vec<String>,
    roots: Vec<String>,
    /// Whether this SCP registers there.
    registers: bool,
    nrfs: Turns,
    /// Subscriptions by NF type: their paths, and when they are to be renewed.
    subscriptions: RefCell<AHashMap<String, (String, Instant)>>,
    client: Client,
    timeout: Duration,
    metrics: Metrics,
}

type Answer = (StatusCode, http::HeaderMap, Bytes);

/// Profiles that are fetched at the same time.
const FETCHES: usize = 16;
/// Pages of a list at most; a longer one goes round in circles.
const PAGES: usize = 10_000;

#[derive(Deserialize)]
struct Links {
    #[serde(default, rename = "_links")]
    links: LinkLists,
}

#[derive(Deserialize, Default)]
struct LinkLists {
    #[serde(default)]
    item: ItemLinks,
}

/// `LinksValueSchema` (TS 29.571 §5.2.4.7): a link, or an array of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum ItemLinks {
    Many(Vec<Link>),
    One(Link),
}

impl Default for ItemLinks {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Search<'a> {
    #[serde(borrow)]
    nf_instances: Vec<&'a RawValue>,
}

impl NrfSet {
    /// Asks the NRFs in turn; `None` when none answers, or only with failures of its own.
    async fn send(&self, method: Method, path: &str, body: Option<(&str, String)>) -> Option<Answer> {
        for nrf in self.nrfs.in_turn() {
            let mut request = http::Request::builder()
                .method(method.clone())
                .uri(format!("{}{path}", nrf.prefix))
                .header(
                    ACCEPT,
                    "application/json, application/3gppHal+json, application/problem+json",
                );
            if let Some((content_type, _)) = &body {
                request = request.header(CONTENT_TYPE, *content_type);
            }
            let content = body
                .as_ref()
                .map_or_else(Body::empty, |(_, text)| text.clone().into());
            let request = request.body(content).ok()?;
            let options = SendOptions {
                deadline: self.timeout,
                priority: 8,
            };
            match self.client.send(&nrf.origin, request, options).await {
                Ok(response) if !response.status().is_server_error() => {
                    let (head, body) = response.into_parts();
                    return Some((head.status, head.headers, body.into_bytes()));
                }
                Ok(response) => tracing::debug!(%nrf, path, status = %response.status(), "the NRF failed"),
                Err(error) => tracing::debug!(%nrf, path, %error, "the NRF did not answer"),
            }
            self.metrics.nrf_failures.inc();
            self.nrfs.next(nrf);
        }
        None
    }

    /// Ends all subscriptions.
    async fn unsubscribe(&self) {
        let subscriptions = self.subscriptions.take();
        let paths = subscriptions.values().map(|(path, _)| path);
        join_all(paths.map(|path| self.send(Method::DELETE, path, None))).await;
    }

    /// Takes this SCP's profile away.
    async fn deregister(&self, id: &str) {
        if self.registers {
            let path = instance_path(id);
            let _ = self.send(Method::DELETE, &path, None).await;
        }
    }

    async fn get(&self, path: &str) -> Option<Bytes> {
        let (status, _, body) = self.send(Method::GET, path, None).await?;
        (status == StatusCode::OK).then_some(body)
    }

    /// The profile at a URI of the NRF's: there is none (`Some(None)`), or no NRF says so (`None`).
    async fn profile(&self, uri: &str) -> Option<Option<Producer>> {
        let (status, _, body) = self.send(Method::GET, &path_of(uri)?, None).await?;
        match status {
            StatusCode::OK => Some(Producer::learned(&body).ok()),
            status if status.is_client_error() => Some(None),
            _ => None,
        }
    }

    async fn all_of(&self, nf_type: &str, mode: AuditMode, config: &Config) -> Option<Vec<Arc<Producer>>> {
        match mode {
            AuditMode::Management => self.listed(nf_type).await,
            AuditMode::Discovery => {
                let path = format!(
                    "/nnrf-disc/v1/nf-instances?target-nf-type={nf_type}&requester-nf-type=SCP&limit=100000\
                     &requester-nf-instance-id={}",
                    config.nf_instance_id
                );
                let body = self.get(&path).await?;
                let search: Search<'_> = serde_json::from_slice(&body).ok()?;
                let producers = search
                    .nf_instances
                    .iter()
                    .filter_map(|profile| Producer::learned(profile.get().as_bytes()).ok());
                Some(producers.map(Arc::new).collect())
            }
        }
    }

    async fn listed(&self, nf_type: &str) -> Option<Vec<Arc<Producer>>> {
        const PAGE: usize = 1_000;
        let mut paths = Vec::new();
        for page in 1..=PAGES {
            let path =
                format!("/nnrf-nfm/v1/nf-instances?nf-type={nf_type}&page-number={page}&page-size={PAGE}");
            let body = self.get(&path).await?;
            let links: Links = serde_json::from_slice(&body).ok()?;
            let items = match links.links.item {
                ItemLinks::Many(items) => items,
                ItemLinks::One(item) => vec![item],
            };
            let count = items.len();
            paths.extend(items.iter().filter_map(|link| path_of(&link.href)));
            if count < PAGE {
                break;
            }
        }
        let fetched = stream::iter(paths)
            .map(|path| async move { self.send(Method::GET, &path, None).await })
            .buffer_unordered(FETCHES)
            .collect::<Vec<_>>()
            .await;
        let mut producers = Vec::with_capacity(fetched.len());
        for answer in fetched {
            match answer? {
                (StatusCode::OK, _, body) => producers.extend(Producer::learned(&body).ok().map(Arc::new)),
                // Gone between the list and now.
                (StatusCode::NOT_FOUND, ..) => {}
                _ => return None,
            }
        }
        Some(producers)
    }

    /// Subscribes to a type; the path of the subscription and when it is to be renewed.
    async fn subscribe(&self, config: &Config, nf_type: &str) -> Option<(String, Instant)> {
        let wanted = config.nrf.subscription_validity.duration();
        let data = json!({
            "nfStatusNotificationUri": format!("{}{}", config.root(), callback_path(self.number)),
            "reqNfInstanceId": config.nf_instance_id,
            "reqNfType": "SCP",
            "reqNfFqdn": config.fqdn,
            "subscrCond": {"nfType": nf_type},
            "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"],
            "validityTime": time_after(wanted),
        });
        let body = Some(("application/json", data.to_string()));
        let (status, headers, body) = self
            .send(Method::POST, "/nnrf-nfm/v1/subscriptions", body)
            .await?;
        if status != StatusCode::CREATED {
            tracing::warn!(nf_type, %status, "the NRF refused a subscription");
            return None;
        }
        let path = headers
            .get(LOCATION)
            .and_then(|location| location.to_str().ok())
            .and_then(path_of)
            .or_else(|| {
                let data: Value = serde_json::from_slice(&body).ok()?;
                Some(format!(
                    "/nnrf-nfm/v1/subscriptions/{}",
                    data["subscriptionId"].as_str()?
                ))
            })?;
        Some((path, renewal(&body, wanted)))
    }

    /// Lets a subscription hold longer; `None` when it is not known any more.
    async fn renew(&self, path: &str, wanted: Duration) -> Option<(String, Instant)> {
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": time_after(wanted)}]);
        let body = Some(("application/json-patch+json", patch.to_string()));
        let (status, _, body) = self.send(Method::PATCH, path, body).await?;
        status
            .is_success()
            .then(|| (path.to_owned(), renewal(&body, wanted)))
    }
}

/// When a subscription is to be renewed: with a third of its life left.
fn renewal(subscription: &[u8], wanted: Duration) -> Instant {
    let told = serde_json::from_slice::<Value>(subscription).ok();
    let until = told.and_then(|data| {
        let text = data["validityTime"].as_str()?.to_owned();
        time::OffsetDateTime::parse(&text, &time::format_description::well_known::Rfc3339).ok()
    });
    let life = until.map_or(wanted, |until| {
        Duration::try_from(until - time::OffsetDateTime::now_utc()).unwrap_or_default()
    });
    Instant::now() + life * 2 / 3
}

fn time_after(wanted: Duration) -> String {
    let until = time::OffsetDateTime::now_utc() + wanted;
    until
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}

/// The path of an absolute URI, or of a path.
fn path_of(uri: &str) -> Option<String> {
    let uri: http::Uri = uri.parse().ok()?;
    uri.path_and_query().map(|path| path.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_read() {
        let gone = change_of(
            br#"{"event": "NF_DEREGISTERED", "nfInstanceUri": "http://n/nnrf-nfm/v1/nf-instances/AB"}"#,
        );
        assert!(matches!(gone.unwrap(), Change::Gone(id) if &*id == "ab"));
        let put = change_of(
            br#"{"event": "NF_REGISTERED", "nfInstanceUri": "x",
                "nfProfile": {"nfInstanceId": "CD", "nfType": "UDM", "nfStatus": "SUSPENDED"}}"#,
        );
        assert!(matches!(put.unwrap(), Change::Put(producer) if &*producer.id == "cd"));
        let some = change_of(
            br#"{"event": "NF_PROFILE_CHANGED", "nfInstanceUri": "http://n/x/1", "profileChanges": []}"#,
        );
        assert!(matches!(some.unwrap(), Change::Fetch(uri) if uri.ends_with("/1")));
        assert!(change_of(b"{}").is_err());
    }

    /// A profile that was read before its NF was deregistered, and arrives after that was told.
    #[tokio::test]
    async fn a_fetched_profile_does_not_undo_what_was_told_meanwhile() {
        tokio::task::LocalSet::new()
            .run_until(async {
                let config = Arc::new(sbi::client::ClientConfig::default());
                let metrics = Metrics::new(&telemetry::Registry::new());
                let nrf = NrfSet {
                    number: 0,
                    nf_types: Vec::new(),
                    roots: Vec::new(),
                    registers: false,
                    nrfs: Turns::new(&[]),
                    subscriptions: RefCell::default(),
                    client: Client::new(config, None),
                    timeout: Duration::from_secs(1),
                    metrics: metrics.clone(),
                };
                let (sender, _changes) = mpsc::channel(10);
                let mut book = Book {
                    statics: BTreeMap::new(),
                    touched: AHashMap::new(),
                    origins: AHashMap::new(),
                    published: Arc::default(),
                    metrics,
                    sets: vec![Rc::new(nrf)],
                    sender,
                    fetching: AHashMap::new(),
                };
                let profile = r#"{"nfInstanceId": "AB", "nfType": "UDM", "nfStatus": "REGISTERED"}"#;
                let profile = Arc::new(Producer::parse(profile.as_bytes()).unwrap());
                let uri = || "http://n/nnrf-nfm/v1/nf-instances/AB".to_owned();
                let mut next = BTreeMap::new();
                book.note(0, Change::Fetch(uri()), &mut next);
                book.note(0, Change::Fetched(uri(), Some(profile.clone())), &mut next);
                assert!(next[&profile.id].is_some() && book.fetching.is_empty());
                book.note(0, Change::Fetch(uri()), &mut next);
                std::thread::sleep(Duration::from_millis(2));
                book.note(0, Change::Gone(profile.id.clone()), &mut next);
                book.note(0, Change::Fetched(uri(), Some(profile.clone())), &mut next);
                assert!(next[&profile.id].is_none(), "it is gone");
                assert_eq!(book.fetching.len(), 1, "asked again, to be sure");
                book.note(0, Change::Fetched(uri(), None), &mut next);
                assert!(next[&profile.id].is_none() && book.fetching.is_empty());
            })
            .await;
    }
}
