//! The writer: one task that changes the registry and the subscriptions, one change after the other.
//!
//! The order of a change, and what a crash leaves at each moment: it is checked; made durable (a crash before
//! leaves nothing, a crash after leaves the change); published to readers; told to subscribers; acknowledged.
//! So an acknowledged change is kept, and a reader never sees one that a crash could take back. Heart-beats
//! that bring only load and time are not made durable: the next one comes in seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use bytes::Bytes;
use model::{NfInstanceId, NfProfile, NfStatus};
use sbi::problem::{Cause, Problem};
use store::{Batch, Condition, Scan, Store, Table};
use time::OffsetDateTime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::record::{ProfileRecord, SubscriptionRecord};
use super::{ChangeKind, Entry, ProfileChange, ProfileFault, Snapshot, text};
use crate::config::Config;
use crate::events::{Counters, Event};
use crate::screening::Screening;
use crate::subscriptions::{Book, Notification, Subscription, Telling};

/// A change that somebody wants.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) what: What,
    pub(crate) reply: oneshot::Sender<Result<Done, Problem>>,
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
    /// Subscribe.
    Subscribe { body: Bytes },
    /// Change a subscription.
    PatchSubscription { id: String, body: Bytes },
    /// Unsubscribe.
    Unsubscribe { id: String },
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

/// The writer.
pub(crate) struct Registrar {
    config: Arc<Config>,
    screening: Screening,
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
}

