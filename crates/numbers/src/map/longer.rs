//! Whether there are numbers that continue others: by that an incomplete number differs from an unknown one.

use super::Map;
use crate::error::Damaged;
use crate::key::{Key, MOST_DIGITS};
use crate::overlay::Changed;

/// Blocks of the base, and changed ones, that are checked for one length of numbers. All of them are empty by now where none has
/// an answer.
const MOST_BLOCKS: usize = 1_024;

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
        for (checked, block) in base.iter().enumerate() {
            if checked == MOST_BLOCKS {
                return Ok(true);
            }
            if self.overlay.read(*block, |_| ()).is_some() {
                continue;
            }
            let (from, to) = range(*block);
            if (from, to) == (0, u16::MAX) || self.base.has_between(*block, from, to)? {
                return Ok(true);
            }
        }
        let mut checked = 0;
        let changed = self.overlay.find_between(first.block(), last.block(), |block| {
            checked += 1;
            let (from, to) = range(block);
            match self.has_changed(block, from, to) {
                Ok(false) => (checked == MOST_BLOCKS).then_some(Ok(true)),
                found => Some(found),
            }
        });
        changed.unwrap_or(Ok(false))
    }

    /// Whether a changed block has a number in a range of its low bits.
    fn has_changed(&self, block: u64, from: u16, to: u16) -> Result<bool, Damaged> {
        let found = self.overlay.read(block, |changed| {
            let damaged = |offset| Damaged { block, offset };
            match changed {
                Changed::Block(owned) => owned.view().has_between(from, to).ok_or(damaged(0)),
                Changed::Damaged(offset) => Err(damaged(*offset)),
            }
        });
        found.unwrap_or(Ok(false))
    }
}
