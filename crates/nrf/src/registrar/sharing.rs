//! Changes that other NRFs of a cluster make in the same database, and conflicts with them.
//!
//! The registrar knows the version of each record that it has read or written. It writes a record only if it still has that
//! version; after a conflict it reads the record again and makes the change again, a bounded number of times. The journal
//! names the records that others have changed; what has another version than the known one is read, and takes effect as if
//! it had been changed here. While a record is read, no change of it is made.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use bytes::Bytes;
use model::{NfInstanceId, NfProfile};
use registry::{Entry, ProfileRecord};
use sbi::problem::{Cause, Problem};
use store::{Batch, Condition, Error, Stored, Table, Version};

use super::faults::{not_found, store_failed};
use super::prepare::Next;
use super::subscriptions::parse_stored;
use super::{AMPLE, Asked, Done, Effect, Registrar, Step, What, timer_of};
use crate::cluster::{ChangeRecord, Cluster, Drift, Handoff, Key, View, micros};
use crate::events::Event;
use crate::subscriptions::Subscription;

/// What is shared with the other NRFs of a cluster.
pub(super) struct Sharing {
    journal: Table<ChangeRecord>,
    pub(super) handoff: Handoff,
    pub(super) view: Arc<View>,
    /// The version of each stored record, as it is known here.
    versions: AHashMap<Key, Version>,
    /// Records that others have changed, with their version; `None`: removed.
    stale: AHashMap<Key, Option<Version>>,
    /// Those of them that are being read.
    reading: AHashSet<Key>,
    /// Start of the poll that was applied last.
    began: u64,
    /// Starts of polls, each with the notifications that its changes and all before have brought; until these have come
    /// to their end.
    unsettled: VecDeque<(u64, u64)>,
    /// What was changed last, and when: for subscriptions that others made before, and that come to be known here later.
    pub(super) recent: VecDeque<(u64, Arc<Entry>)>,
    /// Instances that another NRF has suspended, though they beat here.
    pub(super) alive: BTreeSet<NfInstanceId>,
    /// Changes that this NRF has to notify of in the place of others, once it has all that they have changed.
    inherited: Vec<Stored<ChangeRecord>>,
}

/// How often a change is made again after conflicts.
const ATTEMPTS: u32 = 8;
/// Records that are read at the same time because others have changed them.
const READS: usize = 256;
/// Polls whose notifications are not delivered; beyond it the next poll stands for those in between.
const UNSETTLED: usize = 1_024;

impl Sharing {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            journal: cluster.changes.clone(),
            view: cluster.handoff.view(),
            handoff: cluster.handoff.clone(),
            versions: AHashMap::new(),
            stale: AHashMap::new(),
            reading: AHashSet::new(),
            began: 0,
            unsettled: VecDeque::new(),
            recent: VecDeque::new(),
            alive: BTreeSet::new(),
            inherited: Vec::new(),
        }
    }

    fn is_current(&self, key: &Key, version: Option<Version>) -> bool {
        self.versions.get(key).copied() == version
    }
}

/// A record as it was read.
enum Read {
    Profile(Result<Found<Entry>, Error>),
    /// With the moment at which it was made.
    Subscription(Result<Found<(Arc<Subscription>, u64)>, Error>),
}

/// What there is of a record.
enum Found<T> {
    /// This; `None` when it cannot be read.
    Present(Version, Option<T>),
    /// Nothing, since a moment that the journal has.
    Removed(Option<Version>),
}

impl<T> Found<T> {
    fn version(&self) -> Option<Version> {
        match self {
            Self::Present(version, _) => Some(*version),
            Self::Removed(_) => None,
        }
    }
}

impl Registrar {
    /// A record was read when the NRF started.
    pub(super) fn read(&mut self, key: Key, version: Version) {
        if let Some(sharing) = &mut self.sharing {
            sharing.versions.insert(key, version);
        }
    }

    /// What must hold for a write: with others on the database, that the record is as it is known here.
    pub(super) fn condition(&self, key: &Key) -> Condition {
        match &self.sharing {
            None => Condition::Always,
            Some(sharing) => match sharing.versions.get(key) {
                Some(version) => Condition::Version(*version),
                None => Condition::Absent,
            },
        }
    }

    /// Adds the entry of the journal to the batch of a change. `removed` is the last profile of an instance.
    pub(super) fn journal(&self, batch: &mut Batch, key: Key, removed: Option<Bytes>) {
        self.owe(batch, &key, removed.clone());
        if let Some(sharing) = &self.sharing {
            let record = ChangeRecord { key, removed };
            batch.put(&sharing.journal, &record, Condition::Always);
        }
    }

