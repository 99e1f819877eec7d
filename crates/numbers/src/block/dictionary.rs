//! The values of a block, each once.

use super::Entry;
use crate::bits::width;

/// The distinct values of a block, as a bitmap with ranks.
#[derive(Debug)]
pub(super) struct Dictionary {
    words: Vec<u64>,
    /// Values before each word.
    ranks: Vec<u32>,
    length: u32,
}

impl Dictionary {
    pub(super) fn new(entries: &[Entry]) -> Self {
        let highest = entries.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let mut words = vec![0_u64; usize::from(highest) / 64 + 1];
        for (_, value) in entries {
            words[usize::from(*value) / 64] |= 1 << (value % 64);
        }
        let mut length = 0;
        let ranks = words.iter().map(|word| {
            let before = length;
            length += word.count_ones();
            before
        });
        let ranks = ranks.collect();
        Self { words, ranks, length }
    }

    /// The ways to write a value: its bits, and the length of the dictionary that this needs.
    pub(super) fn choices(&self) -> impl Iterator<Item = (u8, u16)> + use<> {
        let highest = (self.words.len() as u32 - 1) * 64 + 63
            - self.words[self.words.len() - 1].leading_zeros().min(63);
        let plain = Some((width(highest) as u8, 0));
        // A dictionary of more values than a count of 16 bits saves nothing.
        let length = u16::try_from(self.length).ok().filter(|length| *length > 0);
        let indexed = length.map(|length| (width(u32::from(length) - 1) as u8, length));
        plain.into_iter().chain(indexed)
    }

    /// The values in ascending order.
    pub(super) fn values(&self) -> impl Iterator<Item = u16> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| (at * 64 + bit) as u16)
        })
    }

    /// The index of a value that is in it.
    pub(super) fn index(&self, value: u16) -> u32 {
        let at = usize::from(value) / 64;
        let below = self.words[at] & ((1 << (value % 64)) - 1);
        self.ranks[at] + below.count_ones()
    }
}
