//! The master data: numbers and names with their destinations, as of one offset of the journal.

mod files;
mod load;
mod names;
mod text;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use numbers::{Damaged, DestinationSet, Key, MOST_SETS, Map, Walk};
use parking_lot::{Mutex, RwLock};

pub(crate) use files::{Files, FilesError};
pub(crate) use names::Names;
pub(crate) use text::{Behind, Text, part};

use crate::change::Change;
use crate::subject::Subject;

/// All records. One writer applies transactions; readers see a transaction record by record.
#[derive(Debug)]
pub(crate) struct Data {
    /// Another one takes its place when sets are freed.
    map: ArcSwap<Map>,
    names: RwLock<Names>,
    offset: AtomicU64,
    /// Held while a transaction is applied, and while numbers and names of one offset are copied.
    applying: Mutex<Option<Recorded>>,
}

/// Changes of numbers since a map began to be rewritten, each with its offset.
type Recorded = Vec<(u64, Vec<numbers::Change>)>;

/// Transactions that are recorded while a map is rewritten, at most: beyond them it is given up.
const MOST_RECORDED: usize = 20_000;

/// Numbers and names of one offset.
pub(crate) struct Snapshot {
    pub(crate) offset: u64,
    pub(crate) numbers: Walk,
    pub(crate) names: Names,
}

/// Sets of numbers and of names that the tables do not have yet.
#[derive(Debug, Default)]
pub(crate) struct NewSets {
    numbers: HashSet<DestinationSet>,
    names: HashSet<DestinationSet>,
}

impl NewSets {
    pub(crate) fn extend(&mut self, more: Self) {
        self.numbers.extend(more.numbers);
        self.names.extend(more.names);
    }
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unchangeable {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    #[error("more than {MOST_SETS} different destination sets")]
    Sets,
}

impl Data {
    /// Data that have all transactions up to this offset.
    pub(crate) fn new(map: Map, names: Names, offset: u64) -> Self {
        Self {
            map: ArcSwap::from_pointee(map),
            names: RwLock::new(names),
            offset: AtomicU64::new(offset),
            applying: Mutex::default(),
        }
    }

    /// The offset of the last transaction that is in them.
    pub(crate) fn offset(&self) -> u64 {
        self.offset.load(Ordering::Acquire)
    }

    /// The destinations of a subject.
    pub(crate) fn find(&self, subject: &Subject) -> Result<Option<DestinationSet>, Damaged> {
        match subject {
            Subject::Number(key) => {
                let map = self.map.load();
                let set = map.find(*key)?.and_then(|id| map.set(id));
                Ok(set.map(|set| DestinationSet::clone(&set)))
            }
            Subject::Name(name) => Ok(self.names.read().find(name).cloned()),
        }
    }

    /// Checks that changes can be applied behind others, which bring sets; returns those that these bring besides.
    pub(crate) fn check(&self, changes: &[Change], planned: &NewSets) -> Result<NewSets, Unchangeable> {
        let (mut new, map) = (NewSets::default(), self.map.load());
        for change in changes {
            let set = change.destinations.as_ref();
            match &change.subject {
                Subject::Number(key) => {
                    map.find(*key)?;
                    let unknown =
                        |set: &&DestinationSet| !map.has_set(set) && !planned.numbers.contains(*set);
                    new.numbers.extend(set.filter(unknown).cloned());
                }
                Subject::Name(_) => {
                    let unknown = |set: &&DestinationSet| {
                        !self.names.read().has_set(set) && !planned.names.contains(*set)
                    };
                    new.names.extend(set.filter(unknown).cloned());
                }
            }
        }
        let fits = |known: usize, planned: usize, new: usize| new == 0 || known + planned + new <= MOST_SETS;
        let numbers = fits(map.sets().len(), planned.numbers.len(), new.numbers.len());
        if numbers && fits(self.names.read().sets(), planned.names.len(), new.names.len()) {
            return Ok(new);
        }
        Err(Unchangeable::Sets)
    }

    /// Applies a transaction.
    ///
    /// # Errors
    /// Why it cannot be applied; the offset is as before then.
    pub(crate) fn apply(&self, changes: &[Change], offset: u64) -> Result<(), numbers::Error> {
        let mut recorded = self.applying.lock();
        let numbers: Vec<numbers::Change> = changes.iter().filter_map(of_number).collect();
        self.map.load().replay(&numbers, offset)?;
        if let Some(all) = &mut *recorded {
            all.push((offset, numbers));
            if all.len() > MOST_RECORDED {
                *recorded = None;
            }
        }
        for change in changes {
            if let Subject::Name(name) = &change.subject {
                self.names.write().change(name, change.destinations.as_ref())?;
            }
        }
        self.offset.store(offset, Ordering::Release);
        Ok(())
    }

    /// All numbers and names of one offset.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let _applying = self.applying.lock();
        Snapshot {
            offset: self.offset(),
            numbers: self.map.load().walk(None),
            names: self.names.read().clone(),
        }
    }

    /// The first numbers above `after`, at least `count` where there are as many, and their offset.
    pub(crate) fn numbers(&self, after: Option<Key>, count: usize) -> (u64, Walk) {
        let _applying = self.applying.lock();
        (self.offset(), self.map.load().walk_first(after, count))
    }

    /// All names, and their offset.
    pub(crate) fn names(&self) -> (u64, Names) {
        let _applying = self.applying.lock();
        (self.offset(), self.names.read().clone())
    }

    /// Numbers, names.
    pub(crate) fn count(&self) -> (u64, u64) {
        (self.map.load().count(), self.names.read().len())
    }

    /// Different destination sets: in the table of numbers, of names.
    pub(crate) fn sets(&self) -> (usize, usize) {
        (self.map.load().sets().len(), self.names.read().sets())
    }

    /// The numbers as they are; changes of them are seen.
    pub(crate) fn map(&self) -> Arc<Map> {
        self.map.load_full()
    }

    /// Has the map that `rewrite` makes of the present one take its place; transactions and look-ups go on meanwhile. `publish` comes
    /// last. False: there were too many transactions for it.
    ///
    /// # Errors
    /// Those of `rewrite` and `publish`; the map is as before.
    pub(crate) fn replace_map(
        &self,
        rewrite: impl FnOnce(&Map) -> Result<Map, FilesError>,
        publish: impl FnOnce() -> Result<(), FilesError>,
    ) -> Result<bool, FilesError> {
        *self.applying.lock() = Some(Recorded::new());
        let rewritten = rewrite(&self.map());
        let mut recorded = self.applying.lock();
        // Which ends the recording, whatever follows.
        let since = recorded.take();
        let (map, Some(since)) = (rewritten?, since) else {
            return Ok(false);
        };
        // Some of these are in it already: what is applied twice has the same result.
        for (offset, changes) in since {
            map.replay(&changes, offset)?;
        }
        publish()?;
        self.map.store(Arc::new(map));
        Ok(true)
    }

    /// Bytes of memory that the names take.
    pub(crate) fn name_bytes(&self) -> usize {
        self.names.read().bytes()
    }
}

fn of_number(change: &Change) -> Option<numbers::Change> {
    let Subject::Number(key) = change.subject else {
        return None;
    };
    Some(match &change.destinations {
        Some(set) => numbers::Change::Put {
            key,
            set: set.clone(),
        },
        None => numbers::Change::Remove { key },
    })
}
