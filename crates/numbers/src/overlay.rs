//! Blocks that were changed since the base was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::block::{Entry, OwnedBlock};
use crate::error::Damaged;

/// Shards at most and at least, as powers of two. Each has a pointer of its own, and a change copies the list of one.
const MOST_SHARDS: u32 = 14;
const LEAST_SHARDS: u32 = 6;

/// A block in place of the base's.
#[derive(Debug)]
pub(crate) enum Changed {
    Block(OwnedBlock),
    /// It was changed, but the file of changes is damaged at this offset; the base's block is out of date.
    Damaged(u64),
}

impl Changed {
    /// How many numbers it has.
    fn numbers(&self) -> i64 {
        match self {
            Self::Block(owned) => i64::from(owned.head.count),
            Self::Damaged(_) => 0,
        }
    }

    /// All entries of a block that has this number.
    pub(crate) fn entries(&self, block: u64) -> Result<Vec<Entry>, Damaged> {
        match self {
            Self::Block(owned) => {
                let entries = owned.view().entries();
                entries.ok_or(Damaged { block, offset: 0 })
            }
            Self::Damaged(offset) => Err(Damaged {
                block,
                offset: *offset,
            }),
        }
    }
}

pub(crate) type Shard = Vec<(u64, Arc<Changed>)>;

/// Changed blocks by their numbers. Readers take no lock: a shard is an immutable list behind a pointer, which one writer at
/// a time replaces.
#[derive(Debug)]
pub(crate) struct Overlay {
    shards: Box<[ArcSwapOption<Shard>]>,
    /// A bit for each shard that has a block: most look-ups read no more than this.
    used: Box<[AtomicU64]>,
    /// Bits of a hash that are not part of a shard's position.
    shift: u32,
    order: Order,
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    /// Numbers of its blocks, less those of the blocks of the base that they replace.
    numbers: AtomicI64,
}

impl Overlay {
    /// An empty one beside a base of `base_blocks`.
    pub(crate) fn new(base_blocks: usize) -> Self {
        let bits = (base_blocks.max(1).ilog2() + 1).clamp(LEAST_SHARDS, MOST_SHARDS);
        Self {
            shards: (0..1 << bits).map(|_| ArcSwapOption::empty()).collect(),
            used: (0..1 << bits >> 6).map(|_| AtomicU64::new(0)).collect(),
            shift: u64::BITS - bits,
            order: Order::default(),
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            numbers: AtomicI64::new(0),
        }
    }

    /// Whether a block may be in it; false is sure.
    #[inline]
    pub(crate) fn may_have(&self, block: u64) -> bool {
        let shard = self.shard(block);
        self.used[shard / 64].load(Ordering::Acquire) >> (shard % 64) & 1 == 1
    }

    /// What `read` makes of a block that is in it.
    pub(crate) fn read<T>(&self, block: u64, read: impl FnOnce(&Changed) -> T) -> Option<T> {
        self.read_shared(block, |changed| read(changed))
    }

    #[inline]
    fn read_shared<T>(&self, block: u64, read: impl FnOnce(&Arc<Changed>) -> T) -> Option<T> {
        if !self.may_have(block) {
            return None;
        }
        let shard = self.shards[self.shard(block)].load();
        let shard = shard.as_ref()?;
        let place = shard.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        Some(read(&shard[place].1))
    }

