//! Changes of profiles: what is checked before, and what becomes of them once they are durable.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::shape::rules;
use model::{NfInstanceId, NfStatus};
use sbi::json::patch;
use sbi::problem::{Cause, Problem};
use store::{Batch, Condition, Receipt};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::faults::{check_match, not_found};
use super::{Done, Effect, Key, Registrar, Step};
use crate::events::Event;
use crate::growth::Retrieved;
use crate::registry::{ChangeKind, Entry, ProfileChange, ProfileRecord};
use crate::subscriptions::Telling;

/// Longest patch that is looked at as a heart-beat, on the writer itself.
const HEART_BEAT_BYTES: usize = 4_096;
/// Most operations of a heart-beat.
const HEART_BEAT_OPERATIONS: usize = 16;

/// A change of a profile that is on its way to the disk.
#[derive(Debug)]
pub(super) struct ProfileEffect {
    kind: ChangeKind,
    before: Option<Arc<Entry>>,
    after: Option<Arc<Entry>>,
    event: Event,
}

impl Registrar {
    pub(super) fn put(
        &mut self,
        id: NfInstanceId,
        body: Bytes,
        if_match: Option<String>,
    ) -> Result<Step, Problem> {
        self.may_put(id, if_match.as_deref())?;
        let rules = self.rules();
        Ok(Step::prepare(
            body.len(),
            move || rules.profile(&body),
            move |registrar, entry| {
                let entry = entry.map_err(|refused| registrar.refuse(refused))?;
                // Others may have registered meanwhile.
                let before = registrar.may_put(id, if_match.as_deref())?;
                registrar.put_entry(id, before, entry)
            },
        ))
    }

