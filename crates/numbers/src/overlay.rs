//! Blocks that were changed since the base was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;

use crate::block::OwnedBlock;

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

type Shard = Vec<(u64, Arc<Changed>)>;

/// Changed blocks by their numbers. Readers take no lock: a shard is an immutable list behind a pointer, which one writer at
/// a time replaces.
#[derive(Debug)]
pub(crate) struct Overlay {
    shards: Box<[ArcSwapOption<Shard>]>,
    /// A bit for each shard that has a block: most look-ups read no more than this.
    used: Box<[AtomicU64]>,
    /// Bits of a hash that are not part of a shard's position.
    shift: u32,
    blocks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Overlay {
    /// An empty one beside a base of `base_blocks`.
    pub(crate) fn new(base_blocks: usize) -> Self {
        let bits = (base_blocks.max(1).ilog2() + 1).clamp(LEAST_SHARDS, MOST_SHARDS);
        Self {
            shards: (0..1 << bits).map(|_| ArcSwapOption::empty()).collect(),
            used: (0..1 << bits >> 6).map(|_| AtomicU64::new(0)).collect(),
            shift: u64::BITS - bits,
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
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
        if !self.may_have(block) {
            return None;
        }
        let shard = self.shards[self.shard(block)].load();
        let shard = shard.as_ref()?;
        let place = shard.binary_search_by_key(&block, |(block, _)| *block).ok()?;
        Some(read(&shard[place].1))
    }

    /// Puts a block in place of what was there. One writer at a time.
    pub(crate) fn replace(&self, block: u64, changed: Changed) {
        let at = self.shard(block);
        let mut list = self.shards[at].load().as_deref().cloned().unwrap_or_default();
        let size = size_of_changed(&changed);
        let changed = Arc::new(changed);
        match list.binary_search_by_key(&block, |(block, _)| *block) {
            Ok(place) => {
                let before = std::mem::replace(&mut list[place].1, changed);
                self.bytes.fetch_sub(size_of_changed(&before), Ordering::Relaxed);
            }
            Err(place) => {
                list.insert(place, (block, changed));
                self.blocks.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.bytes.fetch_add(size, Ordering::Relaxed);
        self.shards[at].store(Some(Arc::new(list)));
        // Behind the pointer, so that who sees the bit finds the block.
        self.used[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
    }

    /// All blocks in ascending order, as they are now.
    pub(crate) fn snapshot(&self) -> Shard {
        let mut all = Vec::with_capacity(self.blocks.load(Ordering::Relaxed));
        for shard in &self.shards {
            all.extend(shard.load().as_deref().into_iter().flatten().cloned());
        }
        all.sort_unstable_by_key(|(block, _)| *block);
        all
    }

    /// The shard of a block; neighbouring blocks are in different ones.
    fn shard(&self, block: u64) -> usize {
        (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Blocks, and bytes of memory that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let load = |size: &AtomicUsize| size.load(Ordering::Relaxed);
        (load(&self.blocks), load(&self.bytes))
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