    /// Puts a block in place of what was there: of a block of the base with this many numbers, where it was not changed before.
    /// One writer at a time.
    pub(crate) fn replace(&self, block: u64, changed: Changed, of_base: impl FnOnce() -> u64) {
        let at = self.shard(block);
        let mut list = self.shards[at].load().as_deref().cloned().unwrap_or_default();
        let (size, numbers) = (size_of_changed(&changed), changed.numbers());
        let changed = Arc::new(changed);
        let replaced = match list.binary_search_by_key(&block, |(block, _)| *block) {
            Ok(place) => {
                let before = std::mem::replace(&mut list[place].1, changed);
                self.bytes.fetch_sub(size_of_changed(&before), Ordering::Relaxed);
                before.numbers()
            }
            Err(place) => {
                list.insert(place, (block, changed));
                self.order.insert(block);
                self.blocks.fetch_add(1, Ordering::Relaxed);
                of_base().cast_signed()
            }
        };
        self.numbers.fetch_add(numbers - replaced, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        self.shards[at].store(Some(Arc::new(list)));
        // Behind the pointer, so that who sees the bit finds the block.
        self.used[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
    }

    /// The numbers of its blocks in a range, in ascending order, until `found` answers; what it has answered.
    pub(crate) fn find_between<T>(
        &self,
        first: u64,
        last: u64,
        found: impl FnMut(u64) -> Option<T>,
    ) -> Option<T> {
        if self.blocks.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.order.find_between(first, last, found)
    }

    /// All blocks in ascending order, as they are now.
    pub(crate) fn snapshot(&self) -> Blocks {
        Blocks {
            order: self.order.0.load_full(),
            shards: self.shards.iter().map(ArcSwapOption::load_full).collect(),
            shift: self.shift,
            at: (0, 0),
        }
    }

    /// Blocks in ascending order from `first` on, as they are now, until those above `first` have this count of numbers; and
    /// the block up to which these are all.
    pub(crate) fn first(&self, first: u64, numbers: usize) -> (Shard, u64) {
        let (mut some, mut count) = (Vec::new(), 0);
        let last = self.find_between(first, u64::MAX, |block| {
            let changed = self.read_shared(block, Arc::clone)?;
            if let (Changed::Block(owned), true) = (&*changed, block > first) {
                count += owned.head.count as usize;
            }
            some.push((block, changed));
            (count >= numbers).then_some(block)
        });
        (some, last.unwrap_or(u64::MAX))
    }

    fn shard(&self, block: u64) -> usize {
        shard_of(block, self.shift)
    }

    /// Numbers of its blocks, less those of the blocks of the base that they replace.
    pub(crate) fn numbers(&self) -> i64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Blocks, and bytes of memory that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let load = |size: &AtomicUsize| size.load(Ordering::Relaxed);
        (load(&self.blocks), load(&self.bytes))
    }
}

/// The shard of a block; neighbouring blocks are in different ones.
fn shard_of(block: u64, shift: u32) -> usize {
    (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// Changed blocks of one moment, in ascending order. They share the lists of the overlay: what is changed later copies the
/// lists that it changes, and nothing is copied for these.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    order: Arc<Vec<Arc<Vec<u64>>>>,
    shards: Box<[Option<Arc<Shard>>]>,
    shift: u32,
    /// The next one: its list of the order, and its place in it.
    at: (usize, usize),
}

impl Blocks {
    /// Those from this block on.
    pub(crate) fn starting_at(mut self, first: u64) -> Self {
        let list = list_of(&self.order, first);
        let before = self
            .order
            .get(list)
            .map(|list| list.partition_point(|block| *block < first));
        self.at = (list, before.unwrap_or(0));
        self
    }
}

impl Iterator for Blocks {
    type Item = (u64, Arc<Changed>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let list = self.order.get(self.at.0)?;
            let Some(block) = list.get(self.at.1).copied() else {
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            self.at.1 += 1;
            let shard = self
                .shards
                .get(shard_of(block, self.shift))
                .and_then(Option::as_ref);
            let found = shard.and_then(|shard| {
                let place = shard.binary_search_by_key(&block, |(block, _)| *block).ok()?;
                shard.get(place).cloned()
            });
            // A block that is just being added may be in the order alone.
            if found.is_some() {
                return found;
            }
        }
    }
}

fn size_of_changed(changed: &Changed) -> usize {
    // The value, the two counts of its pointer, its place in the list.
    let fixed = size_of::<Changed>() + 16 + 16;
    match changed {
        Changed::Block(block) => fixed + block.bytes.len(),
        Changed::Damaged(_) => fixed,
    }
}

/// Blocks of a list of [`Order`]; one that has more is split.
const MOST_LISTED: usize = 512;

/// The numbers of blocks in ascending order: lists, of which an insertion copies one. Readers take no lock.
#[derive(Debug, Default)]
struct Order(ArcSwap<Vec<Arc<Vec<u64>>>>);

impl Order {
    /// Adds a block that is not there. One writer at a time.
    fn insert(&self, block: u64) {
        let mut lists = Vec::clone(&self.0.load());
        let at = list_of(&lists, block);
        let mut list = lists.get(at).map(|list| Vec::clone(list)).unwrap_or_default();
        list.insert(list.partition_point(|one| *one < block), block);
        let rest = (list.len() > MOST_LISTED).then(|| list.split_off(MOST_LISTED / 2));
        let new = std::iter::once(list).chain(rest).map(Arc::new);
        lists.splice(at..(at + 1).min(lists.len()), new);
        self.0.store(Arc::new(lists));
    }

    fn find_between<T>(&self, first: u64, last: u64, found: impl FnMut(u64) -> Option<T>) -> Option<T> {
        let lists = self.0.load();
        let at = list_of(&lists, first);
        let blocks = lists.iter().skip(at).flat_map(|list| list.iter().copied());
        blocks
            .skip_while(|block| *block < first)
            .take_while(|block| *block <= last)
            .find_map(found)
    }
}

/// The list that has a block, or would have it.
fn list_of(lists: &[Arc<Vec<u64>>], block: u64) -> usize {
    lists
        .partition_point(|list| list.first().is_some_and(|first| *first <= block))
        .saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_are_found_in_order(blocks in prop::collection::btree_set(0_u64..5_000, 0..1_500), first in 0_u64..5_000, span in 0_u64..600) {
            let order = Order::default();
            // Descending and ascending by turns: insertions at both ends and between.
            let (low, high): (Vec<u64>, Vec<u64>) = blocks.iter().partition(|block| *block % 3 == 0);
            low.iter().rev().chain(&high).for_each(|block| order.insert(*block));
            let mut found = Vec::new();
            let nothing = order.find_between(first, first + span, |block| -> Option<()> { found.push(block); None });
            prop_assert!(nothing.is_none());
            let expected: Vec<u64> = blocks.range(first..=first + span).copied().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
