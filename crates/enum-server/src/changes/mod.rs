//! Numbers that were changed at the admin endpoint: durable in a file before they are visible and acknowledged.
//!
//! They stay in effect across reloads, on top of whatever file of numbers is read, until that file has the same.

mod log;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use numbers::{Change, DestinationSet, Key, Load, Map, Writer};
use parking_lot::Mutex;

use log::Log;

/// Most numbers that are changed beside the file of numbers. Each has about 200 octets of memory.
pub(crate) const MOST_CHANGED: usize = 1_000_000;
/// Lines of the log beyond twice those that are needed, after which it is rewritten.
const SLACK: usize = 100_000;

/// What a change was refused for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It cannot be applied.
    Wrong(String),
    /// It cannot be kept.
    Unwritten(String),
}

/// The changed numbers, and where they are kept.
pub(crate) struct Changes {
    directory: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    log: Log,
    /// What each changed number has by now; none: it was removed.
    changed: BTreeMap<Key, Option<DestinationSet>>,
    /// The maps in use: the newest, and those before it that a worker may still read.
    maps: Vec<Weak<Map>>,
}

impl Changes {
    /// Reads what is kept in a directory.
    ///
    /// # Errors
    /// When another process uses it, or its content is damaged.
    pub(crate) fn open(directory: &Path) -> Result<Self, String> {
        let (log, lines) = Log::open(directory)?;
        let mut changed = BTreeMap::new();
        for change in lines {
            note(&mut changed, &change);
        }
        Ok(Self {
            directory: directory.to_owned(),
            inner: Mutex::new(Inner {
                log,
                changed,
                maps: Vec::new(),
            }),
        })
    }

    /// A map without numbers, where no file of numbers is set.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub(crate) fn empty_map(&self) -> Result<Map, String> {
        let path = self.directory.join("empty.num");
        let written = Writer::create(&path).and_then(Writer::finish);
        let map = written.and_then(|_| Map::open(&path, None, Load::Copied));
        map.map_err(|error| format!("directory: {error}"))
    }

    /// Puts all changes into a new map, which gets those to come as well.
    ///
    /// # Errors
    /// When a block of the map is damaged, or it gets too many different destination sets.
    pub(crate) fn adopt(&self, map: &Arc<Map>) -> Result<(), String> {
        let mut inner = self.inner.lock();
        let all: Vec<Change> = inner
            .changed
            .iter()
            .map(|(key, set)| change(*key, set.clone()))
            .collect();
        map.replay(&all, 0).map_err(|error| format!("numbers: {error}"))?;
        inner.maps.retain(|map| map.strong_count() > 0);
        inner.maps.push(Arc::downgrade(map));
        Ok(())
    }

    /// Makes changes durable, then visible.
    pub(crate) fn apply(&self, changes: &[Change]) -> Result<(), Refusal> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let new = changes
            .iter()
            .filter(|change| !inner.changed.contains_key(&change.key()));
        if inner.changed.len() + new.count() > MOST_CHANGED {
            return Err(Refusal::Wrong(format!(
                "more than {MOST_CHANGED} numbers are changed beside the file of numbers; import them into it, and reload"
            )));
        }
        let maps: Vec<Arc<Map>> = inner.maps.iter().filter_map(Weak::upgrade).collect();
        let Some((newest, others)) = maps.split_last() else {
            return Err(Refusal::Unwritten("the server is stopping".to_owned()));
        };
        newest
            .change(changes, &mut inner.log)
            .map_err(|error| match error {
                numbers::Error::Journal(error) => Refusal::Unwritten(error.to_string()),
                other => Refusal::Wrong(other.to_string()),
            })?;
        for map in others {
            // A map that is on its way out: its workers take the newest one any moment.
            if let Err(error) = map.replay(changes, 0) {
                tracing::debug!(%error, "a map that is being replaced does not take a change");
            }
        }
        changes.iter().for_each(|change| note(&mut inner.changed, change));
        if inner.log.lines() > 2 * inner.changed.len() + SLACK {
            inner.compact();
        }
        Ok(())
    }

    /// Drops changes that a file of numbers has as well. Runs when its map is in effect.
    pub(crate) fn settle(&self, file: &Path) {
        let base = match Map::open(file, None, Load::Mapped) {
            Ok(base) => base,
            Err(error) => {
                return tracing::warn!(%error, "changed numbers are not compared with the file of numbers");
            }
        };
        let mut inner = self.inner.lock();
        let before = inner.changed.len();
        inner.changed.retain(|key, set| {
            let has = base.find(*key).map(|id| id.and_then(|id| base.set(id)));
            has.map_or(true, |has| has.as_deref() != set.as_ref())
        });
        if inner.changed.len() < before {
            let dropped = before - inner.changed.len();
            tracing::info!(dropped, "changed numbers that the file of numbers has as well");
            inner.compact();
        }
    }

    /// Numbers that are changed beside the file of numbers.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().changed.len()
    }

    /// Ends changes, so that another process may use the directory.
    pub(crate) fn close(&self) {
        self.inner.lock().log.close();
    }

    /// Why changes cannot be kept; none: they can.
    pub(crate) fn failure(&self) -> Option<String> {
        self.inner.lock().log.failure()
    }
}

impl Inner {
    fn compact(&mut self) {
        let all = self.changed.iter().map(|(key, set)| change(*key, set.clone()));
        if let Err(error) = self.log.rewrite(all) {
            tracing::warn!(%error, "the log of changed numbers is not rewritten; it stays as it is");
        }
    }
}

fn note(changed: &mut BTreeMap<Key, Option<DestinationSet>>, change: &Change) {
    match change {
        Change::Put { key, set } => changed.insert(*key, Some(set.clone())),
        Change::Remove { key } => changed.insert(*key, None),
    };
}

fn change(key: Key, set: Option<DestinationSet>) -> Change {
    match set {
        Some(set) => Change::Put { key, set },
        None => Change::Remove { key },
    }
}
