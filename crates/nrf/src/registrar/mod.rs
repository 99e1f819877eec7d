//! The writer: one task that changes the registry and the subscriptions.
//!
//! Steps of a change: other threads parse and check it; the store makes it durable (a crash before leaves nothing, a crash
//! after leaves the change); the writer publishes it to readers, notifies subscribers, and acknowledges it. So an
//! acknowledged change is durable, and a reader never sees a change that a crash could undo. Heart-beats with only load
//! and time stamp are not made durable: the next one follows within seconds.
//!
//! Changes of one instance or one subscription are serialised; changes of others proceed meanwhile, so that the store
//! commits many at once and a slow disk delays each change by one write, not by all pending ones.

mod elsewhere;
mod faults;
mod looks;
mod others;
mod owed;
mod prepare;
mod profiles;
mod sharing;
mod subscriptions;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use bytes::Bytes;
use function::{Shutdown, Tolerated};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use model::{NfInstanceId, NfProfile};
use registry::{ChangeKind, Entry, ProfileRecord, Snapshot, SubscriptionRecord};
use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use store::{Receipt, Scan, Store, Table, Version};
use telemetry::trace::Scope;
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::faults::store_failed;
pub(crate) use self::faults::{no_subscription, not_found};
pub(crate) use self::looks::{Followed, Look};
use self::others::OtherSets;
use self::owed::Owed;
pub(crate) use self::owed::OwedRecord;
use self::prepare::{Next, Prepared, Preparing, Refused, Rules, Work};
use self::profiles::ProfileEffect;
use self::sharing::Sharing;
use self::subscriptions::{SubscriptionEffect, parse_stored};
pub(crate) use self::waiting::{Held, Waiting};
use crate::cluster::{Cluster, Drift, Key, micros};
use crate::config::Config;
use crate::events::Counters;
use crate::growth::Retrieved;
use crate::live::{Effective, Follower};
use crate::notify::Resync;
use crate::screening::Screening;
use crate::subscriptions::{Book, Shares, Subscription};

/// Limits of regular expressions for stored profiles.
const AMPLE: model::pattern::Limits = model::pattern::Limits {
    patterns: usize::MAX,
    bytes: usize::MAX,
};

/// A requested change.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) what: What,
    pub(crate) reply: oneshot::Sender<Result<Done, Problem>>,
    /// Its bytes among the pending ones.
    pub(crate) held: Held,
    /// The traced request that makes it.
    pub(crate) scope: Option<Scope>,
}

/// `If-Match` and `If-None-Match` of a request, all of their fields (RFC 9110 §5.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Preconditions {
    pub(crate) matches: Option<Box<str>>,
    pub(crate) none_match: Option<Box<str>>,
}

/// What is to change.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Read an NF instance that another NRF on the same database may have registered.
    Find { id: NfInstanceId },
    /// Register or replace.
    Put {
        id: NfInstanceId,
        body: Bytes,
        wanted: Preconditions,
    },
    /// Change by JSON Patch; heart-beats are patches as well.
    Patch {
        id: NfInstanceId,
        body: Bytes,
        wanted: Preconditions,
    },
    /// Deregister.
    Delete { id: NfInstanceId, wanted: Preconditions },
    /// Subscribe under a new id.
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
    /// Approximate bytes that it holds while it is pending.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put { body, .. }
            | Self::Patch { body, .. }
            | Self::Subscribe { body, .. }
            | Self::PatchSubscription { body, .. } => body.len(),
            Self::Find { .. } | Self::Delete { .. } | Self::Unsubscribe { .. } => 0,
        }
    }
}

/// What has changed.
#[derive(Debug)]
pub(crate) enum Done {
    Found(Arc<Entry>),
    Created(Arc<Entry>),
    Replaced(Arc<Entry>),
    /// A heart-beat whose answer needs no profile (204).
    HeartBeat,
    Removed,
    Subscribed(Arc<Subscription>),
    SubscriptionChanged(Arc<Subscription>),
}

