//! What a room holds: followed subscribers, and the ring of copies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::{Followed, MAX_PERIOD};
use crate::finder::Hit;
use crate::identity::Identity;
use crate::message::{Record, Stored, rfc3339};

/// Identities that are learned of one followed subscriber, at most.
const MAX_LEARNED: usize = 64;
/// Copies whose subscriber is no longer followed are dropped after this time.
const KEPT_AFTER: Duration = MAX_PERIOD;
/// What a copy takes beside its content.
const OVERHEAD: usize = 512;

#[derive(Default)]
pub(super) struct State {
    pub(super) followed: Vec<Follow>,
    /// Subscribers that are no longer followed, with the moment at which their copies are dropped.
    pub(super) ended: Vec<(u64, Instant)>,
    pub(super) next_owner: u64,
    pub(super) ring: VecDeque<Arc<Stored>>,
    pub(super) bytes: usize,
    pub(super) next_number: u64,
    pub(super) not_kept: u64,
}

/// A followed subscriber.
pub(super) struct Follow {
    pub(super) owner: u64,
    pub(super) identity: Identity,
    pub(super) learned: Vec<Identity>,
    pub(super) begun: SystemTime,
    pub(super) ends: Instant,
    pub(super) ends_at: SystemTime,
    pub(super) messages: u32,
    pub(super) dropped: u64,
    /// The numbers of the trace and span of the last exchange that was traced.
    pub(super) span: Option<(u128, u64)>,
}

impl State {
    /// Ends following those whose time is over; whether there was one. Drops copies that are too old.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let over: Vec<u64> = self
            .followed
            .iter()
            .filter(|one| one.ends <= now)
            .map(|one| one.owner)
            .collect();
        self.followed.retain(|one| one.ends > now);
        self.ended
            .extend(over.iter().map(|owner| (*owner, now + KEPT_AFTER)));
        if self.ended.first().is_some_and(|(_, at)| *at <= now) {
            let (old, rest): (Vec<_>, Vec<_>) = self.ended.drain(..).partition(|(_, at)| *at <= now);
            self.ended = rest;
            self.drop_copies(|copy| old.iter().any(|(owner, _)| *owner == copy.owner));
        }
        !over.is_empty()
    }

    pub(super) fn push(&mut self, identity: Arc<str>, hit: &Hit, record: Record, most_bytes: usize) {
        let bytes = record.content.held() + OVERHEAD;
        if bytes > most_bytes {
            self.not_kept += 1;
            return;
        }
        self.evict(most_bytes - bytes);
        self.bytes += bytes;
        self.next_number += 1;
        self.ring.push_back(Arc::new(Stored {
            number: self.next_number,
            owner: hit.owner,
            identity,
            found_by: hit.by.clone(),
            record,
        }));
    }

    /// Drops the oldest copies until the rest takes at most this number of octets.
    pub(super) fn evict(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes
            && let Some(oldest) = self.ring.pop_front()
        {
            self.bytes -= oldest.record.content.held() + OVERHEAD;
            self.not_kept += 1;
        }
    }

    pub(super) fn drop_copies(&mut self, is_dropped: impl Fn(&Stored) -> bool) {
        self.ring.retain(|copy| !is_dropped(copy));
        self.ring.shrink_to_fit();
        let held = self.ring.iter().map(|copy| copy.record.content.held() + OVERHEAD);
        self.bytes = held.sum();
    }
}

impl Follow {
    /// Adds identities of the subscriber; whether there were new ones. Beyond the bound those give way that were in no
    /// message for the longest time, except the SUPI.
    pub(super) fn learn(&mut self, found: Vec<Identity>) -> bool {
        let mut has_changed = false;
        for identity in found {
            if identity == self.identity || self.has_other_supi(&identity) || self.is_used(identity.as_str())
            {
                continue;
            }
            if self.learned.len() >= MAX_LEARNED {
                let oldest = self.learned.iter().position(|one| one.imsi().is_none());
                self.learned.remove(oldest.unwrap_or_default());
                self.dropped += 1;
            }
            self.learned.push(identity);
            has_changed = true;
        }
        has_changed
    }

    /// A message has a learned identity; whether it is one.
    pub(super) fn is_used(&mut self, text: &str) -> bool {
        let place = self.learned.iter().position(|one| one.as_str() == text);
        if let Some(at) = place {
            self.learned[at..].rotate_left(1);
        }
        place.is_some()
    }

    /// A subscriber has one SUPI: what names another one is of another subscriber.
    fn has_other_supi(&self, identity: &Identity) -> bool {
        let mut known = std::iter::once(&self.identity).chain(&self.learned);
        identity.imsi().is_some() && known.any(|one| one.imsi().is_some() && one != identity)
    }

    pub(super) fn show(&self) -> Followed {
        Followed {
            identity: self.identity.to_string(),
            since: rfc3339(self.begun),
            until: rfc3339(self.ends_at),
            messages: self.messages,
            learned: self.learned.iter().map(ToString::to_string).collect(),
            dropped: self.dropped,
        }
    }
}
