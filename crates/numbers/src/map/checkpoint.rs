//! Checkpoints: changed blocks, or all of them, as a file.

use std::path::Path;

use super::{Journal, Map};
use crate::block::{Block, Entry, OwnedBlock};
use crate::error::{Damaged, Error};
use crate::file::{Base, Writer, Written};
use crate::key::{BLOCK_BITS, Key};
use crate::overlay::{Blocks, Changed, Overlay};
use crate::sets::{DestinationSet, MOST_SETS, Sets};

impl Map {
    /// Writes the blocks that were changed since the base was written to `path`, from which [`Map::open`] takes them, and
    /// trims the journal. Changes and look-ups go on meanwhile; changes during the writing stay in the journal. The file is
    /// there as a whole or as it was before.
    ///
    /// # Errors
    /// When the system refuses, or a changed block is damaged: its file must be replaced by a new import.
    pub fn checkpoint(&self, path: &Path, journal: &mut impl Journal) -> Result<Written, Error> {
        let (sets, position, blocks) = self.snapshot();
        let mut writer = Writer::with_sets(path, sets)?;
        for (block, changed) in blocks {
            writer.push_block(block, sound(block, &changed)?)?;
        }
        let written = writer.finish_as(self.base.identity(), position)?;
        journal.trim(position).map_err(Error::Journal)?;
        Ok(written)
    }

    /// Writes all numbers to `path` as a new base, which has the changes up to the position that its header names. Where more
    /// than half of [`MOST_SETS`] are in the table, the base is without those that no number has.
    ///
    /// # Errors
    /// When the system refuses, or a block is damaged.
    pub fn rewrite(&self, path: &Path) -> Result<Written, Error> {
        let (sets, position, blocks) = self.snapshot();
        let kept = if sets.all().len() > MOST_SETS / 2 {
            self.used(&sets, blocks.clone())?
        } else {
            None
        };
        let (sets, ids) = kept.map_or((sets, None), |(sets, ids)| (sets, Some(ids)));
        let mut writer = Writer::with_sets(path, sets)?;
        self.each_block(blocks, &mut |block, view, sum| {
            // A block without a number is left out of a base.
            if view.head.count == 0 {
                return Ok(());
            }
            let Some(ids) = &ids else {
                let sum = sum.unwrap_or_else(|| crc32c::crc32c(view.bytes));
                return writer.push_bytes(block, view.head, view.bytes, sum);
            };
            let mut entries = entries_of(block, view)?;
            for (_, value) in &mut entries {
                *value = ids.get(usize::from(*value)).copied().unwrap_or(*value);
            }
            writer.push_block(block, &OwnedBlock::encode(&entries))
        })?;
        writer.finish_as(0, position)
    }

    /// The sets that numbers have, and for each set of the table its new identity; none where numbers have all of them.
    fn used(&self, sets: &Sets, blocks: Blocks) -> Result<Option<(Sets, Vec<u16>)>, Error> {
        let mut used = vec![false; sets.all().len()];
        self.each_block(blocks, &mut |block, view, _| {
            for (_, value) in entries_of(block, view)? {
                // Only forged bytes have no set here.
                let place = used.get_mut(usize::from(value));
                *place.ok_or(Damaged { block, offset: 0 })? = true;
            }
            Ok(())
        })?;
        Ok(used.contains(&false).then(|| sets.kept(&used)))
    }

    /// Hands each block to `each` as it is now, in ascending order; those of the base with their checksums.
    fn each_block(
        &self,
        blocks: Blocks,
        each: &mut impl FnMut(u64, Block<'_>, Option<u32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut changed = blocks.peekable();
        for (block, sum, view) in self.base.blocks() {
            while let Some((before, owned)) = changed.next_if(|(changed, _)| *changed < block) {
                each(before, sound(before, &owned)?.view(), None)?;
            }
            match changed.next_if(|(changed, _)| *changed == block) {
                Some((_, owned)) => each(block, sound(block, &owned)?.view(), None)?,
                None => each(block, view?, Some(sum))?,
            }
        }
        for (block, owned) in changed {
            each(block, sound(block, &owned)?.view(), None)?;
        }
        Ok(())
    }

    /// Calls `each` for every number with its set, in ascending order, and `damaged` for every block that cannot be read.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn for_each<E>(
        &self,
        mut each: impl FnMut(Key, &DestinationSet) -> Result<(), E>,
        mut damaged: impl FnMut(Damaged),
    ) -> Result<(), E> {
        let mut blocks: Vec<u64> = self.base.blocks().map(|(block, _, _)| block).collect();
        blocks.extend(self.overlay.snapshot().map(|(block, _)| block));
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            let entries = match self.entries(block) {
                Ok(entries) => entries,
                Err(error) => {
                    damaged(error);
                    continue;
                }
            };
            let sets = self.sets.load();
            for (low, value) in entries {
                let key = Key::from_raw(block << BLOCK_BITS | u64::from(low));
                // Only forged bytes have no key or set here.
                let set = sets.get(usize::from(value));
                if let (Some(key), Some(set)) = (key, set) {
                    each(key, set)?;
                }
            }
        }
        Ok(())
    }

    /// Sets, position and changed blocks that belong together.
    fn snapshot(&self) -> (Sets, u64, Blocks) {
        let state = self.writer.lock();
        (state.sets.clone(), state.position, self.overlay.snapshot())
    }
}

fn entries_of(block: u64, view: Block<'_>) -> Result<Vec<Entry>, Damaged> {
    view.entries().ok_or(Damaged { block, offset: 0 })
}

fn sound(block: u64, changed: &Changed) -> Result<&OwnedBlock, Damaged> {
    match changed {
        Changed::Block(owned) => Ok(owned),
        Changed::Damaged(offset) => Err(Damaged {
            block,
            offset: *offset,
        }),
    }
}

/// Takes the blocks of a file of changes to a base.
pub(super) fn load(changes: &Base, base: &Base, overlay: &Overlay, warnings: &mut Vec<String>) {
    for (block, _, view) in changes.blocks() {
        let changed = match view {
            Ok(view) => Changed::Block(OwnedBlock {
                head: view.head,
                bytes: view.bytes.into(),
            }),
            // The base's block is out of date: its numbers are refused, not answered as they were.
            Err(damaged) => {
                warnings.push(format!("{}: {damaged}", changes.path().display()));
                Changed::Damaged(damaged.offset)
            }
        };
        overlay.replace(block, changed, || base.count_of(block));
    }
}
