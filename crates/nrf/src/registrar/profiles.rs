//! Changes of profiles: checks before the commit, and effects after it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::shape::{rules, spellings};
use model::{NfInstanceId, NfStatus};
use registry::{ChangeKind, Entry, ProfileChange, ProfileRecord};
use sbi::json::patch;
use sbi::problem::{Cause, Problem};
use store::{Batch, Receipt, Version};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::faults::{check_match, not_found, type_stays};
use super::{Done, Effect, Key, Preconditions, Registrar, Step};
use crate::cluster::micros;
use crate::events::Event;
use crate::notify::Resync;
use crate::subscriptions::Notifying;

/// Longest patch that the writer itself checks for being a heart-beat, in bytes.
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

impl ProfileEffect {
    /// Whether it takes effect also while the store can write nothing: an NF is silent, or registered with another set.
    pub(super) fn stands(&self) -> bool {
        self.kind == ChangeKind::Suspended || self.after.as_ref().is_some_and(|after| !after.is_ours())
    }

    /// Whether the profile of this set is removed.
    pub(super) fn removes(&self) -> bool {
        self.after.as_ref().is_none_or(|after| !after.is_ours())
    }
}

impl Registrar {
    pub(super) fn put(
        &mut self,
        id: NfInstanceId,
        body: Bytes,
        wanted: Preconditions,
    ) -> Result<Step, Problem> {
        self.may_put(id, &wanted)?;
        let rules = self.rules();
        Ok(Step::prepare(
            body.len(),
            move || rules.profile(&body),
            move |registrar, entry| {
                let entry = entry.map_err(|refused| registrar.refuse(refused))?;
                // Others may have registered meanwhile.
                let before = registrar.may_put(id, &wanted)?;
                registrar.put_entry(id, before, entry)
            },
        ))
    }

