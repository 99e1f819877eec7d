//! An index by time in memory: records in the order of a number, 16 bytes each and what the tree takes besides.
//!
//! The index of a table's expiry ([`crate::Record::EXPIRY`]), of which each record has an entry. It knows the time and what the primary
//! index makes of the primary key ([`super::hash_index::HashIndex::hash`]), which leads to the record: neither a write that leaves the
//! time as it is nor compaction changes it, and long primary keys do not count.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use parking_lot::{RwLock, RwLockWriteGuard};

use super::capture::{Captures, Kept};
use super::checkpoint::Sharded;

/// Bits of a hash that choose the shard: a capture copies one at a time.
const SHARD_BITS: u32 = 8;
/// Bytes of memory that an entry takes: 18 where a checkpoint was read, 33 where entries have come in order.
const ENTRY: usize = 24;

/// A time, and the hash of a primary key.
pub(super) type Moment = (u64, u64);

/// The index.
pub(super) struct TimeIndex {
    shards: Box<[RwLock<Shard>]>,
    captures: Captures,
}

/// A part of an index.
#[derive(Default)]
struct Shard {
    moments: BTreeSet<Moment>,
    kept: Kept<Moment>,
}

impl Default for TimeIndex {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| RwLock::default()).collect(),
            captures: Captures::default(),
        }
    }
}

