//! Effects of changes and heart-beats at other NRFs of a cluster, and the subscriptions that this NRF notifies of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{NfInstanceId, NfStatus};
use registry::{ChangeKind, Entry};
use store::{Stored, Version};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::{AMPLE, Registrar};
use crate::cluster::{Beat, ChangeRecord, Key, micros};
use crate::events::Event;
use crate::subscriptions::Subscription;

/// How many changes are recent at most, and for how many microseconds: longer than a subscription of another NRF takes to
/// be known here.
const RECENT: usize = 10_000;
const RECENT_MICROS: u64 = 30_000_000;

impl Registrar {
    pub(super) fn changed_elsewhere(&mut self, entry: Entry, version: Version) {
        let known = self.published.load().get(&entry.id).cloned();
        let before = known.filter(|entry| entry.is_ours());
        let heard = self.last_heard.insert(entry.id, Instant::now());
        self.note_alive(&entry, heard);
        if entry.status == NfStatus::Suspended {
            self.suspended.entry(entry.id).or_insert_with(Instant::now);
        } else {
            self.suspended.remove(&entry.id);
        }
        let kind = match &before {
            None => ChangeKind::Registered,
            Some(before) if before.fingerprint() == entry.fingerprint() => return,
            Some(before) if before.differs_in_loads_only(&entry) => ChangeKind::HeartBeat,
            Some(before) if before.status == entry.status => ChangeKind::Updated,
            Some(_) if entry.status == NfStatus::Suspended => ChangeKind::Suspended,
            Some(before) if before.status == NfStatus::Suspended => ChangeKind::Resumed,
            Some(_) => ChangeKind::Updated,
        };
        self.publish_of(kind, before, Some(Arc::new(entry)), version.micros());
    }

    /// Notes that an instance which another NRF has suspended beats here: the heart-beats did not reach that NRF, because
    /// replication between their sites was cut.
    fn note_alive(&mut self, entry: &Entry, heard: Option<Instant>) {
        let missed = u64::from(self.config.heart_beat.missed.max(1));
        // Half of what is allowed: the other NRF may have heard of the same heart-beat, a little earlier.
        let fresh = Duration::from_secs(u64::from(entry.heart_beat_timer) * missed) / 2;
        let is_alive = entry.status == NfStatus::Suspended
            && *entry.own_status() != NfStatus::Suspended
            && heard.is_some_and(|heard| heard.elapsed() < fresh);
        if let Some(sharing) = self.sharing.as_mut().filter(|_| is_alive) {
            sharing.alive.insert(entry.id);
        }
    }

    /// Resumes instances that other NRFs have suspended, though they beat here.
    pub(super) fn resume_alive(&mut self) {
        let alive = self
            .sharing
            .as_mut()
            .map(|sharing| std::mem::take(&mut sharing.alive));
        let snapshot = self.published.load_full();
        for id in alive.into_iter().flatten() {
            let shown = snapshot.get(&id).filter(|entry| entry.is_ours()).cloned();
            let Some(before) = shown.filter(|entry| entry.status == NfStatus::Suspended) else {
                continue;
            };
            let after = before.resumed();
            self.order(Key::Nf(id), |registrar| {
                Ok(registrar.keep(ChangeKind::Resumed, Event::ClusterResumed, Some(before), after))
            });
        }
    }

    pub(super) fn removed_elsewhere(&mut self, id: NfInstanceId, at: u64) {
        let known = self.published.load().get(&id).cloned();
        if let Some(before) = known.filter(|entry| entry.is_ours()) {
            self.last_heard.remove(&id);
            self.suspended.remove(&id);
            self.publish_of(ChangeKind::Deregistered, Some(before), None, at);
            // The other NRF ends those that it knows of.
            self.end_subscriptions_of(id);
        }
    }