/// How far a change has come.
enum Step {
    /// The change is done, or refused.
    Done(Result<Done, Problem>),
    /// Work on another thread, then the next step.
    Prepare { bytes: usize, work: Work },
    /// A read of the store, then the next step.
    Load(Pin<Box<dyn Future<Output = Next>>>),
    /// The commit is in flight; the effect follows it.
    Commit(Receipt, Effect),
}

/// What a change does once it is durable.
#[derive(Debug)]
enum Effect {
    Profile(ProfileEffect),
    Subscription(SubscriptionEffect),
}

impl Effect {
    /// Whether the record is removed.
    fn removes(&self) -> bool {
        match self {
            Self::Profile(effect) => effect.removes(),
            Self::Subscription(effect) => matches!(effect, SubscriptionEffect::Ended(_)),
        }
    }
}

/// The pending request; `None` for a change that the registrar makes itself.
type Reply = Option<Asked>;

/// A request whose outcome a worker waits for.
struct Asked {
    reply: oneshot::Sender<Result<Done, Problem>>,
    /// Its bytes among the pending ones.
    _held: Held,
    scope: Option<Scope>,
    /// The change, as long as it may be made again after a change of the same record by another NRF.
    again: Option<What>,
    attempts: u32,
}

/// A change whose commit is in flight.
struct Commit {
    key: Key,
    effect: Effect,
    reply: Reply,
}

/// Completes with its change when the commit ends.
struct InFlight {
    receipt: Receipt,
    commit: Option<Commit>,
}

impl Future for InFlight {
    type Output = (Result<Version, store::Error>, Option<Commit>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.receipt).poll(cx));
        Poll::Ready((outcome, self.commit.take()))
    }
}

/// Inputs of the writer.
pub(crate) struct Inputs {
    pub(crate) writes: mpsc::Receiver<Write>,
    pub(crate) retrieved: mpsc::Receiver<Retrieved>,
    pub(crate) resyncs: mpsc::Receiver<Resync>,
    pub(crate) drifts: mpsc::Receiver<Drift>,
    pub(crate) looks: mpsc::Receiver<Look>,
}

/// The writer.
pub(crate) struct Registrar {
    config: Arc<Config>,
    screening: Arc<Screening>,
    published: Arc<ArcSwap<Snapshot>>,
    book: Book,
    last_heard: AHashMap<NfInstanceId, Instant>,
    /// When the last audit was.
    audited: Option<Instant>,
    /// NFs suspended for missed heart-beats, and since when.
    suspended: BTreeMap<NfInstanceId, Instant>,
    /// What other sets have registered.
    others: OtherSets,
    store: Store,
    profiles: Table<ProfileRecord>,
    subscriptions: Table<SubscriptionRecord>,
    notify: notifier::Queue,
    counters: Arc<Counters>,
    root: String,
    /// Keys with a change in progress, and the changes queued behind it.
    busy: AHashMap<Key, VecDeque<Write>>,
    /// Number of queued changes.
    behind: usize,
    preparing: Preparing,
    commits: FuturesUnordered<InFlight>,
    /// New instances and subscriptions whose commits are in flight.
    registering: usize,
    subscribing: usize,
    /// Subscriptions per owner, including those whose commits are in flight.
    shares: Shares,
    /// Counts members that counted as absent.
    tolerated: Tolerated,
    /// Changes that subscribers may have to be notified of at the next start; none in a cluster.
    owed: Option<Owed>,
    /// What is shared with other NRFs on the same database.
    sharing: Option<Sharing>,
}

