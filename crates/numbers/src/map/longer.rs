//! Whether there are numbers that continue others: by that an incomplete number differs from an unknown one.

use super::Map;
use crate::error::Damaged;
use crate::key::{BLOCK_BITS, Key, MOST_DIGITS};
use crate::overlay::Changed;

/// Blocks of the base that are checked for one length of numbers. All of them are empty by now where none has an answer.
const MOST_BLOCKS: usize = 1_024;
/// Numbers that are looked up one by one; a wider part of a block is decoded.
const ONE_BY_ONE: u16 = 16;

impl Map {
    /// Whether a number is known that begins with the digits of `prefix` and has more of them. Where thousands of neighbouring
    /// blocks were emptied by changes, the answer may be that there is one.
    ///
    /// # Errors
    /// When a block that may have it is damaged.
    pub fn has_longer(&self, prefix: Key) -> Result<bool, Damaged> {
        let mut width = 1;
        for length in prefix.length() + 1..=MOST_DIGITS {
            width *= 10;
            let from = prefix.number() * width;
            let ends =
                [from, from + (width - 1)].map(|number| Key::from_number(prefix.kind(), length, number));
            if let [Some(first), Some(last)] = ends
                && self.has_between(first, last)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a number from `first` to `last` is known, both of the same kind and length.
    fn has_between(&self, first: Key, last: Key) -> Result<bool, Damaged> {
        let range = |block: u64| {
            let from = if block == first.block() { first.low() } else { 0 };
            let to = if block == last.block() {
                last.low()
            } else {
                u16::MAX
            };
            (from, to)
        };
        let base = self.base.blocks_between(first.block(), last.block());
        for (looked, block) in base.iter().enumerate() {
            if looked == MOST_BLOCKS {
                return Ok(true);
            }
            if self.overlay.read(*block, |_| ()).is_some() {
                continue;
            }
            let range = range(*block);
            if range == (0, u16::MAX) || self.has_low(*block, range)? {
                return Ok(true);
            }
        }
        let changed = self.overlay.find_between(first.block(), last.block(), |block| {
            match self.has_low(block, range(block)) {
                Ok(false) => None,
                found => Some(found),
            }
        });
        changed.unwrap_or(Ok(false))
    }

    /// Whether a block has a number in a range of its low bits.
    fn has_low(&self, block: u64, (from, to): (u16, u16)) -> Result<bool, Damaged> {
        if (from, to) == (0, u16::MAX) {
            let count = self.overlay.read(block, |changed| match changed {
                Changed::Block(owned) => Some(owned.head.count),
                Changed::Damaged(_) => None,
            });
            if let Some(Some(count)) = count {
                return Ok(count > 0);
            }
        }
        if to - from < ONE_BY_ONE {
            for low in from..=to {
                if let Some(key) = Key::from_raw(block << BLOCK_BITS | u64::from(low))
                    && self.find(key)?.is_some()
                {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let entries = self.entries(block)?;
        Ok(entries.iter().any(|(low, _)| (from..=to).contains(low)))
    }
}
