//! What is told of the network, and the one who makes snapshots of it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::nrf::NrfSet;
use crate::events::Metrics;
use crate::network::{Network, Producer};

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

/// The one who changes the snapshot.
pub(super) struct Book {
    pub(super) statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// When a notification last told of an NF: an audit that began before knows less.
    pub(super) touched: AHashMap<Arc<str>, Instant>,
    /// The set that an NF was learned from: only that one's silence about it says that it is gone.
    pub(super) origins: AHashMap<Arc<str>, usize>,
    pub(super) published: Arc<ArcSwap<Network>>,
    pub(super) metrics: Metrics,
    pub(super) sets: Vec<Rc<NrfSet>>,
    pub(super) sender: mpsc::Sender<Heard>,
    /// Profiles being fetched.
    pub(super) fetching: AHashMap<String, Fetching>,
}

/// Settings that have changed.
pub(super) struct Renewed {
    pub(super) statics: BTreeMap<Arc<str>, Arc<Producer>>,
    /// Absent: as before.
    pub(super) sets: Option<Vec<Rc<NrfSet>>>,
}

/// A profile being fetched.
pub(super) struct Fetching {
    began: Instant,
    /// It has changed again meanwhile.
    again: bool,
}

/// Changes that are applied together at most. A storm costs a snapshot for as many, not one each.
const BATCH: usize = 1_024;
/// How long it is remembered that a notification told of an NF: longer than an audit takes.
const REMEMBERED: Duration = Duration::from_secs(120);

impl Book {
    pub(super) async fn keep(
        mut self,
        mut changes: mpsc::Receiver<Heard>,
        mut renewals: mpsc::Receiver<Renewed>,
    ) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use nrf_client::{Nrfs, Turns};
    use sbi::client::Client;
    use std::cell::RefCell;

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
                    nrfs: Nrfs::new(
                        Turns::default(),
                        Client::new(config, None),
                        Duration::from_secs(1),
                    ),
                    subscriptions: RefCell::default(),
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
