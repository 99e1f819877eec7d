//! All numbers in ascending order, as they are at one moment.

use std::iter::Peekable;
use std::sync::Arc;

use super::Map;
use crate::block::Entry;
use crate::error::Damaged;
use crate::file::Base;
use crate::key::{BLOCK_BITS, Key};
use crate::overlay::{Blocks, Changed, Overlay};
use crate::sets::DestinationSet;

/// The numbers of a map as they were when [`Map::walk`] returned it, in ascending order with their sets, whatever is changed
/// meanwhile. It shares the memory of the map, and keeps of it what is changed until it is dropped. A damaged block is an error
/// in the place of its numbers.
#[derive(Debug)]
pub struct Walk {
    base: Arc<Base>,
    sets: Arc<Vec<Arc<DestinationSet>>>,
    changed: Peekable<Changes>,
    position: u64,
    after: Option<Key>,
    /// The last block that it has.
    last: u64,
    /// Where it is among the blocks of the base.
    at: usize,
    block: u64,
    entries: std::vec::IntoIter<Entry>,
}

/// Changed blocks in ascending order.
#[derive(Debug)]
enum Changes {
    All(Blocks),
    First(std::vec::IntoIter<(u64, Arc<Changed>)>),
}

impl Iterator for Changes {
    type Item = (u64, Arc<Changed>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::All(blocks) => blocks.next(),
            Self::First(blocks) => blocks.next(),
        }
    }
}

impl Map {
    /// All numbers above `after`, or all numbers.
    #[must_use]
    pub fn walk(&self, after: Option<Key>) -> Walk {
        self.walk_by(after, |overlay, first| {
            (Changes::All(overlay.snapshot().starting_at(first)), u64::MAX)
        })
    }

    /// The first numbers above `after`, or the first of all: `count` of them, or more, or all that there are. Of the changed
    /// blocks it shares only those that these need.
    #[must_use]
    pub fn walk_first(&self, after: Option<Key>, count: usize) -> Walk {
        self.walk_by(after, |overlay, first| {
            let (blocks, last) = overlay.first(first, count);
            (Changes::First(blocks.into_iter()), last)
        })
    }

    /// A walk with those changed blocks that `take` returns, up to its block.
    fn walk_by(&self, after: Option<Key>, take: impl FnOnce(&Overlay, u64) -> (Changes, u64)) -> Walk {
        let first = after.map_or(0, Key::block);
        let state = self.writer.lock();
        let (sets, position) = (self.sets.load_full(), state.position);
        let (changed, last) = take(&self.overlay, first);
        drop(state);
        let base = self.base.all_blocks();
        Walk {
            base: Arc::clone(&self.base),
            sets,
            changed: changed.peekable(),
            position,
            after,
            last,
            at: base.partition_point(|block| *block < first),
            block: 0,
            entries: Vec::new().into_iter(),
        }
    }

    /// How many numbers there are. Reads no block.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.base.numbers().saturating_add_signed(self.overlay.numbers())
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
        let base = self.base.all_blocks().get(self.at).copied();
        let changed = self.changed.peek().map(|(block, _)| *block);
        let block = base.into_iter().chain(changed).min()?;
        if block > self.last {
            return None;
        }
        self.at += usize::from(base == Some(block));
        match self.changed.next_if(|(changed, _)| *changed == block) {
            Some((_, changed)) => Some((block, changed.entries(block))),
            None => Some((block, self.base.entries(block))),
        }
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