    /// A change is durable.
    pub(super) fn kept(&mut self, key: &Key, effect: &Effect, version: Version) {
        if let Some(sharing) = &mut self.sharing {
            if effect.removes() {
                sharing.versions.remove(key);
            } else {
                sharing.versions.insert(key.clone(), version);
            }
        }
    }

    /// Whether a change is of something that is unknown here and may have been made by another NRF.
    pub(super) fn may_be_elsewhere(&self, key: &Key, what: &What) -> bool {
        let existing = match what {
            What::Find { .. }
            | What::Patch { .. }
            | What::Delete { .. }
            | What::PatchSubscription { .. }
            | What::Unsubscribe { .. } => true,
            What::Put { .. } | What::Subscribe { .. } => false,
        };
        let unknown = |sharing: &Sharing| !sharing.versions.contains_key(key);
        existing && self.sharing.as_ref().is_some_and(unknown)
    }

    /// The NF instance, which may have been read just before.
    pub(super) fn find(&self, id: NfInstanceId) -> Result<Step, Problem> {
        let found = self.published.load().get(&id).cloned();
        let found = found.ok_or_else(|| not_found(id))?;
        Ok(Step::Done(Ok(Done::Found(found))))
    }

    /// Another NRF has changed the record: it is read again, then the change is made again.
    pub(super) fn after_conflict(&mut self, key: Key, asked: Option<&mut Asked>) -> Step {
        self.counters.count(Event::ClusterConflict);
        let again = asked.and_then(|asked| {
            asked.attempts += 1;
            (asked.attempts < ATTEMPTS).then(|| asked.again.clone()).flatten()
        });
        self.refresh(key, again)
    }

    /// Reads a record, then makes a change of it. Without a change, or when it was made too often already, the outcome says
    /// that it was not made.
    pub(super) fn refresh(&mut self, key: Key, then: Option<What>) -> Step {
        let timer = timer_of(&self.config);
        let go_on = move |registrar: &mut Self, key: Key, read: Read| {
            registrar.apply(key, read, then.is_none())?;
            match then {
                Some(what) => registrar.first_step(what),
                None => Err(Problem::new(Cause::NfCongestion).detail(
                    "other NRFs of the cluster change the same record at the same time; retry later",
                )),
            }
        };
        match &key {
            Key::Nf(id) => {
                let reply = self.profiles.get(id.0.as_bytes());
                let journal = self.sharing.as_ref().map(|sharing| sharing.journal.clone());
                Step::Load(Box::pin(async move {
                    let read = match (reply.await, journal) {
                        (Ok(Some(stored)), _) => parse(stored, timer).await,
                        (Ok(None), Some(journal)) => {
                            let entry = journal.get(&ChangeRecord::key_of(&key)).await;
                            entry.map(|entry| Found::Removed(entry.map(|entry| entry.version)))
                        }
                        (Ok(None), None) => Ok(Found::Removed(None)),
                        (Err(error), _) => Err(error),
                    };
                    let next: Next = Box::new(move |registrar| go_on(registrar, key, Read::Profile(read)));
                    next
                }))
            }
            Key::Subscription(id) => {
                let reply = self.subscriptions.get(id.as_bytes());
                Step::Load(Box::pin(async move {
                    let read = reply.await.map(|stored| match stored {
                        Some(one) => {
                            let parsed = parse_stored(&one.id, &one.document);
                            Found::Present(one.version, parsed.map(|read| (Arc::new(read), one.created)))
                        }
                        None => Found::Removed(None),
                    });
                    let next: Next =
                        Box::new(move |registrar| go_on(registrar, key, Read::Subscription(read)));
                    next
                }))
            }
        }
    }