impl Registrar {
    /// Loads the store. Profiles get a whole heart-beat interval of grace, because no NF could send heart-beats while
    /// the NRF was down.
    pub(crate) async fn open(
        config: Arc<Config>,
        screening: Arc<Screening>,
        store: Store,
        published: Arc<ArcSwap<Snapshot>>,
        notify: notifier::Queue,
        (counters, tolerated): (Arc<Counters>, Tolerated),
        cluster: Option<&Cluster>,
    ) -> Result<Self, store::Error> {
        let root = config.root();
        let (profiles, subscriptions) = (store.table()?, store.table()?);
        let owed = match cluster {
            Some(_) => None,
            None => Some(Owed::new(store.table()?)),
        };
        let mut registrar = Self {
            config,
            screening,
            published,
            book: Book::default(),
            last_heard: AHashMap::new(),
            audited: None,
            suspended: BTreeMap::new(),
            others: OtherSets::default(),
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
            tolerated,
            owed,
            sharing: cluster.map(Sharing::new),
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
                self.read(Key::Nf(NfInstanceId(record.id)), record.version);
                let timer = timer_of(&self.config);
                // A stored profile stays valid, even if the settings now allow fewer expressions.
                match Entry::parse_within(&record.document, AMPLE, timer) {
                    Ok(entry) => {
                        self.last_heard.insert(entry.id, now);
                        let entry = match record.suspended {
                            true => {
                                let since = instant_of(record.version, now);
                                self.suspended.insert(entry.id, since);
                                entry.suspended()
                            }
                            false => entry,
                        };
                        snapshot = snapshot.with(Arc::new(entry));
                    }
                    // It was valid when this NRF wrote it; one invalid record must not prevent the start.
                    Err(fault) => {
                        tracing::error!(id = %record.id, %fault, "stored profile is invalid; ignored");
                    }
                }
            }
            next = page.next;
        }
        self.published.store(Arc::new(snapshot));
        let mut next = Some(Scan::all(256));
        while let Some(scan) = next {
            let page = self.subscriptions.scan(&scan).await?;
            for record in &page.records {
                self.read(Key::Subscription(record.id.clone()), record.version);
                match parse_stored(&record.id, &record.document) {
                    Some(subscription) => {
                        self.shares.add(&subscription.owner());
                        self.book.put(Arc::new(subscription));
                    }
                    None => tracing::error!(id = record.id, "stored subscription is invalid; ignored"),
                }
            }
            next = page.next;
        }
        self.pay_owed().await
    }

    /// Runs until all workers have stopped and their changes are done.
    pub(crate) async fn run(mut self, inputs: Inputs, mut live: Follower, drained: Shutdown) {
        let Inputs {
            mut writes,
            mut retrieved,
            mut resyncs,
            mut drifts,
            mut looks,
        } = inputs;
        let mut audit = tokio::time::interval(self.config.heart_beat.audit_interval.duration());
        audit.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let most = self.config.max_waiting_writes.max(1);
        let (mut open, mut ending) = (true, false);
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
                () = drained.fired(), if !ending => {
                    ending = true;
                    writes.close();
                }
                Some(state) = retrieved.recv() => self.other_set(state),
                Some(resync) = resyncs.recv() => self.resync(resync),
                Some(drift) = drifts.recv(), if open => self.drifted(drift),
                Some(look) = looks.recv() => self.show(look),
                _ = audit.tick(), if open => {
                    self.follow(live.load());
                    self.audit(Instant::now(), OffsetDateTime::now_utc());
                    self.settle_owed();
                }
            }
        }
        // The NRF leaves its cluster, if it is in one, and drops its end.
        drifts.close();
        while drifts.recv().await.is_some() {}
        self.store.clone().close().await;
    }

    /// Takes changed settings.
    fn follow(&mut self, live: &Effective) {
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
            tolerated: self.tolerated.clone(),
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
            What::Find { id } | What::Put { id, .. } | What::Patch { id, .. } | What::Delete { id, .. } => {
                Key::Nf(*id)
            }
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
        let again = self.sharing.is_some().then(|| write.what.clone());
        let step = if self.may_be_elsewhere(key, &write.what) {
            Ok(self.refresh(key.clone(), Some(write.what)))
        } else {
            self.first_step(write.what)
        };
        let asked = Asked {
            reply: write.reply,
            _held: write.held,
            scope: write.scope,
            again,
            attempts: 0,
        };
        self.advance(key.clone(), step, Some(asked))
    }

    fn first_step(&mut self, what: What) -> Result<Step, Problem> {
        match what {
            What::Find { id } => self.find(id),
            What::Put { id, body, wanted } => self.put(id, body, wanted),
            What::Patch { id, body, wanted } => self.patch(id, body, wanted),
            What::Delete { id, wanted } => self.remove(id, ChangeKind::Deregistered, &wanted),
            What::Subscribe { id, body, source, by } => self.subscribe(id, body, source, by),
            What::PatchSubscription { id, body, by } => self.patch_subscription(&id, body, &by),
            What::Unsubscribe { id, by } => self.unsubscribe(id, Some(&by)),
        }
    }

    /// Makes a change without a pending request (audit, replication), unless another change of the key is in progress.
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
            Step::Load(read) => {
                self.preparing.load(key, reply, read);
                true
            }
            Step::Commit(receipt, effect) => {
                let scope = reply.as_ref().and_then(|asked| asked.scope);
                let commit = Commit { key, effect, reply };
                self.commits.push(InFlight {
                    receipt: receipt.within(scope),
                    commit: Some(commit),
                });
                true
            }
        }
    }

    /// A commit has ended, successfully or not.
    fn committed(&mut self, outcome: Result<Version, store::Error>, commit: Commit) {
        let Commit {
            key,
            effect,
            mut reply,
        } = commit;
        let error = match outcome {
            Ok(version) => {
                self.kept(&key, &effect, version);
                let done = match effect {
                    Effect::Profile(effect) => self.profile_kept(effect, version),
                    Effect::Subscription(effect) => self.subscription_kept(effect),
                };
                answer(reply, Ok(done));
                return self.next_of(key);
            }
            Err(error) => error,
        };
        let conflict = self.sharing.is_some() && matches!(error, store::Error::Conflict { .. });
        match effect {
            // A suspension or a move to another set takes effect even while the store cannot write.
            Effect::Profile(effect) if effect.stands() && !conflict => {
                self.profile_kept(effect, Version::at(micros()));
                return self.next_of(key);
            }
            Effect::Profile(effect) => self.profile_unkept(&effect),
            Effect::Subscription(effect) => self.subscription_unkept(&effect),
        }
        if conflict {
            let step = self.after_conflict(key.clone(), reply.as_mut());
            if self.advance(key.clone(), Ok(step), reply) {
                return;
            }
        } else {
            answer(reply, Err(store_failed(error)));
        }
        self.next_of(key);
    }

    /// The work for a change is done; it goes on.
    fn prepared(&mut self, prepared: Prepared) {
        let Prepared { key, reply, next } = prepared;
        let step = match next {
            Some(next) => next(self),
            None => Err(Problem::new(Cause::SystemFailure).detail("the preparation of the change failed")),
        };
        if !self.advance(key.clone(), step, reply) {
            self.next_of(key.clone());
        }
        self.refreshed(&key);
    }

    /// A change has ended; starts the next queued change of the key.
    fn next_of(&mut self, key: Key) {
        let mut line = self.busy.remove(&key).unwrap_or_default();
        while let Some(write) = line.pop_front() {
            self.behind -= 1;
            if self.go(&key, write) {
                self.busy.insert(key, line);
                return;
            }
        }
        if let Key::Nf(id) = key {
            self.settle(id);
        }
    }
}

/// The moment, on the clock that does not jump, at which a record was written.
fn instant_of(version: Version, now: Instant) -> Instant {
    let passed = micros().saturating_sub(version.micros());
    now.checked_sub(Duration::from_micros(passed)).unwrap_or(now)
}

/// The timer of a stored profile: what was assigned holds until a heart-beat is answered with another one.
fn timer_of(config: &Arc<Config>) -> impl FnOnce(&NfProfile) -> u32 + Send + 'static {
    let config = config.clone();
    move |profile| {
        let assigned = profile.heart_beat_timer;
        assigned.unwrap_or_else(|| config.heart_beat.assign(None))
    }
}

fn answer(reply: Reply, outcome: Result<Done, Problem>) {
    if let Some(asked) = reply {
        // The client may have disconnected; the change stays.
        let _ = asked.reply.send(outcome);
    }
}
