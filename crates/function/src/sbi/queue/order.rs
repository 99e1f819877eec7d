//! The order of queued requests: which begins next, and which leaves first when there is no room.

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::oneshot;

use super::super::door::Weight;
use super::{Nature, NotBegun, Slot};

/// A position in the queue: by priority, then by deadline, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// 0 is the most important.
    pub(super) priority: u8,
    /// Until when its consumer waits.
    pub(super) deadline: Instant,
    /// Number of the request.
    pub(super) serial: u64,
}

/// What the queue has of a request. Its head and body are the caller's.
pub(super) struct Queued {
    pub(super) bytes: usize,
    pub(super) received: Instant,
    pub(super) call: oneshot::Sender<Result<Slot, NotBegun>>,
}

/// Which requests may begin beside those that end something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    /// Those that may ask others.
    pub(super) asking: bool,
    /// All others.
    pub(super) others: bool,
}

impl Lanes {
    pub(super) fn has(self, nature: Nature) -> bool {
        self.is_open(Lane::of(nature))
    }

    fn is_open(self, lane: Lane) -> bool {
        match lane {
            Lane::Asking => self.asking,
            Lane::Others => self.others,
            Lane::Ends => true,
        }
    }
}

/// Requests that wait for the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Asking,
    Others,
    Ends,
}

/// All lanes.
const LANES: [Lane; 3] = [Lane::Asking, Lane::Others, Lane::Ends];
/// The lanes whose requests are refused when there is no room.
const BOUNDED: [Lane; 2] = [Lane::Asking, Lane::Others];

impl Lane {
    fn of(nature: Nature) -> Self {
        match (nature.weight, nature.asks_others) {
            (Weight::Ends, _) => Self::Ends,
            (Weight::Begins | Weight::Changes, true) => Self::Asking,
            (Weight::Begins | Weight::Changes, false) => Self::Others,
        }
    }
}

#[derive(Default)]
struct Line {
    by_rank: BTreeMap<Rank, Queued>,
    by_arrival: BTreeMap<u64, Instant>,
    bytes: usize,
}

/// Queued requests.
#[derive(Default)]
pub(super) struct Order {
    asking: Line,
    others: Line,
    ends: Line,
}

impl Order {
    /// Queues a request; returns those that have to leave for it, itself if it is the least important.
    pub(super) fn push(
        &mut self,
        rank: Rank,
        nature: Nature,
        queued: Queued,
        (most, most_bytes): (usize, usize),
    ) -> Vec<Queued> {
        self.line_mut(Lane::of(nature)).insert(rank, queued);
        let mut refused = Vec::new();
        while self.bounded(|line| line.by_rank.len()) > most || self.bounded(|line| line.bytes) > most_bytes {
            let last = BOUNDED
                .into_iter()
                .filter_map(|lane| Some((self.line(lane).last()?, lane)));
            let Some((rank, lane)) = last.max_by(|(one, _), (other, _)| one.cmp(other)) else {
                break;
            };
            refused.extend(self.line_mut(lane).remove(rank));
        }
        refused
    }

    /// The request that begins next.
    pub(super) fn pop(&mut self, lanes: Lanes) -> Option<Queued> {
        let (rank, lane) = self.first(lanes)?;
        self.line_mut(lane).remove(rank)
    }

    /// Whether a request could begin if there were a slot.
    pub(super) fn has_ready(&self, lanes: Lanes) -> bool {
        self.first(lanes).is_some()
    }

    pub(super) fn remove(&mut self, rank: Rank, nature: Nature) -> Option<Queued> {
        self.line_mut(Lane::of(nature)).remove(rank)
    }

    /// When the oldest request came that could begin.
    pub(super) fn oldest(&self, lanes: Lanes) -> Option<Instant> {
        let open = LANES.into_iter().filter(|lane| lanes.is_open(*lane));
        open.filter_map(|lane| Some(*self.line(lane).by_arrival.first_key_value()?.1))
            .min()
    }

    /// Requests, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let sum = |of: fn(&Line) -> usize| LANES.into_iter().map(|lane| of(self.line(lane))).sum();
        (sum(|line| line.by_rank.len()), sum(|line| line.bytes))
    }

    fn first(&self, lanes: Lanes) -> Option<(Rank, Lane)> {
        let open = LANES.into_iter().filter(|lane| lanes.is_open(*lane));
        let first = open.filter_map(|lane| Some((self.line(lane).first()?, lane)));
        first.min_by(|(one, _), (other, _)| one.cmp(other))
    }

    fn bounded(&self, of: impl Fn(&Line) -> usize) -> usize {
        BOUNDED.into_iter().map(|lane| of(self.line(lane))).sum()
    }

    fn line(&self, lane: Lane) -> &Line {
        match lane {
            Lane::Asking => &self.asking,
            Lane::Others => &self.others,
            Lane::Ends => &self.ends,
        }
    }

    fn line_mut(&mut self, lane: Lane) -> &mut Line {
        match lane {
            Lane::Asking => &mut self.asking,
            Lane::Others => &mut self.others,
            Lane::Ends => &mut self.ends,
        }
    }
}

impl Line {
    fn insert(&mut self, rank: Rank, queued: Queued) {
        self.bytes += queued.bytes;
        self.by_arrival.insert(rank.serial, queued.received);
        self.by_rank.insert(rank, queued);
    }

    fn remove(&mut self, rank: Rank) -> Option<Queued> {
        let queued = self.by_rank.remove(&rank)?;
        self.by_arrival.remove(&rank.serial);
        self.bytes -= queued.bytes;
        Some(queued)
    }

    fn first(&self) -> Option<Rank> {
        self.by_rank.first_key_value().map(|(rank, _)| *rank)
    }

    fn last(&self) -> Option<Rank> {
        self.by_rank.last_key_value().map(|(rank, _)| *rank)
    }
}