    /// Checks whether an instance may register; returns its present registration.
    fn may_put(&self, id: NfInstanceId, wanted: &Preconditions) -> Result<Option<Arc<Entry>>, Problem> {
        // An instance of another set creates a new registration here.
        let known = self.published.load().get(&id).cloned();
        let before = known.filter(|entry| entry.is_ours());
        check_match(before.as_ref(), wanted)?;
        // Instances of other sets do not count; each instance of this set has a time of its last heart-beat.
        if before.is_none() && self.last_heard.len() + self.registering >= self.config.max_profiles {
            return Err(Problem::new(Cause::InsufficientResources)
                .detail("the NRF has as many profiles as maxProfiles allows"));
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
        // As by a patch: who may discover it, and which tokens it gets, follows from its type.
        if before
            .as_ref()
            .is_some_and(|before| before.nf_type() != entry.nf_type())
        {
            return Err(type_stays());
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
        wanted: Preconditions,
    ) -> Result<Step, Problem> {
        let known = self.published.load().get(&id).cloned();
        let before = known
            .filter(|entry| entry.is_ours())
            .ok_or_else(|| not_found(id))?;
        check_match(Some(&before), &wanted)?;
        let mut beats = false;
        if body.len() <= HEART_BEAT_BYTES
            && let Ok(operations) = patch::operations(&body, HEART_BEAT_OPERATIONS)
        {
            if let Some(after) = heart_beat(&before, &operations) {
                return Ok(self.beat(before, after));
            }
            beats = operations.iter().all(|operation| is_load_report(operation));
        }
        let rules = self.rules();
        // An NF that changes its profile is alive: the change ends a suspension.
        let seen = before.resumed();
        Ok(Step::prepare(
            body.len() + before.size(),
            move || rules.patched(&seen, &body),
            move |registrar, entry| {
                let entry = entry.map_err(|refused| registrar.refuse(refused))?;
                // No other change of this instance has been made meanwhile: they wait behind this one.
                Ok(match beats {
                    true => registrar.beat(before, entry),
                    false => registrar.keep(ChangeKind::Updated, Event::Updated, Some(before), entry),
                })
            },
        ))
    }

    /// Applies a heart-beat: only a changed status or timer is written to the store, a load need not survive a restart.
    fn beat(&mut self, before: Arc<Entry>, after: Entry) -> Step {
        let kind = match (&before.status, &after.status) {
            (NfStatus::Suspended, status) if *status != NfStatus::Suspended => ChangeKind::Resumed,
            _ => ChangeKind::HeartBeat,
        };
        // When the settings yield another timer, this heart-beat assigns it and the answer returns it
        // (TS 29.510 §5.2.2.3.2).
        let asked = after.profile.heart_beat_timer;
        let after = after.with_timer(self.config.heart_beat.assign(asked));
        // The other NRFs of a cluster learn of loads of services from the store.
        let elsewhere = self.sharing.is_some() && !before.shares_text(&after);
        if before.status != after.status || before.heart_beat_timer != after.heart_beat_timer || elsewhere {
            return self.keep(kind, Event::HeartBeat, Some(before), after);
        }
        let after = Arc::new(after);
        self.heard(&after);
        self.counters.count(Event::HeartBeat);
        let at = self.share_beat(&after);
        if after.fingerprint() != before.fingerprint() {
            self.publish_of(kind, Some(before), Some(after.clone()), at);
        }
        Step::Done(Ok(Done::HeartBeat))
    }

    pub(super) fn remove(
        &mut self,
        id: NfInstanceId,
        kind: ChangeKind,
        wanted: &Preconditions,
    ) -> Result<Step, Problem> {
        let known = self.published.load().get(&id).cloned();
        let before = known
            .filter(|entry| entry.is_ours())
            .ok_or_else(|| not_found(id))?;
        check_match(Some(&before), wanted)?;
        let event = match kind {
            ChangeKind::Expired => Event::Expired,
            _ => Event::Deregistered,
        };
        let (mut batch, key) = (Batch::default(), Key::Nf(id));
        batch.delete(&self.profiles, id.0.as_bytes(), self.condition(&key));
        self.journal(&mut batch, key, Some(before.document()));
        let effect = ProfileEffect {
            kind,
            before: Some(before),
            after: None,
            event,
        };
        Ok(Step::Commit(self.store.commit(batch), Effect::Profile(effect)))
    }

    pub(super) fn keep(
        &self,
        kind: ChangeKind,
        event: Event,
        before: Option<Arc<Entry>>,
        after: Entry,
    ) -> Step {
        let suspended = kind == ChangeKind::Suspended;
        let record = ProfileRecord {
            id: after.id.0,
            document: after.resumed().document(),
            suspended,
        };
        let (mut batch, key) = (Batch::default(), Key::Nf(after.id));
        batch.put(&self.profiles, &record, self.condition(&key));
        self.journal(&mut batch, key, None);
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

    /// A change was not made durable: it has no effect.
    pub(super) fn profile_unkept(&mut self, effect: &ProfileEffect) {
        self.registering -= usize::from(matches!(effect.kind, ChangeKind::Registered));
    }

    /// A change is durable.
    pub(super) fn profile_kept(&mut self, effect: ProfileEffect, version: Version) -> Done {
        self.profile_unkept(&effect);
        let ProfileEffect {
            kind,
            before,
            after,
            event,
        } = effect;
        self.counters.count(event);
        let same_timer = |entry: &Entry| {
            let before = before.as_ref();
            before.is_none_or(|before| before.heart_beat_timer == entry.heart_beat_timer)
        };
        let done = match (&after, &before, event) {
            (Some(entry), _, Event::HeartBeat) if same_timer(entry) => Done::HeartBeat,
            (Some(entry), None, _) => Done::Created(entry.clone()),
            (Some(entry), Some(_), _) => Done::Replaced(entry.clone()),
            (None, ..) => Done::Removed,
        };
        match (&after, &before) {
            (Some(entry), _) if kind == ChangeKind::Suspended => {
                tracing::warn!(id = %entry.id, nf_type = %entry.nf_type(), "heart-beats missed; suspended");
                self.suspended.insert(entry.id, Instant::now());
            }
            (Some(entry), _) if entry.is_ours() => self.heard(entry),
            // The instance is now registered with another set.
            (Some(entry), _) => self.forget(entry.id),
            (None, Some(entry)) => {
                self.forget(entry.id);
                self.end_subscriptions_of(entry.id);
            }
            (None, None) => {}
        }
        let id = after.as_ref().or(before.as_ref()).map(|entry| entry.id);
        self.publish_of(kind, before, after, version.micros());
        if let Some(id) = id {
            self.pushed(id);
        }
        done
    }

    fn heard(&mut self, entry: &Entry) {
        self.last_heard.insert(entry.id, Instant::now());
        self.suspended.remove(&entry.id);
    }

    fn forget(&mut self, id: NfInstanceId) {
        self.last_heard.remove(&id);
        self.suspended.remove(&id);
    }

    /// Removes the profile of this set of an NF that is registered with another set.
    pub(super) fn hand_over(&mut self, ours: Arc<Entry>, theirs: Arc<Entry>) -> Step {
        let (mut batch, key) = (Batch::default(), Key::Nf(ours.id));
        batch.delete(&self.profiles, ours.id.0.as_bytes(), self.condition(&key));
        self.journal(&mut batch, key, Some(ours.document()));
        let effect = ProfileEffect {
            kind: ChangeKind::Updated,
            before: Some(ours),
            after: Some(theirs),
            event: Event::Expired,
        };
        Step::Commit(self.store.commit(batch), Effect::Profile(effect))
    }

    /// Shows a change to readers, then notifies subscribers.
    pub(super) fn publish(
        &mut self,
        kind: ChangeKind,
        before: Option<Arc<Entry>>,
        after: Option<Arc<Entry>>,
    ) {
        self.publish_of(kind, before, after, micros());
    }

    /// Shows a change of this moment to readers, then notifies the subscribers that this NRF notifies.
    pub(super) fn publish_of(
        &mut self,
        kind: ChangeKind,
        before: Option<Arc<Entry>>,
        after: Option<Arc<Entry>>,
        at: u64,
    ) {
        let current = self.published.load_full();
        let next = match (&after, &before) {
            (Some(entry), _) => current.with(entry.clone()),
            (None, Some(entry)) => current.without(&entry.id),
            (None, None) => return,
        };
        self.published.store(Arc::new(next));
        let change = ProfileChange { kind, before, after };
        if kind != ChangeKind::HeartBeat
            && let Some(subject) = change.subject()
        {
            self.changed(at, subject);
        }
        let settings = &self.config.subscriptions;
        let notifying = Notifying {
            load_threshold: settings.load_threshold,
            as_changes: settings.notify_changes,
        };
        let now = OffsetDateTime::now_utc();
        for notification in self.book.notify(&change, notifying, &self.root, now) {
            if self.notifies(&notification.subscription, at) {
                self.notify.push(notification);
            }
        }
    }

    /// Answers with the present state of NF instances whose notifications a subscriber has missed.
    pub(super) fn resync(&self, resync: Resync) {
        let (snapshot, now) = (self.published.load(), OffsetDateTime::now_utc());
        let present = |instance: &Arc<str>| {
            let id = model::NfInstanceId::parse(instance).ok()?;
            let (subscription, entry) = (&resync.subscription, snapshot.get(&id));
            self.book.present(subscription, instance, entry, &self.root, now)
        };
        let state = resync.instances.iter().filter_map(present).collect();
        // The delivery may have ended.
        let _ = resync.reply.send(state);
    }

    /// Suspends NFs that missed heart-beats, removes NFs that have been suspended for too long, ends expired subscriptions.
    pub(super) fn audit(&mut self, now: Instant, wall: OffsetDateTime) {
        let snapshot = self.published.load_full();
        let settings = self.config.heart_beat.clone();
        let interval = settings.audit_interval.duration();
        if let Some(still) = stood_still(self.audited.replace(now), now, interval) {
            tracing::warn!(
                seconds = still.as_secs(),
                "the NRF process was paused; heart-beats of that time do not count as missed"
            );
            self.last_heard
                .values_mut()
                .for_each(|heard| *heard = (*heard + still).min(now));
        }
        let silent = |entry: &Entry, heard: Instant| {
            let allowed = u64::from(entry.heart_beat_timer) * u64::from(settings.missed.max(1));
            now.saturating_duration_since(heard) > Duration::from_secs(allowed)
        };
        let room = self.config.max_waiting_writes.saturating_sub(self.commits.len());
        let overdue: Vec<Arc<Entry>> = self
            .last_heard
            .iter()
            // An instance with a change in progress is alive.
            .filter(|(id, _)| !self.suspended.contains_key(id) && !self.is_busy(&Key::Nf(**id)))
            .filter(|(id, _)| self.audits(id.0.as_bytes()))
            .filter_map(|(id, heard)| snapshot.get(id).filter(|entry| silent(entry, *heard)).cloned())
            .take(room.max(1))
            .collect();
        for before in overdue {
            let after = before.suspended();
            self.order(Key::Nf(before.id), |registrar| {
                Ok(registrar.keep(ChangeKind::Suspended, Event::Suspended, Some(before), after))
            });
        }
        self.resume_alive();
        let remove_after = settings.remove_after.duration();
        let gone = self
            .suspended
            .iter()
            .filter(|(_, since)| now.saturating_duration_since(**since) > remove_after)
            .filter(|(id, _)| self.audits(id.0.as_bytes()));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.order(Key::Nf(id), |registrar| {
                registrar.remove(id, ChangeKind::Expired, &Preconditions::default())
            });
        }
        for id in self.book.expired(wall) {
            if !self.audits(id.as_bytes()) {
                continue;
            }
            self.order(Key::Subscription(id.clone()), |registrar| {
                registrar.unsubscribe(id, None)
            });
        }
    }
}

/// How long the NRF process was paused (stopped, or on a suspended machine), by an audit that is much later than the
/// one before: requests of that time have not been read yet.
fn stood_still(before: Option<Instant>, now: Instant, interval: Duration) -> Option<Duration> {
    let passed = now.saturating_duration_since(before?);
    (passed > interval * 3).then(|| passed.saturating_sub(interval))
}

/// A patch of nothing but status, load and time stamp: a heart-beat (TS 29.510 §5.2.2.3.2). With an invalid
/// value it is not a heart-beat, and the general path refuses it with a reason.
fn heart_beat(before: &Entry, operations: &[patch::Operation<'_>]) -> Option<Entry> {
    // A heart-beat without a status ends a suspension for missed heart-beats, but not one that the NF set itself.
    let mut status = before.own_status().clone();
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
                stamp = Some(spellings::date_time(&text).unwrap_or(text).into());
            }
            _ => return None,
        }
    }
    Some(before.moved(status, load, stamp))
}

/// Whether a change is one that heart-beats bring, of the NF or of one of its services.
fn is_load_report(operation: &patch::Operation<'_>) -> bool {
    let path = operation.path.as_ref();
    let of_service = || {
        let mut segments = path.strip_prefix('/')?.split('/');
        let list = segments.next()?;
        segments.next()?;
        let member = segments.next()?;
        let moves = matches!(member, "load" | "loadTimeStamp");
        Some(matches!(list, "nfServices" | "nfServiceList") && moves && segments.next().is_none())
    };
    matches!(operation.op.as_ref(), "replace" | "add")
        && (matches!(path, "/nfStatus" | "/load" | "/loadTimeStamp") || of_service().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_nrf_stood_still_is_seen() {
        let (start, interval) = (Instant::now(), Duration::from_secs(1));
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(stood_still(None, later(100), interval), None);
        assert_eq!(stood_still(Some(start), later(3), interval), None);
        assert_eq!(
            stood_still(Some(start), later(70), interval),
            Some(Duration::from_secs(69))
        );
    }
}
