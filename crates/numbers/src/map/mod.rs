//! A map that is asked and changed: a base and the blocks that were changed since.

mod change;
mod checkpoint;
mod explain;
mod longer;
mod walk;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use change::{Change, Journal, NoJournal};
pub use explain::{Explanation, Place, Summary};
pub use walk::Walk;

use crate::error::{Damaged, Error};
use crate::file::Base;
use crate::key::Key;
use crate::memory::Load;
use crate::overlay::{Changed, Overlay};
use crate::sets::{DestinationSet, SetId, Sets};

/// Keys of a batch that are looked up side by side.
const SIDE_BY_SIDE: usize = 16;

/// An exact map from numbers to destination sets.
///
/// Look-ups take `&self`, no lock, and may run in any number of threads while the map is changed; each sees a block as it
/// was before a change or after it. Changes are serialised.
#[derive(Debug)]
pub struct Map {
    base: Arc<Base>,
    /// Sets of the base: the first ones of the table.
    base_sets: usize,
    overlay: Overlay,
    sets: ArcSwap<Vec<Arc<DestinationSet>>>,
    writer: Mutex<State>,
    warnings: Vec<String>,
}

/// What one writer at a time has.
#[derive(Debug, Default)]
struct State {
    sets: Sets,
    /// Up to where the journal is in the map.
    position: u64,
}

impl Map {
    /// Opens a base, and the file of its changed blocks where [`Self::checkpoint`] has written one. Reads their indexes, and
    /// all of the changed blocks; blocks of the base are read and checked when they are first needed.
    ///
    /// Continue with [`Self::replay`] of the journal from [`Self::position`] on.
    ///
    /// # Errors
    /// When a file is none of ours, of another version, cut, damaged in both copies of its index, or `changes` belongs to
    /// another base.
    pub fn open(base: &Path, changes: Option<&Path>, load: Load) -> Result<Self, Error> {
        let (base, mut sets) = Base::open(base, load)?;
        if base.changes_of().is_some() {
            return Err(Error::OtherBase {
                path: base.path().to_owned(),
                base: base.path().to_owned(),
            });
        }
        let base_sets = sets.all().len();
        let overlay = Overlay::new(base.block_count());
        let mut position = base.position();
        let mut warnings = base.warnings().to_vec();
        if let Some(path) = changes {
            let (changes, with_new) = Base::open(path, Load::Copied)?;
            if changes.changes_of() != Some(base.identity()) {
                return Err(Error::OtherBase {
                    path: path.to_owned(),
                    base: base.path().to_owned(),
                });
            }
            warnings.extend(changes.warnings().iter().cloned());
            checkpoint::load(&changes, &base, &overlay, &mut warnings);
            sets = with_new;
            position = changes.position();
        }
        Ok(Self {
            base: Arc::new(base),
            base_sets,
            overlay,
            sets: ArcSwap::from_pointee(sets.all().to_vec()),
            writer: Mutex::new(State { sets, position }),
            warnings,
        })
    }

    /// A map without numbers and without a file, for changes alone.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            base: Arc::new(Base::empty()),
            base_sets: 0,
            overlay: Overlay::new(0),
            sets: ArcSwap::default(),
            writer: Mutex::default(),
            warnings: Vec::new(),
        }
    }

    /// The same base without the changes since, and without the sets that they have added. It shares the memory of the base.
    #[must_use]
    pub fn without_changes(&self) -> Self {
        let state = self.writer.lock();
        let sets = state.sets.first(self.base_sets);
        Self {
            base: Arc::clone(&self.base),
            base_sets: self.base_sets,
            overlay: Overlay::new(self.base.block_count()),
            sets: ArcSwap::from_pointee(sets.all().to_vec()),
            writer: Mutex::new(State {
                sets,
                position: self.base.position(),
            }),
            warnings: self.warnings.clone(),
        }
    }

    /// The set of a number in the base, whatever was changed since.
    ///
    /// # Errors
    /// When the number's block of the base is damaged.
    pub fn find_in_base(&self, key: Key) -> Result<Option<SetId>, Damaged> {
        self.base.find(key)
    }

    /// The set of a number; `None` when the number is unknown.
    ///
    /// # Errors
    /// When the number's block is damaged.
    pub fn find(&self, key: Key) -> Result<Option<SetId>, Damaged> {
        match self.find_changed(key) {
            Some(found) => found,
            None => self.base.find(key),
        }
    }

    /// Finds many numbers, in batches whose cache misses overlap; `found` gets the answers in the order of `keys`.
    pub fn find_many(&self, keys: &[Key], mut found: impl FnMut(Result<Option<SetId>, Damaged>)) {
        if keys.iter().any(|key| self.overlay.may_have(key.block())) {
            let mut keys_of = keys.iter();
            self.base.find_all::<SIDE_BY_SIDE>(keys, &mut |of_base| {
                let changed = keys_of.next().and_then(|key| self.find_changed(*key));
                found(changed.unwrap_or(of_base));
            });
        } else {
            self.base.find_all::<SIDE_BY_SIDE>(keys, &mut found);
        }
    }

    fn find_changed(&self, key: Key) -> Option<Result<Option<SetId>, Damaged>> {
        self.overlay.read(key.block(), |changed| match changed {
            Changed::Block(block) => Ok(block.view().find(key.low()).map(SetId)),
            Changed::Damaged(offset) => Err(Damaged {
                block: key.block(),
                offset: *offset,
            }),
        })
    }

    /// A set that a look-up in this map has returned.
    #[must_use]
    pub fn set(&self, id: SetId) -> Option<Arc<DestinationSet>> {
        self.sets.load().get(usize::from(id.0)).cloned()
    }

    /// All sets, by [`SetId::index`]; changes add sets at the end.
    #[must_use]
    pub fn sets(&self) -> Arc<Vec<Arc<DestinationSet>>> {
        self.sets.load_full()
    }

    /// Whether a set is among [`Self::sets`], without a search.
    #[must_use]
    pub fn has_set(&self, set: &DestinationSet) -> bool {
        self.writer.lock().sets.has(set)
    }

    /// Numbers of the base, as its header has them, and the bytes of its file.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        (self.base.numbers(), self.base.file_bytes())
    }

    /// The position in the journal up to which changes are in the map; 0 for a base that was imported.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.writer.lock().position
    }

    /// Damage that was found at the opening: a copy of header or index, which costs nothing, and changed blocks.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
