//! The writer: one task that changes the registry and the subscriptions.
//!
//! The order of a change, and what a crash leaves at each moment: it is read and checked, away from the writer; made durable (a crash before
//! leaves nothing, a crash after leaves the change); published to readers; told to subscribers; acknowledged.
//! So an acknowledged change is kept, and a reader never sees one that a crash could take back. Heart-beats
//! that bring only load and time are not made durable: the next one comes in seconds.
//!
//! Changes of one instance or one subscription follow each other; those of others go on meanwhile, so that the
//! store can make many durable at once and a slow disk delays everybody by one write, not by as many as wait.

mod faults;
mod prepare;
mod profiles;
mod subscriptions;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use model::{NfInstanceId, NfProfile};
use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use store::{Receipt, Scan, Store, Table};
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(crate) use self::faults::not_found;
use self::faults::store_failed;
use self::prepare::{Prepared, Preparing, Refused, Rules, Work};
use self::profiles::ProfileEffect;
use self::subscriptions::{SubscriptionEffect, parse_stored};
pub(crate) use self::waiting::{Held, Waiting};
use super::record::{ProfileRecord, SubscriptionRecord};
use super::{ChangeKind, Entry, Snapshot};
use crate::config::Config;
use crate::events::Counters;
use crate::growth::Retrieved;
use crate::live::Live;
use crate::screening::Screening;
use crate::subscriptions::{Book, Notification, Shares, Subscription};

/// What a stored profile may have of regular expressions.
const AMPLE: model::pattern::Limits = model::pattern::Limits {
    patterns: usize::MAX,
    bytes: usize::MAX,
};

/// A change that somebody wants.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) what: What,
    pub(crate) reply: oneshot::Sender<Result<Done, Problem>>,
    /// Its bytes among those that wait.
    pub(crate) held: Held,
}

/// What is to change.
#[derive(Debug)]
pub(crate) enum What {
    /// Register or replace.
    Put {
        id: NfInstanceId,
        body: Bytes,
        if_match: Option<String>,
    },
    /// Change by JSON Patch; a heart-beat is one, too.
    Patch {
        id: NfInstanceId,
        body: Bytes,
        if_match: Option<String>,
    },
    /// Deregister.
    Delete { id: NfInstanceId },
    /// Subscribe; the identity is new.
    Subscribe {
        id: String,
        body: Bytes,
        /// Where the request came from.
        source: IpAddr,
        by: Actor,
    },
    /// Change a subscription.
    PatchSubscription { id: String, body: Bytes, by: Actor },
    /// Unsubscribe.
    Unsubscribe { id: String, by: Actor },
}

impl What {
    /// Bytes that it holds while it waits, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put { body, .. }
            | Self::Patch { body, .. }
            | Self::Subscribe { body, .. }
            | Self::PatchSubscription { body, .. } => body.len(),
            Self::Delete { .. } | Self::Unsubscribe { .. } => 0,
        }
    }
}

/// What has changed.
#[derive(Debug)]
pub(crate) enum Done {
    Created(Arc<Entry>),
    Replaced(Arc<Entry>),
    /// A heart-beat that changed nothing its sender does not know.
    HeartBeat(Arc<Entry>),
    Removed,
    Subscribed(Arc<Subscription>),
    SubscriptionChanged(Arc<Subscription>),
}

/// Whose changes follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Nf(NfInstanceId),
    Subscription(String),
}

/// How far a change has come.
enum Step {
    /// It is done, or refused.
    Done(Result<Done, Problem>),
    /// Work on another thread, then it goes on.
    Prepare { bytes: usize, work: Work },
    /// It waits for the disk; then it takes effect.
    Commit(Receipt, Effect),
}

/// What a change does once it is durable.
#[derive(Debug)]
enum Effect {
    Profile(ProfileEffect),
    Subscription(SubscriptionEffect),
}

/// Who waits for the outcome, and the bytes that wait with it.
type Reply = Option<(oneshot::Sender<Result<Done, Problem>>, Held)>;

/// A change on its way to the disk.
struct Commit {
    key: Key,
    effect: Effect,
    reply: Reply,
}

/// Ready, with its change, when the disk has answered.
struct InFlight {
    receipt: Receipt,
    commit: Option<Commit>,
}

impl Future for InFlight {
    type Output = (Result<(), store::Error>, Option<Commit>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.receipt).poll(cx));
        Poll::Ready((outcome.map(drop), self.commit.take()))
    }
}

