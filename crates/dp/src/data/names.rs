//! Names: those of a text, and those that were changed since.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::{AHashMap, RandomState};
use arc_swap::ArcSwap;
use numbers::csv::{self, ImportError, Mistake};
use numbers::{DestinationSet, Names, NamesBuilder};

use super::NameChange;

/// Parts of the changed names; a change copies one of them, so that look-ups need no lock.
const SHARDS: usize = 4_096;
/// Words of texts whose values are names: those of the router's text say which entity.
const WORDS: [&str; 5] = ["name", "impi", "impu", "nai", "externalIdentifier"];

/// Names with their destinations.
#[derive(Debug)]
pub(crate) struct NameTable {
    base: Names,
    /// By the value of a name of the base.
    sets: Vec<Arc<DestinationSet>>,
    changed: Changed,
    /// How many names have destinations.
    known: AtomicUsize,
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
        Self::new(Names::default(), Vec::new())
    }
}

impl NameTable {
    fn new(base: Names, sets: Vec<Arc<DestinationSet>>) -> Self {
        Self {
            known: AtomicUsize::new(base.len()),
            base,
            sets,
            changed: Changed {
                hasher: RandomState::new(),
                shards: (0..SHARDS).map(|_| ArcSwap::default()).collect(),
                count: AtomicUsize::new(0),
            },
        }
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
        Ok(Self::new(base, sets))
    }

    /// What `read` makes of the destinations of a name; none: it is unknown.
    pub(crate) fn find<T>(&self, name: &str, read: impl FnOnce(&DestinationSet) -> Option<T>) -> Option<T> {
        if let Some(changed) = self.changed.find(name) {
            return changed.and_then(|set| read(&set));
        }
        let value = self.base.find(name.as_bytes())?;
        read(self.sets.get(usize::from(value))?)
    }

    /// Whether there are at most `most` names after these changes, or no more than before.
    pub(crate) fn admits(&self, changes: &[NameChange], most: usize) -> bool {
        let before = self.len();
        if before + changes.len() <= most {
            return true;
        }
        // The last change of a name is in effect.
        let last: AHashMap<&str, bool> = changes
            .iter()
            .map(|(name, set)| (&**name, set.is_some()))
            .collect();
        let known = last.values().filter(|is_known| **is_known).count();
        let replaced = last.keys().filter(|name| self.is_known(name)).count();
        (before + known).saturating_sub(replaced) <= most.max(before)
    }

    fn is_known(&self, name: &str) -> bool {
        let changed = self.changed.find(name).map(|set| set.is_some());
        changed.unwrap_or_else(|| self.is_in_base(name))
    }

    fn is_in_base(&self, name: &str) -> bool {
        self.base.find(name.as_bytes()).is_some()
    }

    /// Changes names, one after another. One writer at a time.
    pub(crate) fn change(&self, changes: Vec<NameChange>) {
        for (name, set) in changes {
            let (before, after) = (self.is_known(&name), set.is_some());
            if after && !before {
                self.known.fetch_add(1, Ordering::Relaxed);
            } else if before && !after {
                self.known.fetch_sub(1, Ordering::Relaxed);
            }
            let is_in_base = self.is_in_base(&name);
            self.changed.put(name, set, is_in_base);
        }
    }

    /// Names with destinations.
    pub(crate) fn len(&self) -> usize {
        self.known.load(Ordering::Relaxed)
    }

    /// Writes all names as [`Self::open`] reads them; returns their count.
    ///
    /// # Errors
    /// Those of `output`.
    pub(crate) fn write(&self, output: &mut impl Write) -> std::io::Result<u64> {
        let mut count = 0;
        let mut line = |name: &str, set: &DestinationSet| {
            count += 1;
            writeln!(output, "name,{name},{set}")
        };
        for (name, value) in self.base.iter() {
            // Names of a text are in UTF-8.
            let name = std::str::from_utf8(name).unwrap_or_default();
            let set = self.sets.get(usize::from(value));
            if let (Some(set), None) = (set, self.changed.find(name)) {
                line(name, set)?;
            }
        }
        for shard in &self.changed.shards {
            for (name, set) in &**shard.load() {
                set.as_ref().map_or(Ok(()), |set| line(name, set))?;
            }
        }
        Ok(count)
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
