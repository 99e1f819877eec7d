//! Changes: a block is rebuilt and its pointer replaced.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::{Map, State};
use crate::block::{Entry, OwnedBlock};
use crate::error::{Damaged, Error};
use crate::key::{BLOCK_BITS, Key};
use crate::overlay::Changed;
use crate::sets::{DestinationSet, SetError};

/// A change of one number. Each can be applied again with the same result, so a journal may be replayed from an earlier
/// position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The number has this set from now on.
    Put {
        /// The number.
        key: Key,
        /// Its destinations.
        set: DestinationSet,
    },
    /// The number is unknown from now on; also when it was before.
    Remove {
        /// The number.
        key: Key,
    },
}

impl Change {
    /// The number.
    #[must_use]
    pub const fn key(&self) -> Key {
        match self {
            Self::Put { key, .. } | Self::Remove { key } => *key,
        }
    }
}

/// Where changes are durable before they are visible and acknowledged. The map has no storage of its own for them.
pub trait Journal {
    /// Appends changes as one unit, in a form that [`Map::replay`] gets back; returns the position behind them when they are
    /// durable.
    ///
    /// # Errors
    /// When they are not; the map stays as it was.
    fn append(&mut self, changes: &[Change]) -> io::Result<u64>;

    /// Drops what lies before a position: a checkpoint has it.
    ///
    /// # Errors
    /// When the storage refuses. What is kept longer does no harm.
    fn trim(&mut self, position: u64) -> io::Result<()>;
}

/// A journal that keeps nothing, for a map whose owner can change it again from elsewhere. Changes count as positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal(u64);

impl Journal for NoJournal {
    fn append(&mut self, _: &[Change]) -> io::Result<u64> {
        self.0 += 1;
        Ok(self.0)
    }

    fn trim(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Changed values by block, and by position in it.
type Blocks = BTreeMap<u64, BTreeMap<u16, Option<u16>>>;

/// Blocks to come, by number.
type Rebuilt = Vec<(u64, OwnedBlock)>;

impl Map {
    /// Applies changes, of which the last one of a number counts. They are durable in `journal` before a reader sees them;
    /// readers see the changes of a block together, those of several blocks one block after another.
    ///
    /// # Errors
    /// When a number's block is damaged, there are too many destination sets, or the journal refuses. Nothing has changed
    /// then.
    pub fn change(&self, changes: &[Change], journal: &mut impl Journal) -> Result<(), Error> {
        let mut state = self.writer.lock();
        let rebuilt = self.rebuilt(&mut state, changes)?;
        let position = journal.append(changes).map_err(Error::Journal)?;
        self.publish(&mut state, rebuilt, position);
        Ok(())
    }

    /// Applies changes that a journal has returned, which end at `position` in it.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn replay(&self, changes: &[Change], position: u64) -> Result<(), Error> {
        let mut state = self.writer.lock();
        let rebuilt = self.rebuilt(&mut state, changes)?;
        self.publish(&mut state, rebuilt, position);
        Ok(())
    }

    /// Applies those changes that can be applied, and returns the others, each with the reason.
    pub fn replay_possible(&self, changes: &[Change], position: u64) -> Vec<(Key, Error)> {
        let mut state = self.writer.lock();
        let mut refused = Vec::new();
        let mut blocks = Blocks::new();
        for change in changes {
            match value(&mut state, change) {
                Ok(value) => note(&mut blocks, change.key(), value),
                Err(error) => refused.push((change.key(), error.into())),
            }
        }
        let mut rebuilt = Rebuilt::new();
        for (block, changes) in blocks {
            match self.entries(block) {
                Ok(entries) => rebuilt.push((block, OwnedBlock::encode(&merged(&entries, &changes)))),
                Err(damaged) => refused.extend(changes.keys().filter_map(|low| {
                    let key = Key::from_raw(block << BLOCK_BITS | u64::from(*low))?;
                    Some((key, damaged.into()))
                })),
            }
        }
        self.publish(&mut state, rebuilt, position);
        refused
    }

    fn rebuilt(&self, state: &mut State, changes: &[Change]) -> Result<Rebuilt, Error> {
        let mut blocks = Blocks::new();
        for change in changes {
            let value = value(state, change)?;
            note(&mut blocks, change.key(), value);
        }
        let rebuilt = blocks.into_iter().map(|(block, changes)| {
            let entries = self.entries(block)?;
            Ok((block, OwnedBlock::encode(&merged(&entries, &changes))))
        });
        rebuilt.collect()
    }

    /// The entries of a block as it is now.
    pub(super) fn entries(&self, block: u64) -> Result<Vec<Entry>, Damaged> {
        let changed = self.overlay.read(block, |changed| changed.entries(block));
        changed.unwrap_or_else(|| self.base.entries(block))
    }

    fn publish(&self, state: &mut State, rebuilt: Rebuilt, position: u64) {
        // Before the blocks: a reader who finds a value finds its set.
        if self.sets.load().len() != state.sets.all().len() {
            self.sets.store(Arc::new(state.sets.all().to_vec()));
        }
        for (block, owned) in rebuilt {
            self.overlay
                .replace(block, Changed::Block(owned), || self.base.count_of(block));
        }
        state.position = position;
    }
}

/// What a number has from now on. A set that a refused change has added stays in the table: it takes a place, and no number has
/// it.
fn value(state: &mut State, change: &Change) -> Result<Option<u16>, SetError> {
    match change {
        Change::Put { set, .. } => state.sets.intern(set).map(|id| Some(id.0)),
        Change::Remove { .. } => Ok(None),
    }
}

fn note(blocks: &mut Blocks, key: Key, value: Option<u16>) {
    blocks.entry(key.block()).or_default().insert(key.low(), value);
}

/// Entries with changes, in order.
fn merged(entries: &[Entry], changes: &BTreeMap<u16, Option<u16>>) -> Vec<Entry> {
    let mut all = Vec::with_capacity(entries.len() + changes.len());
    let mut rest = entries;
    for (low, value) in changes {
        let before = rest.partition_point(|(entry, _)| entry < low);
        all.extend_from_slice(&rest[..before]);
        all.extend(value.map(|value| (*low, value)));
        let replaced = rest.get(before).is_some_and(|(entry, _)| entry == low);
        rest = &rest[before + usize::from(replaced)..];
    }
    all.extend_from_slice(rest);
    all
}
