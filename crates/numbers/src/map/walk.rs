//! All numbers in ascending order, as they are at one moment.

use std::sync::Arc;

use super::Map;
use crate::block::Entry;
use crate::error::Damaged;
use crate::file::Base;
use crate::key::{BLOCK_BITS, Key};
use crate::overlay::{Changed, Overlay};
use crate::sets::DestinationSet;

/// The numbers of a map as they were when [`Map::walk`] returned it, in ascending order with their sets, whatever is changed
/// meanwhile. It shares the memory of the map. A damaged block is an error in the place of its numbers.
#[derive(Debug)]
pub struct Walk {
    base: Arc<Base>,
    sets: Arc<Vec<Arc<DestinationSet>>>,
    changed: Vec<(u64, Arc<Changed>)>,
    position: u64,
    after: Option<Key>,
    /// The last block that it has.
    last: u64,
    /// Where it is among the blocks of the base, and among the changed ones.
    at: (usize, usize),
    block: u64,
    entries: std::vec::IntoIter<Entry>,
}

impl Map {
    /// All numbers above `after`, or all numbers.
    #[must_use]
    pub fn walk(&self, after: Option<Key>) -> Walk {
        let mut walk = self.walk_by(after, |overlay, _| (overlay.snapshot(), u64::MAX));
        let first = after.map_or(0, Key::block);
        walk.at.1 = walk.changed.partition_point(|(block, _)| *block < first);
        walk
    }

    /// The first numbers above `after`, or the first of all: `count` of them, or more, or all that there are. Of the changed
    /// blocks it shares only those that these need.
    #[must_use]
    pub fn walk_first(&self, after: Option<Key>, count: usize) -> Walk {
        self.walk_by(after, |overlay, first| overlay.first(first, count))
    }

    /// A walk with those changed blocks that `take` returns, up to its block.
    fn walk_by(
        &self,
        after: Option<Key>,
        take: impl FnOnce(&Overlay, u64) -> (Vec<(u64, Arc<Changed>)>, u64),
    ) -> Walk {
        let first = after.map_or(0, Key::block);
        let state = self.writer.lock();
        let (sets, position) = (self.sets.load_full(), state.position);
        let (changed, last) = take(&self.overlay, first);
        drop(state);
        let base = self.base.all_blocks();
        Walk {
            base: Arc::clone(&self.base),
            sets,
            changed,
            position,
            after,
            last,
            at: (base.partition_point(|block| *block < first), 0),
            block: 0,
            entries: Vec::new().into_iter(),
        }
    }

    /// How many numbers there are. Reads no block of the base.
    #[must_use]
    pub fn count(&self) -> u64 {
        let changed = self.overlay.snapshot();
        let replaced: u64 = changed.iter().map(|(block, _)| self.base.count_of(*block)).sum();
        let now: u64 = changed
            .iter()
            .map(|(_, changed)| match &**changed {
                Changed::Block(owned) => u64::from(owned.head.count),
                Changed::Damaged(_) => 0,
            })
            .sum();
        (self.base.numbers() + now).saturating_sub(replaced)
    }
}

impl Walk {
    /// The position in the journal up to which changes are in it.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The next block with its entries.
    fn take_block(&mut self) -> Option<(u64, Result<Vec<Entry>, Damaged>)> {
        let (of_base, of_changed) = &mut self.at;
        let base = self.base.all_blocks().get(*of_base).copied();
        let changed = self.changed.get(*of_changed);
        let block = base.into_iter().chain(changed.map(|(block, _)| *block)).min()?;
        if block > self.last {
            return None;
        }
        *of_base += usize::from(base == Some(block));
        let Some((_, changed)) = changed.filter(|(changed, _)| *changed == block) else {
            return Some((block, self.base.entries(block)));
        };
        *of_changed += 1;
        Some((block, changed.entries(block)))
    }
}

impl Iterator for Walk {
    type Item = Result<(Key, Arc<DestinationSet>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            for (low, value) in self.entries.by_ref() {
                let key = Key::from_raw(self.block << BLOCK_BITS | u64::from(low));
                // Only forged bytes have no key or set here.
                if let (Some(key), Some(set)) = (key, self.sets.get(usize::from(value)))
                    && self.after.is_none_or(|after| key > after)
                {
                    return Some(Ok((key, Arc::clone(set))));
                }
            }
            let (block, entries) = self.take_block()?;
            match entries {
                Ok(entries) => (self.block, self.entries) = (block, entries.into_iter()),
                Err(damaged) => return Some(Err(damaged)),
            }
        }
    }
}