    /// Whether an instance may register; answers what is registered of it.
    fn may_put(&self, id: NfInstanceId, if_match: Option<&str>) -> Result<Option<Arc<Entry>>, Problem> {
        // One that was registered with another set registers anew.
        let known = self.published.load().get(&id).cloned();
        let before = known.filter(|entry| entry.is_ours());
        check_match(before.as_ref(), if_match)?;
        if before.is_none() && self.published.load().len() + self.registering >= self.config.max_profiles {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("as many NFs are registered as this NRF takes (maxProfiles)"));
        }
        Ok(before)
    }

    fn put_entry(
        &mut self,
        id: NfInstanceId,
        before: Option<Arc<Entry>>,
        entry: Entry,
    ) -> Result<Step, Problem> {
        if entry.id != id {
            return Err(Problem::new(Cause::MandatoryIeIncorrect)
                .detail("the profile is of another instance than the URI")
                .invalid_param("/nfInstanceId", format!("expected {id}")));
        }
        let (kind, event) = match before {
            Some(_) => (ChangeKind::Updated, Event::Updated),
            None => (ChangeKind::Registered, Event::Registered),
        };
        self.registering += usize::from(before.is_none());
        Ok(self.keep(kind, event, before, entry))
    }

    pub(super) fn patch(
        &mut self,
        id: NfInstanceId,
        body: Bytes,
        if_match: Option<String>,
    ) -> Result<Step, Problem> {
        let known = self.published.load().get(&id).cloned();
        let before = known
            .filter(|entry| entry.is_ours())
            .ok_or_else(|| not_found(id))?;
        check_match(Some(&before), if_match.as_deref())?;
        if body.len() <= HEART_BEAT_BYTES
            && let Ok(operations) = patch::operations(&body, HEART_BEAT_OPERATIONS)
            && let Some(after) = heart_beat(&before, &operations)
        {
            return Ok(self.beat(before, after));
        }
        let rules = self.rules();
        let seen = before.clone();
        Ok(Step::prepare(
            body.len() + before.size(),
            move || rules.patched(&seen, &body),
            move |registrar, entry| {
                let entry = entry.map_err(|refused| registrar.refuse(refused))?;
                // No other change of this instance has been made meanwhile: they wait behind this one.
                Ok(registrar.keep(ChangeKind::Updated, Event::Updated, Some(before), entry))
            },
        ))
    }

    /// A heart-beat: only a changed status is worth the disk, a load need not survive a restart.
    fn beat(&mut self, before: Arc<Entry>, after: Entry) -> Step {
        let kind = match before.status {
            NfStatus::Suspended => ChangeKind::Resumed,
            _ => ChangeKind::HeartBeat,
        };
        if before.status != after.status {
            return self.keep(kind, Event::HeartBeat, Some(before), after);
        }
        let after = Arc::new(after);
        self.heard(&after);
        self.counters.count(Event::HeartBeat);
        if after.fingerprint() != before.fingerprint() {
            self.publish(kind, Some(before), Some(after.clone()));
        }
        Step::Done(Ok(Done::HeartBeat(after)))
    }

    pub(super) fn remove(&mut self, id: NfInstanceId, kind: ChangeKind) -> Result<Step, Problem> {
        let known = self.published.load().get(&id).cloned();
        let before = known
            .filter(|entry| entry.is_ours())
            .ok_or_else(|| not_found(id))?;
        let event = match kind {
            ChangeKind::Expired => Event::Expired,
            _ => Event::Deregistered,
        };
        let mut batch = Batch::default();
        batch.delete(&self.profiles, id.0.as_bytes(), Condition::Always);
        let effect = ProfileEffect {
            kind,
            before: Some(before),
            after: None,
            event,
        };
        Ok(Step::Commit(self.store.commit(batch), Effect::Profile(effect)))
    }

    fn keep(&self, kind: ChangeKind, event: Event, before: Option<Arc<Entry>>, after: Entry) -> Step {
        let record = ProfileRecord {
            id: after.id.0,
            document: after.document(),
        };
        let mut batch = Batch::default();
        batch.put(&self.profiles, &record, Condition::Always);
        let receipt: Receipt = self.store.commit(batch);
        let after = Some(Arc::new(after));
        Step::Commit(
            receipt,
            Effect::Profile(ProfileEffect {
                kind,
                before,
                after,
                event,
            }),
        )
    }

    /// A change could not be made durable: it has not happened.
    pub(super) fn profile_unkept(&mut self, effect: &ProfileEffect) {
        self.registering -= usize::from(matches!(effect.kind, ChangeKind::Registered));
    }

    /// A change is durable.
    pub(super) fn profile_kept(&mut self, effect: ProfileEffect) -> Done {
        self.profile_unkept(&effect);
        let ProfileEffect {
            kind,
            before,
            after,
            event,
        } = effect;
        self.counters.count(event);
        let done = match (&after, &before, event) {
            (Some(entry), _, Event::HeartBeat) => Done::HeartBeat(entry.clone()),
            (Some(entry), None, _) => Done::Created(entry.clone()),
            (Some(entry), Some(_), _) => Done::Replaced(entry.clone()),
            (None, ..) => Done::Removed,
        };
        match (&after, &before) {
            (Some(entry), _) => self.heard(entry),
            (None, Some(entry)) => {
                self.last_heard.remove(&entry.id);
                self.suspended.remove(&entry.id);
                self.end_subscriptions_of(entry.id);
            }
            (None, None) => {}
        }
        self.publish(kind, before, after);
        done
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

    /// Takes what is registered with another set. What is registered here, or with a third set, stays.
    pub(super) fn other_set(&mut self, state: Retrieved) {
        let snapshot = self.published.load_full();
        let mut named = ahash::AHashSet::with_capacity(state.entries.len());
        for entry in state.entries {
            named.insert(entry.id);
            let before = snapshot.get(&entry.id).cloned();
            let theirs = before
                .as_ref()
                .is_none_or(|known| known.set.as_ref() == Some(&state.set));
            let same = before
                .as_ref()
                .is_some_and(|known| known.fingerprint() == entry.fingerprint());
            if theirs && !same && !self.is_busy(&Key::Nf(entry.id)) {
                let kind = match before {
                    Some(_) => ChangeKind::Updated,
                    None => ChangeKind::Registered,
                };
                self.publish(kind, before, Some(Arc::new(entry)));
            }
        }
        let gone: Vec<Arc<Entry>> = snapshot
            .iter()
            .filter(|known| known.set.as_ref() == Some(&state.set) && !named.contains(&known.id))
            .filter(|known| !self.is_busy(&Key::Nf(known.id)))
            .cloned()
            .collect();
        for before in gone {
            self.publish(ChangeKind::Deregistered, Some(before), None);
        }
    }

    /// Suspends who has not been heard of, removes who has been suspended for too long, ends subscriptions.
    pub(super) fn audit(&mut self, now: Instant, wall: OffsetDateTime) {
        let snapshot = self.published.load_full();
        let settings = self.config.heart_beat.clone();
        let silent = |entry: &Entry, heard: Instant| {
            let allowed = u64::from(entry.heart_beat_timer) * u64::from(settings.missed.max(1));
            now.saturating_duration_since(heard) > Duration::from_secs(allowed)
        };
        let overdue: Vec<Arc<Entry>> = self
            .last_heard
            .iter()
            // One that is changing just now has been heard of.
            .filter(|(id, _)| !self.suspended.contains_key(id) && !self.is_busy(&Key::Nf(**id)))
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
            self.order(Key::Nf(id), |registrar| registrar.remove(id, ChangeKind::Expired));
        }
        for id in self.book.expired(wall) {
            self.order(Key::Subscription(id.clone()), |registrar| {
                registrar.unsubscribe(id, None)
            });
        }
    }
}

/// A patch of nothing but status, load and time stamp: a heart-beat (TS 29.510 §5.2.2.3.2). A value that cannot be
/// used makes it another patch, which is refused with a reason.
fn heart_beat(before: &Entry, operations: &[patch::Operation<'_>]) -> Option<Entry> {
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
                rules::token(&text).ok()?;
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
                rules::date_time(&text).ok()?;
                stamp = Some(text.into());
            }
            _ => return None,
        }
    }
    Some(before.moved(status, load, stamp))
}