    /// A record is as it was read now; `due` when others have changed it.
    fn apply(&mut self, key: Key, read: Read, due: bool) -> Result<(), Problem> {
        let version = match &read {
            Read::Profile(read) => read.as_ref().map(Found::version),
            Read::Subscription(read) => read.as_ref().map(Found::version),
        };
        let version = version.map_err(Error::clone);
        let Some(sharing) = &mut self.sharing else {
            return Ok(());
        };
        let version = match version {
            Ok(version) => version,
            Err(error) => {
                if due || sharing.versions.contains_key(&key) {
                    // It is read another time; no version is equal to this one.
                    sharing.stale.insert(key, Some(Version::default()));
                }
                return Err(store_failed(error));
            }
        };
        if sharing.is_current(&key, version) {
            return Ok(());
        }
        match version {
            Some(version) => sharing.versions.insert(key.clone(), version),
            None => sharing.versions.remove(&key),
        };
        self.counters.count(Event::ClusterChange);
        match (key, read) {
            (_, Read::Profile(Ok(Found::Present(version, Some(entry))))) => {
                self.changed_elsewhere(entry, version);
            }
            (Key::Nf(id), Read::Profile(Ok(Found::Removed(version)))) => {
                self.removed_elsewhere(id, version.map_or_else(micros, Version::micros));
            }
            (_, Read::Subscription(Ok(Found::Present(_, Some((subscription, made)))))) => {
                self.subscribed_elsewhere(subscription, made);
            }
            (Key::Subscription(id), Read::Subscription(Ok(Found::Removed(_)))) => {
                if let Some(gone) = self.book.remove(&id) {
                    self.shares.give_back(&gone.owner());
                }
            }
            (key, _) => tracing::error!(?key, "stored record is invalid; ignored"),
        }
        Ok(())
    }

    /// What a poll has brought.
    pub(super) fn drifted(&mut self, drift: Drift) {
        let Some(sharing) = &mut self.sharing else { return };
        let is_settled =
            sharing.stale.is_empty() && sharing.reading.is_empty() && sharing.inherited.is_empty();
        // Everything up to the poll before was handed to the notifier by then.
        if is_settled && sharing.unsettled.len() < UNSETTLED {
            sharing.unsettled.push_back((self.notify.pushed(), sharing.began));
        }
        let ended = self.notify.settled();
        while let Some((_, began)) = sharing.unsettled.pop_front_if(|(pushed, _)| *pushed <= ended) {
            sharing.handoff.settle(began);
        }
        sharing.began = drift.began;
        sharing.view = drift.view;
        sharing.inherited.extend(drift.inherited);
        if drift.complete {
            let named: AHashSet<&Key> = drift.changes.iter().map(|(key, _)| key).collect();
            let gone = sharing.versions.keys().filter(|key| !named.contains(key));
            let gone: Vec<Key> = gone.cloned().collect();
            sharing.stale.extend(gone.into_iter().map(|key| (key, None)));
        }
        for (key, version) in drift.changes {
            if !sharing.is_current(&key, version) {
                sharing.stale.insert(key, version);
            }
        }
        for beat in drift.beats {
            self.beaten_elsewhere(beat);
        }
        self.read_stale();
    }

    /// A read of a record has ended.
    pub(super) fn refreshed(&mut self, key: &Key) {
        if let Some(sharing) = &mut self.sharing
            && sharing.reading.remove(key)
        {
            self.read_stale();
        }
    }

    /// Reads records that others have changed, a bounded number at a time, then notifies in the place of others.
    fn read_stale(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        let room = READS.saturating_sub(sharing.reading.len());
        let ready = sharing.stale.keys().filter(|key| !self.busy.contains_key(*key));
        let ready: Vec<Key> = ready.take(room).cloned().collect();
        for key in ready {
            let Some(sharing) = &mut self.sharing else { return };
            let version = sharing.stale.remove(&key).flatten();
            if sharing.is_current(&key, version) {
                continue;
            }
            sharing.reading.insert(key.clone());
            self.order(key.clone(), |registrar| Ok(registrar.refresh(key, None)));
        }
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.stale.is_empty() && sharing.reading.is_empty() && !sharing.inherited.is_empty() {
            let inherited = std::mem::take(&mut sharing.inherited);
            self.notify_for_others(&inherited);
        }
    }
}

async fn parse(
    stored: Stored<ProfileRecord>,
    timer: impl FnOnce(&NfProfile) -> u32 + Send + 'static,
) -> Result<Found<Entry>, Error> {
    // A profile of the largest size takes milliseconds. A stored one stays valid, even if the settings now allow fewer
    // expressions.
    let parsed = tokio::task::spawn_blocking(move || {
        let entry = Entry::parse_within(&stored.document, AMPLE, timer).ok();
        let entry = entry.map(|entry| {
            if stored.suspended {
                entry.suspended()
            } else {
                entry
            }
        });
        Found::Present(stored.version, entry)
    });
    parsed.await.map_err(|error| Error::Engine(error.to_string()))
}
