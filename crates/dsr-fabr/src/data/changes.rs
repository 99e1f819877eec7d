//! Subscribers that operators change one by one beside the traffic. They are kept in a file of their own, which is read
//! after the others and goes before them: a change is acknowledged when it is on the disk.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use dsr_app::appended::{Appended, OpenOnce, has_room, refuse_other};
use numbers::DestinationSet;

use crate::address::Address;
use crate::config::Entity;

/// Parts of the table; a change copies one of them, so that look-ups need no lock.
const SHARDS: usize = 4096;

/// The destinations of a changed subscriber; none: it is not known any more.
pub(crate) type Changed = Option<Arc<DestinationSet>>;

type Shard = AHashMap<Address, Changed>;

/// The changes of a file, shared by all that have it open.
#[derive(Debug)]
pub(crate) struct Changes {
    hasher: RandomState,
    shards: Box<[ArcSwap<Shard>]>,
    /// Addresses with a change, those that were taken away included.
    count: AtomicUsize,
    /// Those with destinations.
    held: AtomicUsize,
    file: Appended,
}

static OPEN: OpenOnce<Changes> = OpenOnce::new();

impl Changes {
    /// Opens the file of changes, and reads it unless it is open already.
    ///
    /// # Errors
    /// When it cannot be read and written, or has an invalid line.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, String> {
        OPEN.get(path, || {
            let hasher = RandomState::new();
            let mut shards: Vec<Shard> = vec![Shard::new(); SHARDS];
            let mut sets = AHashMap::new();
            let file = Appended::open(path, |line| {
                let change = Change::parse(line, &mut sets)?;
                if let Some(shard) = shards.get_mut(shard_of(&hasher, &change.address)) {
                    shard.insert(change.address, change.to);
                }
                Ok(())
            })?;
            Ok(Self {
                hasher,
                count: AtomicUsize::new(shards.iter().map(|shard| shard.len()).sum()),
                held: AtomicUsize::new(shards.iter().flat_map(|shard| shard.values()).flatten().count()),
                shards: shards.into_iter().map(ArcSwap::from_pointee).collect(),
                file,
            })
        })
    }

    /// Reads the file of changes, without opening it for changes: another process may have it.
    ///
    /// # Errors
    /// When it cannot be read, or has an invalid line.
    pub(crate) fn check(
        path: &Path,
        mut judge: impl FnMut(&DestinationSet) -> Result<(), String>,
    ) -> Result<(), String> {
        refuse_other(path)?;
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let mut sets = AHashMap::new();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in lines.take_while(|line| line.ends_with(b"\n")).enumerate() {
            let text = std::str::from_utf8(line).map_err(|_| "not in UTF-8".to_owned());
            let change =
                text.and_then(|text| Change::parse(text.lines().next().unwrap_or_default(), &mut sets));
            change.map_err(|wrong| format!("line {}: {wrong}", number + 1))?;
        }
        sets.values().try_for_each(|set| judge(set))
    }

    /// Makes a change durable, then effective; `most` subscribers may have destinations by changes. One that changes nothing
    /// is not written; `is_in_files`: whether taking it away does.
    ///
    /// # Errors
    /// When it cannot be written; it is not in effect then.
    pub(crate) fn make(&self, change: Change, most: usize, is_in_files: bool) -> Result<(), String> {
        let mut file = self.file.lock();
        let known = self.find(&change.address);
        let is_held = known.as_ref().is_some_and(Option::is_some);
        match &known {
            Some(known) if *known == change.to => return Ok(()),
            None if change.to.is_none() && !is_in_files => return Ok(()),
            _ => {}
        }
        if change.to.is_some() && !is_held {
            has_room(self.held.load(Ordering::Relaxed), most, "file of subscribers")?;
        }
        file.append(&change.line())?;
        let Some(shard) = self.shards.get(shard_of(&self.hasher, &change.address)) else {
            return Ok(());
        };
        match (is_held, change.to.is_some()) {
            (false, true) => _ = self.held.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.held.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        let mut changed = Shard::clone(&shard.load());
        if changed.insert(change.address, change.to).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        shard.store(Arc::new(changed));
        Ok(())
    }

    /// The change of a subscriber, if there is one.
    pub(crate) fn find(&self, address: &Address) -> Option<Changed> {
        if self.len() == 0 {
            return None;
        }
        let shard = self.shards.get(shard_of(&self.hasher, address))?;
        shard.load().get(address).cloned()
    }

    /// The number of changed subscribers.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The different destinations of changed subscribers.
    pub(crate) fn sets(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for shard in &self.shards {
            for set in shard.load().values().flatten() {
                if !all.contains(set.as_str()) {
                    all.insert(set.to_string());
                }
            }
        }
        all
    }
}

fn shard_of(hasher: &RandomState, address: &Address) -> usize {
    (hasher.hash_one(address) % SHARDS as u64) as usize
}

/// A change of one subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) address: Address,
    pub(crate) to: Changed,
}

impl Change {
    /// The change of `ENTITY:VALUE` to these destinations; without any the subscriber is not known any more.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn new(subject: &str, to: &str) -> Result<Self, String> {
        let (entity, value) = subject
            .split_once(':')
            .ok_or_else(|| format!("`{subject}` is not ENTITY:VALUE, such as imsi:001010000000001"))?;
        let set = match to {
            "" => None,
            to => Some(DestinationSet::parse(to).map_err(|error| error.to_string())?),
        };
        Ok(Self {
            address: Address::parse(Entity::from_word(entity)?, value)?,
            to: set.map(Arc::new),
        })
    }

    /// The change of a line; equal destinations are shared by `sets`.
    fn parse(line: &str, sets: &mut AHashMap<Box<str>, Arc<DestinationSet>>) -> Result<Self, String> {
        let parts = line.split_once(',');
        let parts = parts.and_then(|(entity, rest)| Some((entity, rest.split_once(',')?)));
        let (entity, (value, to)) = parts.ok_or("expected ENTITY,VALUE,DESTINATIONS")?;
        let set = match (to, sets.get(to)) {
            ("", _) => None,
            (_, Some(known)) => Some(known.clone()),
            (to, None) => {
                let new = Arc::new(DestinationSet::parse(to).map_err(|error| error.to_string())?);
                sets.insert(to.into(), new.clone());
                Some(new)
            }
        };
        Ok(Self {
            address: Address::parse(Entity::from_word(entity)?, value)?,
            to: set,
        })
    }

    /// As a line of the file; neither part has a comma or a line's end, except between destinations.
    fn line(&self) -> String {
        let entity = self.address.entity().as_str();
        let to = self.to.as_ref().map_or("", |set| set.as_str());
        format!("{entity},{},{to}\n", self.address)
    }
}
