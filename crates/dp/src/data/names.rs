//! Names: those of a text, and those that were changed since.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::{AHashMap, RandomState};
use arc_swap::ArcSwap;
use numbers::csv::{self, ImportError, Mistake};
use numbers::{DamagedNames, DestinationSet, Error, Load, NameFile, NameWriter, Names, NamesBuilder};

use super::NameChange;

/// Parts of the changed names; a change copies one of them, so that look-ups need no lock.
const SHARDS: usize = 4_096;
/// Words of texts whose values are names: those of the router's text say which entity.
const WORDS: [&str; 5] = ["name", "impi", "impu", "nai", "externalIdentifier"];

/// Names with their destinations.
#[derive(Debug)]
pub(crate) struct NameTable {
    base: Base,
    changed: Changed,
    /// How many names have destinations.
    known: AtomicUsize,
}

/// Names that do not change.
#[derive(Debug)]
enum Base {
    /// Of a text, with the sets that their values stand for.
    Listed(Names, Vec<Arc<DestinationSet>>),
    /// Of a file that the processor has written.
    Kept(NameFile),
}

impl Base {
    fn find(&self, name: &str) -> Result<Option<&Arc<DestinationSet>>, DamagedNames> {
        match self {
            Self::Listed(names, sets) => {
                let value = names.find(name.as_bytes());
                Ok(value.and_then(|value| sets.get(usize::from(value))))
            }
            Self::Kept(file) => file.find(name.as_bytes()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Listed(names, _) => names.len(),
            Self::Kept(file) => file.len(),
        }
    }

    /// Calls `each` for all names with their sets, in ascending order.
    fn for_each(
        &self,
        mut each: impl FnMut(&[u8], &Arc<DestinationSet>) -> Result<(), String>,
    ) -> Result<(), String> {
        let (names, sets) = match self {
            Self::Listed(names, sets) => (names, sets),
            Self::Kept(file) => {
                return file
                    .for_each(|name, set| each(name, set).map_err(Stop))
                    .map_err(|stop| stop.0);
            }
        };
        let mut all: Vec<_> = names.iter().collect();
        all.sort_unstable();
        for (name, value) in all {
            sets.get(usize::from(value))
                .map_or(Ok(()), |set| each(name, set))?;
        }
        Ok(())
    }
}

/// Why the names of a file are not read any further.
struct Stop(String);

impl From<DamagedNames> for Stop {
    fn from(damaged: DamagedNames) -> Self {
        Self(damaged.to_string())
    }
}

type Shard = AHashMap<Box<str>, Option<Arc<DestinationSet>>>;

/// Names that are not as the base has them; without destinations: removed from the base.
#[derive(Debug)]
struct Changed {
    hasher: RandomState,
    shards: Box<[ArcSwap<Shard>]>,
    count: AtomicUsize,
}

impl Default for NameTable {
    fn default() -> Self {
        Self::new(Base::Listed(Names::default(), Vec::new()))
    }
}

impl NameTable {
    fn new(base: Base) -> Self {
        Self {
            known: AtomicUsize::new(base.len()),
            base,
            changed: Changed {
                hasher: RandomState::new(),
                shards: (0..SHARDS).map(|_| ArcSwap::default()).collect(),
                count: AtomicUsize::new(0),
            },
        }
    }

    /// Opens a file of at most `most` names that [`Self::write`] has written.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn kept(path: &Path, most: usize) -> Result<Self, String> {
        let file = NameFile::open(path, Load::Mapped).map_err(|error| error.to_string())?;
        if file.len() > most {
            return Err(format!("more than maxNames ({most}) names"));
        }
        for warning in file.warnings() {
            tracing::warn!(file = %path.display(), %warning, "file of names is damaged");
        }
        Ok(Self::new(Base::Kept(file)))
    }

