//! Where each block is.

use std::sync::atomic::AtomicU8;

use crate::block::Head;

/// Bytes of a block's entry in the index.
pub(super) const ENTRY: usize = 32;

/// Blocks that may be absent in a row before a new span begins: 4 bytes each cost less than a span until then.
const GAP: u64 = 64;
const ABSENT: u32 = u32::MAX;

/// A block in the index: number (8 bytes), offset (8), head (8), length (4), checksum (4).
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) sum: u32,
    pub(super) head: Head,
    /// [`UNCHECKED`], [`SOUND`] or [`DAMAGED`].
    pub(super) state: AtomicU8,
}

pub(super) const UNCHECKED: u8 = 0;
pub(super) const SOUND: u8 = 1;
pub(super) const DAMAGED: u8 = 2;

impl Slot {
    pub(super) fn encode(block: u64, offset: u64, head: Head, length: u32, sum: u32) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&block.to_le_bytes());
        bytes[8..16].copy_from_slice(&offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&head.pack().to_le_bytes());
        bytes[24..28].copy_from_slice(&length.to_le_bytes());
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; ENTRY], end: u64) -> Option<(u64, Self)> {
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        let slot = Self {
            offset: word(8),
            head: Head::unpack(word(16))?,
            length: half(24),
            sum: half(28),
            state: AtomicU8::new(UNCHECKED),
        };
        let inside = slot.offset.checked_add(u64::from(slot.length))? <= end;
        inside.then_some((word(0), slot))
    }
}

/// The blocks of a file, found by their numbers: spans of consecutive blocks by bisection, of which networks have a few, and
/// in a span by position.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The first block of each span.
    firsts: Vec<u64>,
    /// Where the positions of each span begin in `positions`.
    begins: Vec<usize>,
    /// For each block of a span, its place in `slots`.
    positions: Vec<u32>,
    pub(super) slots: Vec<Slot>,
    /// The number of each slot's block.
    pub(super) blocks: Vec<u64>,
}

impl Directory {
    /// Reads an index, whose blocks lie before `end`; `None` where it is none.
    pub(super) fn decode(bytes: &[u8], end: u64) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<ENTRY>();
        if !rest.is_empty() || entries.len() >= ABSENT as usize {
            return None;
        }
        let mut directory = Self::default();
        for entry in entries {
            let (block, slot) = Slot::decode(entry, end)?;
            if directory.blocks.last().is_some_and(|last| *last >= block) {
                return None;
            }
            directory.push(block, slot);
        }
        directory.begins.push(directory.positions.len());
        Some(directory)
    }

    fn push(&mut self, block: u64, slot: Slot) {
        match self.blocks.last() {
            Some(last) if block - last <= GAP => {
                let absent = (block - last - 1) as usize;
                self.positions.resize(self.positions.len() + absent, ABSENT);
            }
            _ => {
                self.firsts.push(block);
                self.begins.push(self.positions.len());
            }
        }
        self.positions.push(self.slots.len() as u32);
        self.slots.push(slot);
        self.blocks.push(block);
    }

    /// The place of a block in [`Self::slots`].
    pub(super) fn locate(&self, block: u64) -> Option<usize> {
        let span = self
            .firsts
            .partition_point(|first| *first <= block)
            .checked_sub(1)?;
        let within = usize::try_from(block - self.firsts[span]).ok()?;
        let positions = self.positions.get(self.begins[span]..self.begins[span + 1])?;
        let position = positions.get(within).filter(|position| **position != ABSENT)?;
        Some(*position as usize)
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.len() * (size_of::<Slot>() + 8) + self.positions.len() * 4 + self.firsts.len() * 16
    }
}
