//! The list of segments, and how many there may be.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::hash_index::{Location, MAX_SEGMENTS};
use super::segment::Segment;
use crate::error::Error;

/// The segments that exist, by slot and in the order of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentList {
    by_slot: Vec<Option<Arc<Segment>>>,
    in_order: Vec<Arc<Segment>>,
}

impl SegmentList {
    /// Oldest first; the last is the one being written.
    pub(super) fn in_order(&self) -> &[Arc<Segment>] {
        &self.in_order
    }

    /// As [`SegmentList::in_order`], without copies whose originals are still there.
    pub(super) fn originals(&self) -> Vec<&Arc<Segment>> {
        // Files are in the order of their last numbers: those that a file covers are right before it, or have its own last
        // number.
        let is_copy = |place: usize, segment: &Segment| {
            let (before, rest) = self.in_order.split_at(place);
            let before = before
                .iter()
                .rev()
                .take_while(|other| other.name.last >= segment.name.first);
            let after = rest
                .iter()
                .take_while(|other| other.name.last == segment.name.last);
            before
                .chain(after)
                .any(|other| other.name.is_replaced_by(segment.name))
        };
        let files = self.in_order.iter().enumerate();
        files
            .filter(|(place, segment)| !is_copy(*place, segment))
            .map(|(_, segment)| segment)
            .collect()
    }

    pub(super) fn at(&self, location: Location) -> Option<&Arc<Segment>> {
        self.by_slot.get(location.slot())?.as_ref()
    }

    fn add(&mut self, segment: Arc<Segment>) {
        let slot = usize::from(segment.slot);
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        self.by_slot[slot] = Some(segment.clone());
        let position = self.in_order.partition_point(|other| other.name < segment.name);
        self.in_order.insert(position, segment);
    }

    fn remove(&mut self, segment: &Segment) {
        self.by_slot[usize::from(segment.slot)] = None;
        self.in_order.retain(|other| other.slot != segment.slot);
    }
}

/// What another file of the log is needed for. The last ones are kept for what makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Any writes.
    Writes,
    /// Nothing but deletions.
    Deletions,
    /// Compaction, or to open the store.
    Upkeep,
}

/// Files of the log that are kept for deletions and for upkeep.
const RESERVED: usize = 16;
/// Of these, for upkeep alone.
const FOR_UPKEEP: usize = 8;

/// The list of segments, which readers see without a lock.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// Files that the log may have.
    most: usize,
    list: ArcSwap<SegmentList>,
    /// The slot given out last; slots go round, so that a removed segment's slot rests as long as possible.
    cursor: parking_lot::Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    used: Vec<bool>,
    last: usize,
}

impl Segments {
    /// The files of a log that may have this number of them.
    pub(super) fn new(most: usize) -> Segments {
        Segments {
            most: most.min(MAX_SEGMENTS),
            ..Segments::default()
        }
    }

    /// Whether files are in use that are kept for deletions.
    pub(super) fn is_full(&self) -> bool {
        let used = self.cursor.lock().used.iter().filter(|used| **used).count();
        used > self.most.saturating_sub(RESERVED)
    }

    pub(super) fn list(&self) -> arc_swap::Guard<Arc<SegmentList>> {
        self.list.load()
    }

    /// A slot that no segment has.
    pub(super) fn take_slot(&self, need: Need) -> Result<u16, Error> {
        let mut slots = self.cursor.lock();
        slots.used.resize(MAX_SEGMENTS, false);
        let most = match need {
            Need::Writes => self.most.saturating_sub(RESERVED),
            Need::Deletions => self.most.saturating_sub(FOR_UPKEEP),
            Need::Upkeep => MAX_SEGMENTS,
        };
        if slots.used.iter().filter(|used| **used).count() >= most {
            return Err(Error::Engine(self.full()));
        }
        let free = (1..=MAX_SEGMENTS)
            .map(|step| (slots.last + step) % MAX_SEGMENTS)
            .find(|slot| !slots.used[*slot]);
        let Some(slot) = free else {
            return Err(Error::Engine(self.full()));
        };
        slots.used[slot] = true;
        slots.last = slot;
        // Below MAX_SEGMENTS, which is 4,096.
        Ok(slot as u16)
    }

    /// What is said to who would write.
    pub(super) fn full(&self) -> String {
        format!(
            "the log has as many files as it may ({} by embedded.files); it takes deletions until compaction has made room",
            self.most
        )
    }

    pub(super) fn free_slot(&self, slot: u16) {
        if let Some(used) = self.cursor.lock().used.get_mut(usize::from(slot)) {
            *used = false;
        }
    }

    pub(super) fn add(&self, segment: &Arc<Segment>) {
        self.list.rcu(|list| {
            let mut list = SegmentList::clone(list);
            list.add(segment.clone());
            list
        });
    }

    pub(super) fn remove(&self, segment: &Segment) {
        self.list.rcu(|list| {
            let mut list = SegmentList::clone(list);
            list.remove(segment);
            list
        });
        self.free_slot(segment.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::Name;
    use super::*;

    /// Whatever files there are, those are left out that cover others.
    #[test]
    fn copies_are_left_out_while_their_originals_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let mut slot = 0;
        for (files, expected) in [
            (&[(1, 1, 0), (2, 2, 0), (1, 2, 1)][..], 2),
            (&[(1, 2, 1), (3, 3, 0)], 2),
            (&[(1, 1, 0), (2, 5, 1), (2, 2, 0), (5, 5, 0), (6, 6, 0)], 4),
            (&[(1, 3, 1), (1, 5, 2), (4, 5, 1), (6, 6, 0)], 3),
            (&[(1, 5, 2), (6, 7, 1), (8, 8, 0)], 3),
        ] {
            let mut list = SegmentList::default();
            for (first, last, generation) in files {
                let name = Name {
                    first: *first,
                    last: *last,
                    generation: *generation,
                };
                slot += 1;
                let path = directory.path().join(format!("{slot}"));
                list.add(Arc::new(Segment::create(path, name, slot, 0).unwrap()));
            }
            let found: Vec<Name> = list.originals().into_iter().map(|segment| segment.name).collect();
            let all = list.in_order().iter().map(|segment| segment.name);
            let slow: Vec<Name> = all
                .clone()
                .filter(|name| !all.clone().any(|other| other.is_replaced_by(*name)))
                .collect();
            assert_eq!(found, slow);
            assert_eq!(found.len(), expected, "{files:?}");
        }
    }
}
