//! Numbers that were changed at the admin endpoint: durable in a file before they are visible and acknowledged.
//!
//! They stay in effect across reloads, on top of whatever file of numbers is read, until that file has the same.

mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Weak};

use numbers::{Change, DestinationSet, Key, Map, SetError};
use parking_lot::Mutex;

use log::Log;

use crate::view::{Numbers, View};

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
pub(crate) struct Changes(Mutex<Inner>);

struct Inner {
    log: Log,
    /// What each changed number has by now; none: it was removed.
    changed: BTreeMap<Key, Option<DestinationSet>>,
    /// The numbers in use: the newest, and those before them that a worker may still read.
    all: Vec<Weak<Numbers>>,
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
        Ok(Self(Mutex::new(Inner {
            log,
            changed,
            all: Vec::new(),
        })))
    }

    /// Puts all changes into new numbers, which get those to come as well. A change that cannot be put into them stays aside.
    pub(crate) fn adopt(&self, numbers: &Arc<Numbers>) {
        let mut inner = self.0.lock();
        let map = numbers.load().map.clone();
        let aside = inner.put_into(&map);
        numbers.store(View { map, aside });
        inner.all.retain(|numbers| numbers.strong_count() > 0);
        inner.all.push(Arc::downgrade(numbers));
    }

    /// Makes changes durable, then visible.
    pub(crate) fn apply(&self, changes: &[Change]) -> Result<(), Refusal> {
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        let live: Vec<Arc<Numbers>> = inner.all.iter().filter_map(Weak::upgrade).collect();
        let Some((newest, others)) = live.split_last() else {
            return Err(Refusal::Unwritten("the server is stopping".to_owned()));
        };
        let mut wanted = BTreeMap::new();
        for change in changes {
            note(&mut wanted, change);
        }
        // A removal of what is unknown, and a number as it is in the file: nothing to keep.
        wanted.retain(|key, set| {
            inner.changed.contains_key(key) || !live.iter().all(|numbers| is_in_base(numbers, *key, set))
        });
        if wanted.is_empty() {
            return Ok(());
        }
        let new = wanted.keys().filter(|key| !inner.changed.contains_key(key));
        if inner.changed.len() + new.count() > MOST_CHANGED {
            return Err(Refusal::Wrong(format!(
                "more than {MOST_CHANGED} numbers are changed beside the file of numbers; import them into it, and reload"
            )));
        }
        let wanted: Vec<Change> = wanted.into_iter().map(|(key, set)| change(key, set)).collect();
        inner.change(newest, &wanted)?;
        for numbers in others {
            // On their way out: workers take the newest ones any moment.
            for (_, error) in numbers.load().map.replay_possible(&wanted, 0) {
                tracing::debug!(%error, "numbers that are being replaced do not take a change");
            }
        }
        for change in &wanted {
            note(&mut inner.changed, change);
        }
        for change in &wanted {
            let key = change.key();
            let is_needless = |set| live.iter().all(|numbers| is_in_base(numbers, key, set));
            if inner.changed.get(&key).is_some_and(is_needless) {
                inner.changed.remove(&key);
            }
        }
        if inner.log.lines() > 2 * inner.changed.len() + SLACK {
            inner.compact();
        }
        Ok(())
    }

    /// Drops changes that a file of numbers has as well. Runs when its numbers are in effect.
    pub(crate) fn settle(&self, numbers: &Numbers) {
        let mut inner = self.0.lock();
        let before = inner.changed.len();
        inner.changed.retain(|key, set| !is_in_base(numbers, *key, set));
        if inner.changed.len() < before {
            let dropped = before - inner.changed.len();
            tracing::info!(dropped, "changed numbers that the file of numbers has as well");
            inner.compact();
        }
    }

    /// Numbers that are changed beside the file of numbers.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().changed.len()
    }

    /// Ends changes, so that another process may use the directory.
    pub(crate) fn close(&self) {
        self.0.lock().log.close();
    }

    /// Why changes cannot be kept; none: they can.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.lock().log.failure()
    }
}

impl Inner {
    /// Puts all changes into a map; the numbers whose change it does not take.
    fn put_into(&self, map: &Map) -> BTreeSet<Key> {
        let changed = self.changed.iter();
        let all: Vec<Change> = changed.map(|(key, set)| change(*key, set.clone())).collect();
        let refused = map.replay_possible(&all, 0);
        if let Some((_, error)) = refused.first() {
            let count = refused.len();
            tracing::error!(count, %error, "changed numbers are not in effect: queries for them are answered SERVFAIL");
        }
        refused.into_iter().map(|(key, _)| key).collect()
    }

    /// Writes changes to the log, then into numbers. A map never frees a destination set: where they have run out, the base with
    /// the changes of today takes its place.
    fn change(&mut self, numbers: &Numbers, wanted: &[Change]) -> Result<(), Refusal> {
        let view = numbers.load();
        let mut map = view.map.clone();
        let mut aside = view.aside.clone();
        let mut done = map.change(wanted, &mut self.log);
        if let Err(numbers::Error::Set(SetError::TooManySets)) = done {
            map = Arc::new(map.without_changes());
            // Without the sets of numbers that change now.
            let renewed: BTreeSet<Key> = wanted.iter().map(Change::key).collect();
            let changed = self.changed.iter().filter(|(key, _)| !renewed.contains(key));
            let all: Vec<Change> = changed.map(|(key, set)| change(*key, set.clone())).collect();
            aside = map
                .replay_possible(&all, 0)
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            done = map.change(wanted, &mut self.log);
        }
        done.map_err(|error| match error {
            numbers::Error::Journal(error) => Refusal::Unwritten(error.to_string()),
            other => Refusal::Wrong(other.to_string()),
        })?;
        for change in wanted {
            aside.remove(&change.key());
        }
        if !Arc::ptr_eq(&map, &view.map) || aside.len() != view.aside.len() {
            numbers.store(View { map, aside });
        }
        Ok(())
    }

    fn compact(&mut self) {
        let all = self.changed.iter().map(|(key, set)| change(*key, set.clone()));
        if let Err(error) = self.log.rewrite(all) {
            tracing::warn!(%error, "the log of changed numbers is not rewritten; it stays as it is");
        }
    }
}

/// Whether the file of numbers has the same; a damaged part of it has nothing.
fn is_in_base(numbers: &Numbers, key: Key, set: &Option<DestinationSet>) -> bool {
    let map = &numbers.load().map;
    let found = map.find_in_base(key);
    found.is_ok_and(|id| id.and_then(|id| map.set(id)).as_deref() == set.as_ref())
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