/// The time of a key: its first eight bytes as a number.
pub(super) fn time_of(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

impl TimeIndex {
    /// The shard of a hash, before a change.
    fn change_of(&self, hash: u64) -> RwLockWriteGuard<'_, Shard> {
        // The upper bits: as many as choose among the shards.
        let mut guard = self.shards[(hash >> (64 - SHARD_BITS)) as usize].write();
        let shard = &mut *guard;
        shard
            .kept
            .keep(self.captures.last(), shard.moments.iter().copied());
        guard
    }

    pub(super) fn insert(&self, moment: Moment) {
        self.change_of(moment.1).moments.insert(moment);
    }

    pub(super) fn remove(&self, moment: Moment) {
        self.change_of(moment.1).moments.remove(&moment);
    }

    /// Entries in order that come after `after` and are not before `from`, up to before `to`; at most `limit`.
    pub(super) fn page(
        &self,
        after: Option<Moment>,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Vec<Moment> {
        let first = (time_of(from), 0);
        let is_wanted = |moment: &&Moment| {
            after.is_none_or(|after| **moment > after) && moment.0.to_be_bytes().as_slice() >= from
        };
        let is_before = |moment: &Moment| to.is_none_or(|to| moment.0.to_be_bytes().as_slice() < to);
        let begin = after.map_or(first, |after| after.max(first));
        let shards: Vec<_> = self.shards.iter().map(RwLock::read).collect();
        let mut heads = BinaryHeap::new();
        let mut ranges: Vec<_> = shards.iter().map(|shard| shard.moments.range(begin..)).collect();
        for (number, range) in ranges.iter_mut().enumerate() {
            heads.extend(range.find(is_wanted).map(|moment| Reverse((*moment, number))));
        }
        let mut page = Vec::new();
        while page.len() < limit
            && let Some(Reverse((moment, number))) = heads.pop()
            && is_before(&moment)
        {
            page.push(moment);
            let next = ranges.get_mut(number).and_then(Iterator::next);
            heads.extend(next.map(|moment| Reverse((*moment, number))));
        }
        page
    }

    /// Bytes of memory, about.
    pub(super) fn memory(&self) -> usize {
        let entries = self.shards.iter().map(|shard| shard.read().moments.len());
        entries.sum::<usize>() * ENTRY
    }
}

impl Sharded for TimeIndex {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn begin_capture(&self) {
        self.captures.begin();
    }

    fn capture(&self, shard: usize, out: &mut Vec<u8>) -> usize {
        let Some(shard) = self.shards.get(shard) else {
            return 0;
        };
        let shard = &mut *shard.write();
        let before = out.len();
        let moments = shard.moments.iter().copied();
        shard.kept.take(self.captures.last(), moments, |(time, hash)| {
            out.extend(time.to_le_bytes());
            out.extend(hash.to_le_bytes());
        });
        (out.len() - before) / size_of::<u64>()
    }

    fn end_capture(&self) {
        for shard in &self.shards {
            shard.write().kept.end(self.captures.last());
        }
    }

    /// Entries have no places: the slots of files do not count.
    fn restore(&self, shard: usize, words: &[u8], _: &[Option<u16>]) -> bool {
        let (moments, rest) = words.as_chunks::<16>();
        let (Some(shard), []) = (self.shards.get(shard), rest) else {
            return false;
        };
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let moments = moments
            .iter()
            .map(|bytes| (number(&bytes[..8]), number(&bytes[8..])));
        // They are in order, so that the tree is built at once, and dense.
        shard.write().moments = moments.collect();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(index: &TimeIndex) -> Vec<Vec<u8>> {
        let shards = 0..index.shards();
        let one = |shard| {
            let mut words = Vec::new();
            assert_eq!(index.capture(shard, &mut words) * 8, words.len());
            words
        };
        shards.map(one).collect()
    }

    fn restored(shards: &[Vec<u8>]) -> TimeIndex {
        let index = TimeIndex::default();
        let restore = |(shard, words): (usize, &Vec<u8>)| index.restore(shard, words, &[]);
        assert!(shards.iter().enumerate().all(restore));
        index
    }

    /// A hash for a number: its upper bits vary.
    fn hash(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_capture_is_of_the_moment_it_began() {
        let index = TimeIndex::default();
        (0..10_000).for_each(|number| index.insert((number, hash(number))));
        for round in 0..3 {
            let before = index.page(None, &[], None, usize::MAX);
            index.begin_capture();
            let (mut shards, mut changed) = (Vec::new(), 0);
            for shard in 0..index.shards() {
                let mut words = Vec::new();
                index.capture(shard, &mut words);
                shards.push(words);
                for number in (changed..10_000).take(40) {
                    changed = number + 1;
                    index.remove((number + round * 1_000_000, hash(number)));
                    index.insert((number + (round + 1) * 1_000_000, hash(number)));
                }
            }
            assert_eq!(changed, 10_000);
            assert_eq!(restored(&shards).page(None, &[], None, usize::MAX), before);
        }
        index.begin_capture();
        index.insert((1, 1));
        index.end_capture();
        index.begin_capture();
        assert_eq!(restored(&captured(&index)).page(None, &[], None, 1), [(1, 1)]);
        assert!(!index.restore(1 << SHARD_BITS, &[], &[]) && !index.restore(0, &[0; 15], &[]));
    }

    proptest! {
        /// Pages hold what a sorted list has in the range, whatever their length.
        #[test]
        fn pages_are_in_order_and_complete(
            times in proptest::collection::vec(0u64..50, 0..200),
            removed in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
            (from, to) in (0u64..50, 0u64..50),
            limit in 1usize..20,
        ) {
            let index = TimeIndex::default();
            let all: Vec<Moment> = times.iter().zip(0..).map(|(time, number)| (*time, hash(number))).collect();
            let mut held: BTreeSet<Moment> = all.iter().copied().collect();
            all.iter().for_each(|moment| index.insert(*moment));
            for at in removed.iter().filter(|_| !all.is_empty()) {
                let moment = *at.get(&all);
                held.remove(&moment);
                index.remove(moment);
            }
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = index.page(after, &from.to_be_bytes(), Some(&to.to_be_bytes()), limit);
                prop_assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                after = Some(*last);
                seen.extend(page);
            }
            let expected: Vec<Moment> = held.into_iter().filter(|(time, _)| (from..to).contains(time)).collect();
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_bound_of_another_length_than_a_time_cuts_where_its_bytes_do() {
        let index = TimeIndex::default();
        (0..4).for_each(|time| index.insert((time << 56, 7)));
        let times = |from: &[u8], to: Option<&[u8]>| -> Vec<u64> {
            let page = index.page(None, from, to, 10);
            page.into_iter().map(|(time, _)| time >> 56).collect()
        };
        assert_eq!(times(&[1], Some(&[3])), [1, 2]);
        // Longer than the key of that time, and so behind it.
        assert_eq!(
            times(&[1, 0, 0, 0, 0, 0, 0, 0, 0], Some(&[2, 0, 0, 0, 0, 0, 0, 0, 0])),
            [2]
        );
        assert_eq!(times(&[], None), [0, 1, 2, 3]);
    }
}