    pub(super) fn subscribed_elsewhere(&mut self, subscription: Arc<Subscription>, made: u64) {
        if let Some(before) = self.book.get(&subscription.id) {
            self.shares.give_back(&before.owner());
            self.shares.add(&subscription.owner());
            self.book.put(subscription);
            return;
        }
        self.shares.add(&subscription.owner());
        self.book.put(subscription.clone());
        // What has changed since it was made is present by now; its subscriber has to be notified of it. The other NRF may
        // have another time.
        let skew = self.config.cluster.clock_skew.duration().as_micros();
        let made = made.saturating_sub(u64::try_from(skew).unwrap_or(u64::MAX));
        let Some(sharing) = &self.sharing else { return };
        let since = |(at, entry): &&(u64, Arc<Entry>)| {
            *at >= made && subscription.concerns(&entry.profile) && self.notifies(&subscription.id, *at)
        };
        let missed: BTreeSet<NfInstanceId> = sharing
            .recent
            .iter()
            .filter(since)
            .map(|(_, entry)| entry.id)
            .collect();
        let (snapshot, now) = (self.published.load_full(), OffsetDateTime::now_utc());
        for id in missed {
            let present = snapshot.get(&id);
            let notification = self
                .book
                .present(&subscription.id, &id.to_string(), present, &self.root, now);
            if let Some(notification) = notification {
                self.notify.push(notification);
            }
        }
    }

    /// A change was made visible.
    pub(super) fn changed(&mut self, at: u64, subject: &Arc<Entry>) {
        let Some(sharing) = &mut self.sharing else { return };
        let old = |(then, _): &(u64, Arc<Entry>)| then.saturating_add(RECENT_MICROS) < at;
        while sharing.recent.len() >= RECENT || sharing.recent.front().is_some_and(old) {
            sharing.recent.pop_front();
        }
        sharing.recent.push_back((at, subject.clone()));
    }

    /// A heart-beat came that needs no durable write: the others learn of it with the next poll.
    pub(super) fn share_beat(&self, entry: &Entry) -> u64 {
        let at = micros();
        if let Some(sharing) = &self.sharing {
            sharing.handoff.beat(Beat {
                id: entry.id,
                at,
                load: entry.load,
                load_time_stamp: entry.load_time_stamp.as_deref().map(Into::into),
            });
        }
        at
    }

    pub(super) fn beaten_elsewhere(&mut self, beat: Beat) {
        let Some(before) = self.published.load().get(&beat.id).cloned() else {
            return;
        };
        if !before.is_ours() {
            return;
        }
        self.last_heard.insert(beat.id, Instant::now());
        let stamp: Option<Arc<str>> = beat.load_time_stamp.map(Into::into);
        let same = before.load == beat.load && before.load_time_stamp == stamp;
        if !same && !self.is_busy(&Key::Nf(beat.id)) {
            let after = Arc::new(before.with_load(beat.load, stamp));
            self.publish_of(ChangeKind::HeartBeat, Some(before), Some(after), beat.at);
        }
    }

    /// Whether this NRF notifies a subscription of a change at this moment.
    pub(super) fn notifies(&self, subscription: &str, at: u64) -> bool {
        match &self.sharing {
            None => true,
            Some(sharing) => sharing.view.notifies(subscription, at, micros()),
        }
    }

    /// Whether this NRF audits an NF instance or a subscription.
    pub(super) fn audits(&self, name: &[u8]) -> bool {
        match &self.sharing {
            None => true,
            Some(sharing) => sharing.view.owns(name, micros()),
        }
    }

    /// Sends the present state of what has changed, for subscriptions of members that are not active any more.
    pub(super) fn notify_for_others(&mut self, changes: &[Stored<ChangeRecord>]) {
        let (now, wall) = (micros(), OffsetDateTime::now_utc());
        let snapshot = self.published.load_full();
        let Some(sharing) = &self.sharing else { return };
        for change in changes {
            let (Key::Nf(id), at) = (&change.key, change.version.micros()) else {
                continue;
            };
            let present = snapshot.get(id);
            let last = match (&present, &change.removed) {
                (Some(entry), _) => Some((*entry).clone()),
                (None, Some(text)) => Entry::parse_within(text, AMPLE, |_| 0).ok().map(Arc::new),
                (None, None) => None,
            };
            let Some(last) = last else { continue };
            let instance = id.to_string();
            for one in self.book.iter() {
                if !sharing.view.inherits(&one.id, at, now) || !one.concerns(&last.profile) {
                    continue;
                }
                let notification = self.book.present(&one.id, &instance, present, &self.root, wall);
                if let Some(notification) = notification {
                    self.counters.count(Event::ClusterInherited);
                    self.notify.push(notification);
                }
            }
        }
    }
}
