//! Checkpoints: changed blocks, or all of them, as a file.

use std::path::Path;

use super::{Journal, Map};
use crate::block::OwnedBlock;
use crate::error::{Damaged, Error};
use crate::file::{Base, Writer, Written};
use crate::key::{BLOCK_BITS, Key};
use crate::overlay::{Blocks, Changed, Overlay};
use crate::sets::{DestinationSet, Sets};

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

    /// Writes all numbers to `path` as a new base, which has the changes up to the position that its header names.
    ///
    /// # Errors
    /// When the system refuses, or a block is damaged.
    pub fn rewrite(&self, path: &Path) -> Result<Written, Error> {
        let (sets, position, blocks) = self.snapshot();
        let mut writer = Writer::with_sets(path, sets)?;
        let mut changed = blocks.peekable();
        for (block, sum, view) in self.base.blocks() {
            while let Some((before, owned)) = changed.next_if(|(changed, _)| *changed < block) {
                push_some(&mut writer, before, sound(before, &owned)?)?;
            }
            match changed.next_if(|(changed, _)| *changed == block) {
                Some((_, owned)) => push_some(&mut writer, block, sound(block, &owned)?)?,
                None => {
                    let view = view?;
                    writer.push_bytes(block, view.head, view.bytes, sum)?;
                }
            }
        }
        for (block, owned) in changed {
            push_some(&mut writer, block, sound(block, &owned)?)?;
        }
        writer.finish_as(0, position)
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

/// A block without a number is left out of a base.
fn push_some(writer: &mut Writer, block: u64, owned: &OwnedBlock) -> Result<(), Error> {
    match owned.head.count {
        0 => Ok(()),
        _ => writer.push_block(block, owned),
    }
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