/// The writer.
pub(crate) struct Registrar {
    config: Arc<Config>,
    screening: Arc<Screening>,
    published: Arc<ArcSwap<Snapshot>>,
    book: Book,
    last_heard: AHashMap<NfInstanceId, Instant>,
    suspended: BTreeMap<NfInstanceId, Instant>,
    store: Store,
    profiles: Table<ProfileRecord>,
    subscriptions: Table<SubscriptionRecord>,
    notify: mpsc::Sender<Notification>,
    counters: Arc<Counters>,
    root: String,
    /// Who is changing, and who waits behind.
    busy: AHashMap<Key, VecDeque<Write>>,
    /// How many wait behind others.
    behind: usize,
    preparing: Preparing,
    commits: FuturesUnordered<InFlight>,
    /// Instances and subscriptions that the disk is making new.
    registering: usize,
    subscribing: usize,
    /// Who has how many subscriptions, those that the disk makes included.
    shares: Shares,
}

impl Registrar {
    /// Reads what the store has. Profiles get a whole heart-beat interval of grace: nobody could beat while
    /// the NRF was away.
    pub(crate) async fn open(
        config: Arc<Config>,
        screening: Arc<Screening>,
        store: Store,
        published: Arc<ArcSwap<Snapshot>>,
        notify: mpsc::Sender<Notification>,
        counters: Arc<Counters>,
    ) -> Result<Self, store::Error> {
        let root = config.root();
        let (profiles, subscriptions) = (store.table()?, store.table()?);
        let mut registrar = Self {
            config,
            screening,
            published,
            book: Book::default(),
            last_heard: AHashMap::new(),
            suspended: BTreeMap::new(),
            store,
            profiles,
            subscriptions,
            notify,
            counters,
            root,
            busy: AHashMap::new(),
            behind: 0,
            preparing: Preparing::default(),
            commits: FuturesUnordered::new(),
            registering: 0,
            subscribing: 0,
            shares: Shares::default(),
        };
        registrar.recover().await?;
        Ok(registrar)
    }

    async fn recover(&mut self) -> Result<(), store::Error> {
        let now = Instant::now();
        let mut snapshot = Snapshot::default();
        let mut next = Some(Scan::all(256));
        while let Some(scan) = next {
            let page = self.profiles.scan(&scan).await?;
            for record in &page.records {
                let timer = |profile: &NfProfile| self.config.heart_beat.assign(profile.heart_beat_timer);
                // What was accepted is kept, also if fewer expressions are accepted now.
                match Entry::parse_within(&record.document, AMPLE, timer) {
                    Ok(entry) => {
                        self.last_heard.insert(entry.id, now);
                        snapshot = snapshot.with(Arc::new(entry));
                    }
                    // Written by us, so it was valid then; one that is not any more must not keep the rest away.
                    Err(fault) => tracing::error!(id = %record.id, %fault, "a stored profile cannot be read"),
                }
            }
            next = page.next;
        }
        self.published.store(Arc::new(snapshot));
        let mut next = Some(Scan::all(256));
        while let Some(scan) = next {
            let page = self.subscriptions.scan(&scan).await?;
            for record in &page.records {
                match parse_stored(&record.id, &record.document) {
                    Some(subscription) => {
                        self.shares.add(&subscription.owner());
                        self.book.put(Arc::new(subscription));
                    }
                    None => tracing::error!(id = record.id, "a stored subscription cannot be read"),
                }
            }
            next = page.next;
        }
        Ok(())
    }

    /// Works until every sender of writes is gone and what they asked for is done.
    pub(crate) async fn run(
        mut self,
        mut writes: mpsc::Receiver<Write>,
        mut retrieved: mpsc::Receiver<Retrieved>,
        live: Arc<ArcSwap<Live>>,
    ) {
        let mut live = arc_swap::Cache::new(live);
        let mut audit = tokio::time::interval(self.config.heart_beat.audit_interval.duration());
        audit.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let most = self.config.max_waiting_writes.max(1);
        let mut open = true;
        while open || !self.commits.is_empty() || self.preparing.len() > 0 {
            let room = self.commits.len() + self.preparing.len() + self.behind < most;
            tokio::select! {
                Some((outcome, Some(commit))) = self.commits.next() => self.committed(outcome, commit),
                Some(prepared) = self.preparing.next() => self.prepared(prepared),
                write = writes.recv(), if open && room => match write {
                    Some(write) => {
                        self.follow(live.load());
                        self.begin(write);
                    }
                    None => open = false,
                },
                Some(state) = retrieved.recv() => self.other_set(state),
                _ = audit.tick(), if open => {
                    self.follow(live.load());
                    self.audit(Instant::now(), OffsetDateTime::now_utc());
                }
            }
        }
        self.store.clone().close().await;
    }