impl Registrar {
    /// Reads what the store has. Profiles get a whole heart-beat interval of grace: nobody could beat while
    /// the NRF was away.
    pub(crate) async fn open(
        config: Arc<Config>,
        screening: Screening,
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
                match Entry::parse(&record.document, timer) {
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
                    Some(subscription) => self.book.put(Arc::new(subscription)),
                    None => tracing::error!(id = record.id, "a stored subscription cannot be read"),
                }
            }
            next = page.next;
        }
        Ok(())
    }

    /// Works until every sender of writes is gone.
    pub(crate) async fn run(mut self, mut writes: mpsc::Receiver<Write>) {
        let mut audit = tokio::time::interval(self.config.heart_beat.audit_interval.duration());
        audit.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                write = writes.recv() => match write {
                    Some(write) => {
                        let outcome = self.write(write.what).await;
                        // Who asked may have gone; what was done is done.
                        let _ = write.reply.send(outcome);
                    }
                    None => break,
                },
                _ = audit.tick() => self.audit(Instant::now(), OffsetDateTime::now_utc()).await,
            }
        }
        self.store.clone().close().await;
    }

    async fn write(&mut self, what: What) -> Result<Done, Problem> {
        match what {
            What::Put { id, body, if_match } => self.put(id, &body, if_match.as_deref()).await,
            What::Patch { id, body, if_match } => self.patch(id, &body, if_match.as_deref()).await,
            What::Delete { id } => self
                .remove(id, ChangeKind::Deregistered)
                .await
                .map(|()| Done::Removed),
            What::Subscribe { body } => self.subscribe(&body).await,
            What::PatchSubscription { id, body } => self.patch_subscription(&id, &body).await,
            What::Unsubscribe { id } => self.unsubscribe(&id).await.map(|()| Done::Removed),
        }
    }

    async fn put(&mut self, id: NfInstanceId, body: &[u8], if_match: Option<&str>) -> Result<Done, Problem> {
        let before = self.published.load().get(&id).cloned();
        check_match(before.as_ref(), if_match)?;
        if before.is_none() && self.published.load().len() >= self.config.max_profiles {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("as many NFs are registered as this NRF takes (maxProfiles)"));
        }
        let entry = self.parse(body)?;
        if entry.id != id {
            return Err(Problem::new(Cause::MandatoryIeIncorrect)
                .detail("the profile is of another instance than the URI")
                .invalid_param("/nfInstanceId", format!("expected {id}")));
        }
        let entry = Arc::new(entry);
        self.keep(&entry).await?;
        self.heard(&entry);
        let kind = if before.is_some() {
            ChangeKind::Updated
        } else {
            ChangeKind::Registered
        };
        self.counters.count(if before.is_some() {
            Event::Updated
        } else {
            Event::Registered
        });
        let created = before.is_none();
        self.publish(kind, before, Some(entry.clone()));
        Ok(if created {
            Done::Created(entry)
        } else {
            Done::Replaced(entry)
        })
    }

    async fn patch(
        &mut self,
        id: NfInstanceId,
        body: &[u8],
        if_match: Option<&str>,
    ) -> Result<Done, Problem> {
        let before = self
            .published
            .load()
            .get(&id)
            .cloned()
            .ok_or_else(|| not_found(id))?;
        check_match(Some(&before), if_match)?;
        let operations: Vec<text::Operation<'_>> = serde_json::from_slice(body).map_err(|error| {
            Problem::new(Cause::InvalidMsgFormat)
                .detail(format!("expected a JSON Patch: {error}"))
                .invalid_param("", error.to_string())
        })?;
        if operations.is_empty() {
            return Err(Problem::new(Cause::InvalidMsgFormat).detail("expected at least one operation"));
        }
        if let Some(after) = heart_beat(&before, &operations) {
            let after = Arc::new(after);
            self.heard(&after);
            self.counters.count(Event::HeartBeat);
            let kind = match before.status {
                NfStatus::Suspended => ChangeKind::Resumed,
                _ => ChangeKind::HeartBeat,
            };
            // A status survives a restart, a load need not.
            if before.status != after.status {
                self.keep(&after).await?;
            }
            if after.fingerprint() != before.fingerprint() {
                self.publish(kind, Some(before), Some(after.clone()));
            }
            return Ok(Done::HeartBeat(after));
        }
        // The text is UTF-8: it was parsed as JSON.
        let document = String::from_utf8_lossy(&before.document()).into_owned();
        let patched = text::apply(&document, &operations).map_err(|fault| {
            let cause = if fault.conflict {
                Cause::MandatoryIeIncorrect
            } else {
                Cause::InvalidMsgFormat
            };
            let place = format!("/{}/{}", fault.index, fault.member);
            Problem::new(cause)
                .detail(fault.to_string())
                .invalid_param(place, fault.expected)
        })?;
        let entry = self.parse(patched.as_bytes())?;
        if entry.id != id || entry.nf_type() != before.nf_type() {
            return Err(Problem::new(Cause::ModificationNotAllowed)
                .detail("nfInstanceId and nfType of a registered NF cannot be changed"));
        }
        let entry = Arc::new(entry);
        self.keep(&entry).await?;
        self.heard(&entry);
        self.counters.count(Event::Updated);
        self.publish(ChangeKind::Updated, Some(before), Some(entry.clone()));
        Ok(Done::Replaced(entry))
    }

    fn parse(&self, body: &[u8]) -> Result<Entry, Problem> {
        let timer = |profile: &NfProfile| self.config.heart_beat.assign(profile.heart_beat_timer);
        let entry = Entry::parse(body, timer).map_err(problem_of)?;
        if let Err((place, reason)) = self.screening.check(&entry.profile) {
            self.counters.count(Event::ScreenedOut);
            let problem = Problem::new(Cause::Forbidden);
            return Err(problem
                .detail(format!("screened out: {reason}"))
                .invalid_param(place, reason));
        }
        Ok(entry)
    }

    async fn remove(&mut self, id: NfInstanceId, kind: ChangeKind) -> Result<(), Problem> {
        let before = self
            .published
            .load()
            .get(&id)
            .cloned()
            .ok_or_else(|| not_found(id))?;
        let mut batch = Batch::default();
        batch.delete(&self.profiles, id.0.as_bytes(), Condition::Always);
        self.store.commit(batch).await.map_err(store_failed)?;
        self.last_heard.remove(&id);
        self.suspended.remove(&id);
        self.counters.count(match kind {
            ChangeKind::Expired => Event::Expired,
            _ => Event::Deregistered,
        });
        self.publish(kind, Some(before), None);
        Ok(())
    }

    async fn keep(&self, entry: &Entry) -> Result<(), Problem> {
        let mut batch = Batch::default();
        let record = ProfileRecord {
            id: entry.id.0,
            document: entry.document(),
        };
        batch.put(&self.profiles, &record, Condition::Always);
        self.store.commit(batch).await.map(drop).map_err(store_failed)
    }

    fn heard(&mut self, entry: &Entry) {
        self.last_heard.insert(entry.id, Instant::now());
        self.suspended.remove(&entry.id);
    }

    /// Shows a change to readers, then tells subscribers.
    fn publish(&mut self, kind: ChangeKind, before: Option<Arc<Entry>>, after: Option<Arc<Entry>>) {
        let current = self.published.load_full();
        let next = match (&after, &before) {
            (Some(entry), _) => current.with(entry.clone()),
            (None, Some(entry)) => current.without(&entry.id),
            (None, None) => return,
        };
        self.published.store(Arc::new(next));
        let change = ProfileChange { kind, before, after };
        let settings = &self.config.subscriptions;
        let telling = Telling {
            load_threshold: settings.load_threshold,
            as_changes: settings.notify_changes,
        };
        for notification in self
            .book
            .tell(&change, telling, &self.root, OffsetDateTime::now_utc())
        {
            if self.notify.try_send(notification).is_err() {
                self.counters.count(Event::NotificationDropped);
            }
        }
    }

    /// Suspends who has not been heard of, removes who has been suspended for too long, ends subscriptions.
    pub(crate) async fn audit(&mut self, now: Instant, wall: OffsetDateTime) {
        let snapshot = self.published.load_full();
        let settings = self.config.heart_beat.clone();
        let silent = |entry: &Entry, heard: Instant| {
            let allowed = u64::from(entry.heart_beat_timer) * u64::from(settings.missed.max(1));
            now.saturating_duration_since(heard) > Duration::from_secs(allowed)
        };
        let overdue: Vec<Arc<Entry>> = self
            .last_heard
            .iter()
            .filter(|(id, _)| !self.suspended.contains_key(id))
            .filter_map(|(id, heard)| snapshot.get(id).filter(|entry| silent(entry, *heard)).cloned())
            .collect();
        for before in overdue {
            tracing::warn!(id = %before.id, nf_type = %before.nf_type(), "heart-beats missed, suspended");
            self.suspended.insert(before.id, now);
            self.counters.count(Event::Suspended);
            let stamp = before.load_time_stamp.clone();
            let after = Arc::new(before.moved(NfStatus::Suspended, before.load, stamp));
            self.publish(ChangeKind::Suspended, Some(before), Some(after));
        }
        let remove_after = settings.remove_after.duration();
        let gone = self
            .suspended
            .iter()
            .filter(|(_, since)| now.saturating_duration_since(**since) > remove_after);
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Err(problem) = self.remove(id, ChangeKind::Expired).await {
                tracing::warn!(%id, status = %problem.status(), "a silent NF could not be removed");
            }
        }
        for id in self.book.expired(wall) {
            // It has ended whether or not the store can forget it now.
            let _ = self.unsubscribe(&id).await;
        }
    }

    async fn subscribe(&mut self, body: &[u8]) -> Result<Done, Problem> {
        if self.book.len() >= self.config.subscriptions.max {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("as many subscriptions exist as this NRF takes (subscriptions.max)"));
        }
        let document: serde_json::Value = sbi::json::parse_slice(body)?;
        let wanted = validity_of(&document)?;
        let until = self.bounded(wanted);
        let id = uuid::Uuid::new_v4().to_string();
        let subscription = Arc::new(Subscription::parse(document, &id, until)?);
        self.keep_subscription(&subscription).await?;
        self.book.put(subscription.clone());
        self.counters.count(Event::Subscribed);
        Ok(Done::Subscribed(subscription))
    }

    async fn patch_subscription(&mut self, id: &str, body: &[u8]) -> Result<Done, Problem> {
        let before = self.book.get(id).cloned().ok_or_else(|| no_subscription(id))?;
        let mut document = serde_json::Value::Object(before.document.clone());
        sbi::json::apply_patch(&mut document, body)?;
        let until = self.bounded(validity_of(&document)?);
        let subscription = Arc::new(Subscription::parse(document, id, until)?);
        self.keep_subscription(&subscription).await?;
        self.book.put(subscription.clone());
        Ok(Done::SubscriptionChanged(subscription))
    }

    async fn unsubscribe(&mut self, id: &str) -> Result<(), Problem> {
        if self.book.get(id).is_none() {
            return Err(no_subscription(id));
        }
        let mut batch = Batch::default();
        batch.delete(&self.subscriptions, id.as_bytes(), Condition::Always);
        self.store.commit(batch).await.map_err(store_failed)?;
        self.book.remove(id);
        self.counters.count(Event::Unsubscribed);
        Ok(())
    }

    async fn keep_subscription(&self, subscription: &Subscription) -> Result<(), Problem> {
        let document = serde_json::to_vec(&subscription.document)
            .unwrap_or_default()
            .into();
        let record = SubscriptionRecord {
            id: subscription.id.clone(),
            document,
        };
        let mut batch = Batch::default();
        batch.put(&self.subscriptions, &record, Condition::Always);
        self.store.commit(batch).await.map(drop).map_err(store_failed)
    }

    fn bounded(&self, wanted: Option<OffsetDateTime>) -> OffsetDateTime {
        let now = OffsetDateTime::now_utc();
        let longest = now + self.config.subscriptions.max_validity.duration();
        // A time that has passed is no wish: the NRF assigns one of its own (TS 29.510 §5.2.2.5.2).
        wanted
            .filter(|wanted| *wanted > now)
            .map_or(longest, |wanted| wanted.min(longest))
    }
}

