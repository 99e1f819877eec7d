//! What was accepted and therefore is owed, and what has arrived of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use rand::Rng;
use rand::rngs::SmallRng;

/// Subscriptions that are neither ended nor reported about: an ended one must not be among those with reports in flight.
const FEW: usize = 16;

/// What is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data for a device: owed with 200 or 201, it comes to the MME.
    Data,
    /// What became of data that was buffered: owed with 201, it comes to the SCS/AS.
    Status,
    /// Data of a device: owed with the ODA, it comes to the SCS/AS.
    Uplink,
    /// A report about a device: owed with the RIA, it comes to the SCS/AS.
    Report,
    /// The delivery of a trigger: owed with 201, it comes to the SCS/AS.
    Trigger,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Data,
        Self::Status,
        Self::Uplink,
        Self::Report,
        Self::Trigger,
    ];

    /// Words for a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data for devices at their MME",
            Self::Status => "delivery of buffered data at the SCS/AS",
            Self::Uplink => "data of devices at the SCS/AS",
            Self::Report => "monitoring reports at the SCS/AS",
            Self::Trigger => "delivery of triggers at the SCS/AS",
        }
    }
}

/// One thing.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Since when it is owed.
    owed: Option<Instant>,
    /// When it came first.
    came: Option<Instant>,
    /// How often it came again.
    again: u32,
    /// Data: the End-to-End Identifier of its TDR.
    end_to_end: u32,
    /// Data: its device was unreachable.
    refused: bool,
    /// Of the first SCS/AS.
    of_first: bool,
}

/// The sums of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Owed.
    pub owed: u64,
    /// Owed, and not come.
    pub missing: u64,
    /// Came more than once, where each time counts.
    pub twice: u64,
    /// Came without being owed: their request had no answer.
    pub unasked: u64,
    /// The longest time from being owed to coming, of all SCS/AS but the first.
    pub slowest: Duration,
}

/// What an MME does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It has it now, or had it before and recognises the repetition.
    Taken,
    /// The device is unreachable.
    Unreachable,
}

/// A subscription that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// SCEF-Reference-ID.
    pub reference: u32,
    /// Its SCS/AS.
    pub server: u32,
}

/// The books of a run. A lock is taken a few thousand times a second.
#[derive(Debug, Default)]
pub struct Books {
    books: [Mutex<AHashMap<u128, Entry>>; 5],
    numbers: [AtomicU32; 5],
    subscriptions: Mutex<VecDeque<Subscription>>,
    subscribed: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Books {
    /// The number of something new.
    pub(super) fn number(&self, kind: Kind) -> u32 {
        self.numbers[kind as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// The number of a new subscription.
    pub(super) fn subscription(&self) -> u32 {
        self.subscribed.fetch_add(1, Ordering::Relaxed)
    }

    fn change<T>(&self, kind: Kind, key: u128, server: u32, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut book = lock(&self.books[kind as usize]);
        let entry = book.entry(key).or_default();
        entry.of_first = server == 0;
        change(entry)
    }

    /// Something was accepted for this SCS/AS.
    pub fn owe(&self, kind: Kind, key: impl Into<u128>, server: u32) {
        self.change(kind, key.into(), server, |entry| {
            entry.owed.get_or_insert_with(Instant::now);
        });
    }

    /// Something has come to this SCS/AS.
    pub fn came(&self, kind: Kind, key: impl Into<u128>, server: u32) {
        self.change(kind, key.into(), server, |entry| match entry.came {
            None => entry.came = Some(Instant::now()),
            Some(_) => entry.again += 1,
        });
    }

    /// Data for a device has come to its MME. A repetition has the T flag and the same End-to-End Identifier (RFC 6733 §3).
    pub(super) fn arrived(
        &self,
        number: u32,
        (end_to_end, is_again): (u32, bool),
        (server, is_unreachable): (u32, bool),
    ) -> Arrival {
        self.change(Kind::Data, number.into(), server, |entry| {
            if is_unreachable && !entry.refused {
                entry.refused = true;
                return Arrival::Unreachable;
            }
            match entry.came {
                None => {
                    entry.came = Some(Instant::now());
                    entry.end_to_end = end_to_end;
                }
                Some(_) if is_again && entry.end_to_end == end_to_end => {}
                Some(_) => entry.again += 1,
            }
            Arrival::Taken
        })
    }

    /// Whether data has come to its MME.
    pub(super) fn has_come(&self, number: u32) -> bool {
        let book = lock(&self.books[Kind::Data as usize]);
        book.get(&number.into()).is_some_and(|entry| entry.came.is_some())
    }

    /// The sums of a kind.
    #[must_use]
    pub fn tally(&self, kind: Kind) -> Tally {
        let mut tally = Tally::default();
        for entry in lock(&self.books[kind as usize]).values() {
            tally.owed += u64::from(entry.owed.is_some());
            tally.twice += u64::from(entry.again > 0);
            match (entry.owed, entry.came) {
                (Some(_), None) => tally.missing += 1,
                (None, Some(_)) => tally.unasked += 1,
                (Some(owed), Some(came)) if !entry.of_first => {
                    tally.slowest = tally.slowest.max(came.saturating_duration_since(owed));
                }
                _ => {}
            }
        }
        tally
    }

    /// Whether everything of these kinds that is owed has come.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.tally(kind).missing == 0)
    }

    /// A subscription stands.
    pub fn subscribed(&self, subscription: Subscription) {
        lock(&self.subscriptions).push_back(subscription);
    }

    /// Subscriptions that stand.
    #[must_use]
    pub fn standing(&self) -> usize {
        lock(&self.subscriptions).len()
    }

    /// Takes the oldest subscription out, which is to end.
    pub(super) fn oldest(&self) -> Option<Subscription> {
        let mut standing = lock(&self.subscriptions);
        if standing.len() <= FEW {
            return None;
        }
        standing.pop_front()
    }

    /// One of the younger half.
    pub(super) fn any(&self, random: &mut SmallRng) -> Option<Subscription> {
        let standing = lock(&self.subscriptions);
        let count = standing.len();
        if count == 0 {
            return None;
        }
        standing.get(random.random_range(count / 2..count)).copied()
    }
}