    /// Takes changed settings.
    fn follow(&mut self, live: &Live) {
        if !Arc::ptr_eq(&self.config, &live.config) {
            self.config = live.config.clone();
            self.screening = live.screening.clone();
        }
    }

    /// Settings for work on another thread.
    fn rules(&self) -> Rules {
        Rules {
            config: self.config.clone(),
            screening: self.screening.clone(),
        }
    }

    /// Counts a refusal.
    fn refuse(&self, refused: Refused) -> Problem {
        if let Some(event) = refused.event {
            self.counters.count(event);
        }
        refused.problem
    }

    fn begin(&mut self, write: Write) {
        let key = match &write.what {
            What::Put { id, .. } | What::Patch { id, .. } | What::Delete { id } => Key::Nf(*id),
            What::Subscribe { id, .. }
            | What::PatchSubscription { id, .. }
            | What::Unsubscribe { id, .. } => Key::Subscription(id.clone()),
        };
        if let Some(line) = self.busy.get_mut(&key) {
            line.push_back(write);
            self.behind += 1;
            return;
        }
        if self.go(&key, write) {
            self.busy.insert(key, VecDeque::new());
        }
    }

    /// The first step of a change; whether it waits for the disk now.
    fn go(&mut self, key: &Key, write: Write) -> bool {
        let step = match write.what {
            What::Put { id, body, if_match } => self.put(id, body, if_match),
            What::Patch { id, body, if_match } => self.patch(id, body, if_match),
            What::Delete { id } => self.remove(id, ChangeKind::Deregistered),
            What::Subscribe { id, body, source, by } => self.subscribe(id, body, source, by),
            What::PatchSubscription { id, body, by } => self.patch_subscription(&id, body, &by),
            What::Unsubscribe { id, by } => self.unsubscribe(id, Some(&by)),
        };
        self.advance(key.clone(), step, Some((write.reply, write.held)))
    }

    /// A change that nobody asked for and nobody waits for; not made while another is under way.
    fn order(&mut self, key: Key, change: impl FnOnce(&mut Self) -> Result<Step, Problem>) {
        if self.is_busy(&key) {
            return;
        }
        let step = change(self);
        if self.advance(key.clone(), step, None) {
            self.busy.insert(key, VecDeque::new());
        }
    }

    fn is_busy(&self, key: &Key) -> bool {
        self.busy.contains_key(key)
    }

    fn advance(&mut self, key: Key, step: Result<Step, Problem>, reply: Reply) -> bool {
        match step.unwrap_or_else(|problem| Step::Done(Err(problem))) {
            Step::Done(outcome) => {
                answer(reply, outcome);
                false
            }
            Step::Prepare { bytes, work } => {
                self.preparing.push(key, reply, bytes, work);
                true
            }
            Step::Commit(receipt, effect) => {
                let commit = Commit { key, effect, reply };
                self.commits.push(InFlight {
                    receipt,
                    commit: Some(commit),
                });
                true
            }
        }
    }

    /// A change is durable, or cannot be.
    fn committed(&mut self, outcome: Result<(), store::Error>, commit: Commit) {
        let Commit { key, effect, reply } = commit;
        let outcome = match (outcome, effect) {
            (Ok(()), Effect::Profile(effect)) => Ok(self.profile_kept(effect)),
            (Ok(()), Effect::Subscription(effect)) => Ok(self.subscription_kept(effect)),
            (Err(error), Effect::Profile(effect)) => {
                self.profile_unkept(&effect);
                Err(store_failed(error))
            }
            (Err(error), Effect::Subscription(effect)) => {
                self.subscription_unkept(&effect);
                Err(store_failed(error))
            }
        };
        answer(reply, outcome);
        self.next_of(key);
    }

    /// The work for a change is done; it goes on.
    fn prepared(&mut self, prepared: Prepared) {
        let Prepared { key, reply, next } = prepared;
        let step = match next {
            Some(next) => next(self),
            None => Err(Problem::new(Cause::SystemFailure).detail("the change could not be prepared")),
        };
        if !self.advance(key.clone(), step, reply) {
            self.next_of(key);
        }
    }

    /// A change has come to its end; who waits behind it goes on.
    fn next_of(&mut self, key: Key) {
        let mut line = self.busy.remove(&key).unwrap_or_default();
        while let Some(write) = line.pop_front() {
            self.behind -= 1;
            if self.go(&key, write) {
                self.busy.insert(key, line);
                return;
            }
        }
    }
}

fn answer(reply: Reply, outcome: Result<Done, Problem>) {
    if let Some((reply, _held)) = reply {
        // Who asked may have gone; what was done is done.
        let _ = reply.send(outcome);
    }
}