fn parse_stored(id: &str, document: &[u8]) -> Option<Subscription> {
    let document: serde_json::Value = serde_json::from_slice(document).ok()?;
    let until = validity_of(&document).ok()??;
    Subscription::parse(document, id, until).ok()
}

fn validity_of(document: &serde_json::Value) -> Result<Option<OffsetDateTime>, Problem> {
    let Some(value) = document.get("validityTime").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let parsed = value
        .as_str()
        .and_then(|text| OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok());
    parsed.map(Some).ok_or_else(|| {
        Problem::new(Cause::OptionalIeIncorrect)
            .invalid_param("/validityTime", "expected a date and time as in RFC 3339")
    })
}

/// A patch of nothing but status, load and time stamp: a heart-beat (TS 29.510 §5.2.2.3.2).
fn heart_beat(before: &Entry, operations: &[text::Operation<'_>]) -> Option<Entry> {
    let mut status = before.status.clone();
    if status == NfStatus::Suspended {
        // A heart-beat brings a suspended NF back even when it says no status.
        status = before.profile.nf_status.clone();
    }
    let (mut load, mut stamp) = (before.load, before.load_time_stamp.clone());
    for operation in operations {
        if !matches!(operation.op.as_ref(), "replace" | "add") {
            return None;
        }
        let value = operation.value()?;
        match operation.path.as_ref() {
            "/nfStatus" => {
                let text: String = serde_json::from_str(value).ok()?;
                status = NfStatus::from(text);
            }
            "/load" => {
                load = Some(
                    serde_json::from_str::<u8>(value)
                        .ok()
                        .filter(|load| *load <= 100)?,
                );
            }
            "/loadTimeStamp" => {
                let text: String = serde_json::from_str(value).ok()?;
                stamp = Some(text.into());
            }
            _ => return None,
        }
    }
    Some(before.moved(status, load, stamp))
}

fn check_match(before: Option<&Arc<Entry>>, if_match: Option<&str>) -> Result<(), Problem> {
    let Some(wanted) = if_match else { return Ok(()) };
    let etag = before.map(|entry| entry.etag());
    let holds = etag.is_some_and(|etag| {
        wanted
            .split(',')
            .map(str::trim)
            .any(|one| one == "*" || one == etag)
    });
    if holds {
        return Ok(());
    }
    Err(Problem::new(Cause::PreconditionFailed).detail("the profile is not the one that If-Match names"))
}

/// The problem that a profile's faults are.
fn problem_of(fault: ProfileFault) -> Problem {
    match fault {
        ProfileFault::Syntax { .. } => Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("the body is not JSON: {fault}"))
            .invalid_param("", fault.to_string()),
        ProfileFault::Shape(faults) => {
            let missing = faults.iter().any(|fault| fault.missing);
            let cause = if missing {
                Cause::MandatoryIeMissing
            } else {
                Cause::MandatoryIeIncorrect
            };
            let problem = Problem::new(cause).detail("the NF profile cannot be used");
            // A page of faults helps; ten pages hide the first.
            let listed = faults.into_iter().take(32);
            listed.fold(problem, |problem, fault| {
                problem.invalid_param(fault.pointer, fault.expected.into_owned())
            })
        }
    }
}

pub(crate) fn not_found(id: NfInstanceId) -> Problem {
    Problem::new(Cause::ResourceNotFound).detail(format!("no NF instance {id} is registered"))
}

fn no_subscription(id: &str) -> Problem {
    Problem::new(Cause::SubscriptionNotFound).detail(format!("there is no subscription {id}"))
}

fn store_failed(error: store::Error) -> Problem {
    tracing::error!(%error, "a change could not be made durable");
    match error {
        store::Error::Overflow { .. } => Problem::new(Cause::NfCongestion).detail("too many changes wait"),
        _ => Problem::new(Cause::InsufficientResources).detail("the change could not be made durable"),
    }
}