    /// Reads a text of at most `most` names.
    ///
    /// # Errors
    /// Names the first line that is wrong.
    pub(crate) fn open(path: &Path, most: usize) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        if !file.metadata().is_ok_and(|data| data.is_file()) {
            return Err("is not a regular file".to_owned());
        }
        let mut input = BufReader::with_capacity(1 << 20, file);
        Self::read(&mut input, most).map_err(|error| error.to_string())
    }

    fn read(input: &mut impl BufRead, most: usize) -> Result<Self, ImportError> {
        let (mut names, mut sets) = (NamesBuilder::default(), Vec::new());
        let mut texts = AHashMap::<Box<str>, u16>::new();
        csv::entries(input, |line, entry| {
            let wrong = |what: String| Mistake::at(line, what);
            if !WORDS.contains(&entry.kind) {
                let what = format!(
                    "`{}` is not a name; numbers are imported into the file of numbers",
                    entry.kind
                );
                return Err(wrong(what));
            }
            if names.len() == most {
                return Err(wrong(format!("more than maxNames ({most}) names")));
            }
            let value = match texts.get(entry.destinations) {
                Some(known) => *known,
                None => {
                    let set = DestinationSet::parse(entry.destinations);
                    let set = set.map_err(|error| wrong(error.to_string()))?;
                    let at = u16::try_from(sets.len());
                    let at = at.map_err(|_| wrong("more than 65,536 texts of destinations".to_owned()))?;
                    sets.push(Arc::new(set));
                    texts.insert(entry.destinations.into(), at);
                    at
                }
            };
            let name = entry.value.to_ascii_lowercase();
            names
                .add(name.as_bytes(), value, line)
                .map_err(|error| wrong(error.to_string()))
        })?;
        let base = names.finish().map_err(|error| match error {
            numbers::NameError::Twice { line, .. } => Mistake::at(line, error),
            other => Mistake::at(0, other),
        })?;
        Ok(Self::new(Base::Listed(base, sets)))
    }

    /// What `read` makes of the destinations of a name; none: it is unknown.
    ///
    /// # Errors
    /// When the page of the file that may have it is damaged.
    pub(crate) fn find<T>(
        &self,
        name: &str,
        read: impl FnOnce(&DestinationSet) -> Option<T>,
    ) -> Result<Option<T>, DamagedNames> {
        if let Some(changed) = self.changed.find(name) {
            return Ok(changed.and_then(|set| read(&set)));
        }
        Ok(self.base.find(name)?.and_then(|set| read(set)))
    }

    /// Whether there are at most `most` names after these changes, or no more than before.
    ///
    /// # Errors
    /// Where the entry of one of them is damaged.
    pub(crate) fn admits(&self, changes: &[NameChange], most: usize) -> Result<bool, DamagedNames> {
        for (name, _) in changes {
            self.base.find(name)?;
        }
        let before = self.len();
        if before + changes.len() <= most {
            return Ok(true);
        }
        // The last change of a name is in effect.
        let last: AHashMap<&str, bool> = changes
            .iter()
            .map(|(name, set)| (&**name, set.is_some()))
            .collect();
        let known = last.values().filter(|is_known| **is_known).count();
        let mut replaced = 0;
        for name in last.keys() {
            replaced += usize::from(self.is_known(name)?);
        }
        Ok((before + known).saturating_sub(replaced) <= most.max(before))
    }

    fn is_known(&self, name: &str) -> Result<bool, DamagedNames> {
        match self.changed.find(name) {
            Some(changed) => Ok(changed.is_some()),
            None => Ok(self.base.find(name)?.is_some()),
        }
    }

    /// Changes names, one after another. One writer at a time.
    ///
    /// # Errors
    /// Where the entry of one of them is damaged, which [`Self::admits`] finds before.
    pub(crate) fn change(&self, changes: Vec<NameChange>) -> Result<(), DamagedNames> {
        for (name, set) in changes {
            let is_in_base = self.base.find(&name)?.is_some();
            let (before, after) = (self.is_known(&name)?, set.is_some());
            if after && !before {
                self.known.fetch_add(1, Ordering::Relaxed);
            } else if before && !after {
                self.known.fetch_sub(1, Ordering::Relaxed);
            }
            self.changed.put(name, set, is_in_base);
        }
        Ok(())
    }

    /// Names with destinations.
    pub(crate) fn len(&self) -> usize {
        self.known.load(Ordering::Relaxed)
    }

    /// Writes all names into a file.
    ///
    /// # Errors
    /// Those of the file, and of damaged pages of the one that was opened.
    pub(crate) fn write(&self, file: &mut NameWriter) -> Result<(), String> {
        let shards = self.changed.shards.iter().map(ArcSwap::load_full);
        let shards: Vec<Arc<Shard>> = shards.collect();
        let mut changed: Vec<_> = shards.iter().flat_map(|shard| shard.iter()).collect();
        changed.sort_unstable_by_key(|(name, _)| *name);
        let mut changed = changed.into_iter().peekable();
        let mut push = |name: &[u8], set: &DestinationSet| {
            let pushed = file.push(name, set);
            pushed.map_err(|error: Error| error.to_string())
        };
        self.base.for_each(|name, set| {
            while let Some((before, change)) = changed.next_if(|(one, _)| one.as_bytes() <= name) {
                change
                    .as_ref()
                    .map_or(Ok(()), |set| push(before.as_bytes(), set))?;
                if before.as_bytes() == name {
                    return Ok(());
                }
            }
            push(name, set)
        })?;
        for (name, change) in changed {
            change.as_ref().map_or(Ok(()), |set| push(name.as_bytes(), set))?;
        }
        Ok(())
    }
}

impl Changed {
    fn shard(&self, name: &str) -> Option<&ArcSwap<Shard>> {
        self.shards
            .get((self.hasher.hash_one(name) % SHARDS as u64) as usize)
    }

    fn find(&self, name: &str) -> Option<Option<Arc<DestinationSet>>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.shard(name)?.load().get(name).cloned()
    }

    /// A removed name that the base does not have takes no memory.
    fn put(&self, name: Box<str>, set: Option<Arc<DestinationSet>>, is_in_base: bool) {
        let Some(shard) = self.shard(&name) else { return };
        let mut changed = Shard::clone(&shard.load());
        let before = changed.len();
        if set.is_some() || is_in_base {
            changed.insert(name, set);
        } else {
            changed.remove(&name);
        }
        let after = changed.len();
        shard.store(Arc::new(changed));
        if after > before {
            self.count.fetch_add(1, Ordering::Release);
        } else if after < before {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}
