//! A table of the embedded engine: its indexes in memory, its records in the log.
//!
//! Readers come from any thread; only the writer thread changes indexes. A reader takes a place from an index and
//! then reads the log there; when in the meantime the record was moved by compaction, what it finds is not what it
//! looked for, or the segment is gone. Then it asks the index again, and only an unchanged answer counts.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Bound;

use parking_lot::RwLock;
use smallvec::SmallVec;

use super::checkpoint::Sharded;
use super::entry::{Entry, Kind};
use super::hash_index::{Candidates, Change, HashIndex, Location, WalkPlace};
use super::segments::Segments;
use super::time_index::{Moment, TimeIndex, time_of};
use crate::error::{Error, hex};
use crate::record::{IndexKeyIter, Key, TableDef};
use crate::schema::{Index, TableSchema};
use crate::version::Version;

/// Entries of an ordered index that are counted at a time.
const COUNTED: usize = 4_096;

/// A table.
pub(super) struct Space {
    /// The table's number in the log.
    pub(super) number: u16,
    /// Name, also of a table that this run was not asked to open.
    pub(super) name: String,
    /// `None`: the table is in the log, but this run was not asked to open it. It is kept as it is.
    pub(super) schema: Option<&'static TableSchema>,
    pub(super) primary: HashIndex,
    pub(super) secondary: Vec<Secondary>,
}

/// A secondary index.
pub(super) enum Secondary {
    Hashed(HashIndex),
    /// That of the table's expiry.
    ByTime(TimeIndex),
    /// Index key and primary key. Costs the keys' bytes in memory, but knows an order.
    Ordered(RwLock<BTreeSet<(Key, Key)>>),
}

/// An index that a checkpoint has.
#[derive(Clone, Copy)]
pub(super) enum IndexRef<'s> {
    Hashed(&'s HashIndex),
    ByTime(&'s TimeIndex),
}

impl<'s> IndexRef<'s> {
    pub(super) fn sharded(self) -> &'s dyn Sharded {
        match self {
            Self::Hashed(index) => index,
            Self::ByTime(index) => index,
        }
    }
}

/// What a later write must know of the entry it makes void.
#[derive(Clone, Debug)]
pub(super) struct Old {
    pub(super) location: Location,
    pub(super) version: Version,
    pub(super) created: u64,
    pub(super) keys: SmallVec<[u8; 120]>,
    /// Oldest segment that may hold an entry of this record.
    pub(super) oldest: u32,
    pub(super) size: u64,
}

/// An entry that compaction has copied.
pub(super) struct Move {
    pub(super) table: u16,
    pub(super) hash: u64,
    pub(super) secondary: SmallVec<[(u8, u64); 4]>,
    pub(super) old: Location,
    pub(super) new: Location,
    pub(super) size: u64,
}

thread_local! {
    /// Where entries are read into. Taken while in use, so that a nested read gets another.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer larger than this is not kept for the next read.
const KEEP_BUFFER: usize = 1 << 20;

pub(super) fn with_buffer<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = BUFFER.take();
    let result = work(&mut buffer);
    if buffer.len() <= KEEP_BUFFER {
        BUFFER.set(buffer);
    }
    result
}

/// What a search shows to its caller.
enum Shown<'a> {
    /// A candidate.
    Entry(Location, &'a Entry<'a>),
    /// What was shown so far is void.
    Again,
}

/// What the caller makes of what it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is what was looked for.
    Wanted,
    Other,
    /// It is, and no further one is needed.
    Enough,
}

/// Tries before a lookup gives up on an index that keeps changing under it.
const PATIENCE: usize = 1_000;

impl Space {
    pub(super) fn new(number: u16, name: &str, table: Option<&TableDef>) -> Space {
        let schema = table.map(|table| table.schema);
        let expiry = table.and_then(|table| table.expiry);
        let indexes = schema.map_or(&[][..], |schema| schema.indexes);
        Space {
            number,
            name: name.to_owned(),
            schema,
            primary: HashIndex::new(),
            secondary: indexes
                .iter()
                .enumerate()
                .map(|(position, index)| {
                    if index.ordered && expiry.is_some_and(|expiry| usize::from(expiry.0) == position) {
                        Secondary::ByTime(TimeIndex::default())
                    } else if index.ordered {
                        Secondary::Ordered(RwLock::default())
                    } else {
                        Secondary::Hashed(HashIndex::new())
                    }
                })
                .collect(),
        }
    }

    /// The name that errors carry.
    pub(super) fn static_name(&self) -> &'static str {
        self.schema.map_or("(not opened)", |schema| schema.name)
    }

    pub(super) fn is_unique(&self, index: Index) -> bool {
        self.index_schema(index).is_some_and(|index| index.unique)
    }

    pub(super) fn index_schema(&self, index: Index) -> Option<&'static crate::schema::IndexSchema> {
        self.schema?.indexes.get(usize::from(index.0))
    }

    /// The indexes that a checkpoint has, by number: 0 is the primary one.
    pub(super) fn sharded(&self) -> impl Iterator<Item = (usize, &dyn Sharded)> {
        (0..=self.secondary.len()).filter_map(|number| Some((number, self.index(number)?.sharded())))
    }

    /// An index that a checkpoint has.
    pub(super) fn index(&self, number: usize) -> Option<IndexRef<'_>> {
        let Some(number) = number.checked_sub(1) else {
            return Some(IndexRef::Hashed(&self.primary));
        };
        match self.secondary.get(number)? {
            Secondary::Hashed(hashed) => Some(IndexRef::Hashed(hashed)),
            Secondary::ByTime(by_time) => Some(IndexRef::ByTime(by_time)),
            Secondary::Ordered(_) => None,
        }
    }

    fn corrupt(&self, key: &[u8], reason: String) -> Error {
        Error::Corrupt {
            table: self.static_name(),
            key: hex(key),
            reason,
        }
    }

    /// Calls `take` with the current entry of a primary key.
    pub(super) fn lookup<R>(
        &self,
        segments: &Segments,
        key: &[u8],
        mut take: impl FnMut(Location, &Entry<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let mut found = None;
        let hash = self.primary.hash(key);
        self.each_match(&self.primary, hash, segments, key, |shown| match shown {
            Shown::Again => {
                found = None;
                Verdict::Wanted
            }
            Shown::Entry(location, entry) if entry.key == key => {
                found = Some(take(location, entry));
                Verdict::Wanted
            }
            Shown::Entry(..) => Verdict::Other,
        })?;
        Ok(found)
    }

    /// What `take` makes of the entries under a key of an index, at most `limit`.
    pub(super) fn find<R>(
        &self,
        segments: &Segments,
        index: Index,
        key: &[u8],
        limit: usize,
        mut take: impl FnMut(&Entry<'_>) -> R,
    ) -> Result<Vec<R>, Error> {
        let holds = |entry: &Entry<'_>| entry.index_keys().any(|held| held == (index, key));
        let mut found = Vec::new();
        match self.secondary.get(usize::from(index.0)) {
            None => Err(Error::Invalid(format!(
                "table {} has no index {}",
                self.name, index.0
            ))),
            Some(Secondary::Hashed(hashed)) => {
                self.each_match(hashed, hashed.hash(key), segments, key, |shown| match shown {
                    Shown::Again => {
                        found.clear();
                        Verdict::Wanted
                    }
                    Shown::Entry(_, entry) if holds(entry) => {
                        found.push(take(entry));
                        match found.len() < limit {
                            true => Verdict::Wanted,
                            false => Verdict::Enough,
                        }
                    }
                    Shown::Entry(..) => Verdict::Other,
                })?;
                Ok(found)
            }
            Some(Secondary::ByTime(by_time)) => {
                let end = time_of(key).checked_add(1).map(u64::to_be_bytes);
                let end = end.as_ref().map(<[u8; 8]>::as_slice);
                for moment in by_time.page(None, key, end, limit) {
                    let rows =
                        self.at_moment(segments, index, moment, |entry| holds(entry).then(|| take(entry)))?;
                    found.extend(rows.into_iter().flatten());
                }
                Ok(found)
            }
            Some(Secondary::Ordered(ordered)) => {
                for (_, primary) in page_of(ordered, Bound::Included((key, &[])), None, limit, Some(key)) {
                    let row =
                        self.lookup(segments, &primary, |_, entry| holds(entry).then(|| take(entry)))?;
                    found.extend(row.flatten());
                }
                Ok(found)
            }
        }
    }

    /// How many entries an index has under a key; where it is hashed, of keys with the same hash as well.
    pub(super) fn count_of(&self, index: Index, key: &[u8]) -> Result<u64, Error> {
        match self.secondary.get(usize::from(index.0)) {
            None => Err(Error::Invalid(format!(
                "table {} has no index {}",
                self.name, index.0
            ))),
            Some(Secondary::Hashed(hashed)) => Ok(hashed.candidates(hashed.hash(key)).len() as u64),
            Some(Secondary::ByTime(by_time)) => {
                let end = time_of(key).checked_add(1).map(u64::to_be_bytes);
                let end = end.as_ref().map(<[u8; 8]>::as_slice);
                Ok(by_time.page(None, key, end, usize::MAX).len() as u64)
            }
            Some(Secondary::Ordered(ordered)) => Ok(count_in(ordered, key)),
        }
    }

    /// What `take` makes of the records at an entry of an index by time: one, unless two primary keys have one hash.
    pub(super) fn at_moment<R>(
        &self,
        segments: &Segments,
        index: Index,
        (time, hash): Moment,
        mut take: impl FnMut(&Entry<'_>) -> R,
    ) -> Result<Vec<R>, Error> {
        let is_at = |entry: &Entry<'_>| {
            let mut keys = entry.index_keys();
            self.primary.hash(entry.key) == hash
                && keys.any(|(held, key)| held == index && time_of(key) == time)
        };
        let mut found = Vec::new();
        let key = time.to_be_bytes();
        self.each_match(&self.primary, hash, segments, &key, |shown| match shown {
            Shown::Again => {
                found.clear();
                Verdict::Wanted
            }
            Shown::Entry(_, entry) if is_at(entry) => {
                found.push(take(entry));
                Verdict::Wanted
            }
            Shown::Entry(..) => Verdict::Other,
        })?;
        Ok(found)
    }

    /// Reads each candidate of a hash and shows it to `accept`, which says whether it is what was looked for.
    ///
    /// The answer is sure when all candidates were, or when the index says the same after they have been read.
    /// Otherwise all are read again. After [`Verdict::Enough`] the others are not read: many records may have one key.
    fn each_match(
        &self,
        index: &HashIndex,
        hash: u64,
        segments: &Segments,
        key: &[u8],
        mut accept: impl FnMut(Shown<'_>) -> Verdict,
    ) -> Result<(), Error> {
        let mut candidates = index.candidates(hash);
        for _ in 0..PATIENCE {
            let mut sure = true;
            let mut fault = None;
            with_buffer(|buffer| {
                let list = segments.list();
                for &location in &candidates {
                    let entry = match list.at(location) {
                        Some(segment) => segment.read(location.offset(), buffer),
                        None => Err("its segment is gone".to_owned()),
                    };
                    match entry {
                        Ok(entry) if entry.kind == Kind::Put && entry.table == self.number => {
                            let verdict = accept(Shown::Entry(location, &entry));
                            sure &= verdict != Verdict::Other;
                            if verdict == Verdict::Enough {
                                break;
                            }
                        }
                        Ok(_) => sure = false,
                        Err(reason) => {
                            sure = false;
                            fault = Some(reason);
                        }
                    }
                }
            });
            if sure {
                return Ok(());
            }
            let again = index.candidates(hash);
            if same(&candidates, &again) {
                return fault.map_or(Ok(()), |reason| Err(self.corrupt(key, reason)));
            }
            accept(Shown::Again);
            candidates = again;
        }
        Err(Error::Engine(format!(
            "table {}: an index entry changes all the time",
            self.name
        )))
    }

    /// Calls `take` with the current entries at a tag of the primary index. `locations` is what the index has said.
    pub(super) fn at_tag<R>(
        &self,
        segments: &Segments,
        place: WalkPlace,
        locations: Candidates,
        mut take: impl FnMut(&Entry<'_>) -> R,
    ) -> Result<Vec<R>, Error> {
        let mut locations = locations;
        for _ in 0..PATIENCE {
            let mut found = Vec::with_capacity(locations.len());
            with_buffer(|buffer| {
                let list = segments.list();
                for &location in &locations {
                    let Some(segment) = list.at(location) else {
                        continue;
                    };
                    let Ok(entry) = segment.read(location.offset(), buffer) else {
                        continue;
                    };
                    let current = entry.kind == Kind::Put
                        && entry.table == self.number
                        && self.primary.contains(self.primary.hash(entry.key), location);
                    if current {
                        found.push(take(&entry));
                    }
                }
            });
            if found.len() == locations.len() {
                return Ok(found);
            }
            // Some were changed, deleted or moved in between.
            let again = self.primary.at_tag(place);
            if same(&locations, &again) {
                return Err(self.corrupt(&[], "an index entry points to nothing".to_owned()));
            }
            locations = again;
        }
        Err(Error::Engine(format!(
            "table {}: an index entry changes all the time",
            self.name
        )))
    }

    /// Whether this entry, read at `location`, is what its record is now; a copy that compaction has made counts
    /// as the same.
    pub(super) fn is_current(
        &self,
        segments: &Segments,
        entry: &Entry<'_>,
        location: Location,
    ) -> Result<bool, Error> {
        if self.primary.contains(self.primary.hash(entry.key), location) {
            return Ok(true);
        }
        // A write is known by its record and version.
        let version = self.lookup(segments, entry.key, |_, now| now.version)?;
        Ok(version == Some(entry.version))
    }

    /// Makes the entry at `location` the current one of its record. Changes of secondary indexes are given to
    /// `change`, in their order.
    pub(super) fn apply_put<'s>(
        &'s self,
        key: &[u8],
        keys: &[u8],
        location: Location,
        old: Option<&Old>,
        change: &mut impl FnMut(&'s HashIndex, Change),
    ) {
        let hash = self.primary.hash(key);
        match old {
            Some(old) => {
                self.primary.replace(hash, old.location, location);
            }
            None => self.primary.insert(hash, location),
        }
        let before = old.map_or(&[][..], |old| &old.keys);
        for (index, index_key) in IndexKeyIter::over(keys) {
            let kept = IndexKeyIter::over(before).any(|held| held == (index, index_key));
            match (self.secondary.get(usize::from(index.0)), old) {
                (Some(Secondary::Hashed(hashed)), Some(old)) if kept => {
                    change(
                        hashed,
                        Change::Replace(hashed.hash(index_key), old.location, location),
                    );
                }
                (Some(Secondary::Hashed(hashed)), _) => {
                    change(hashed, Change::Insert(hashed.hash(index_key), location));
                }
                (Some(Secondary::ByTime(by_time)), _) if !kept => by_time.insert((time_of(index_key), hash)),
                (Some(Secondary::Ordered(ordered)), _) if !kept => {
                    ordered
                        .write()
                        .insert((Key::from_slice(index_key), Key::from_slice(key)));
                }
                _ => {}
            }
        }
        if let Some(old) = old {
            self.unlink(key, old, keys, change);
        }
    }

    /// Forgets a record.
    pub(super) fn apply_delete<'s>(
        &'s self,
        key: &[u8],
        old: &Old,
        change: &mut impl FnMut(&'s HashIndex, Change),
    ) {
        self.primary.remove(self.primary.hash(key), old.location);
        self.unlink(key, old, &[], change);
    }

    /// Removes the index entries of former keys, except those in `kept`.
    fn unlink<'s>(
        &'s self,
        key: &[u8],
        old: &Old,
        kept: &[u8],
        change: &mut impl FnMut(&'s HashIndex, Change),
    ) {
        for (index, index_key) in IndexKeyIter::over(&old.keys) {
            if IndexKeyIter::over(kept).any(|held| held == (index, index_key)) {
                continue;
            }
            match self.secondary.get(usize::from(index.0)) {
                Some(Secondary::Hashed(hashed)) => {
                    change(hashed, Change::Remove(hashed.hash(index_key), old.location));
                }
                Some(Secondary::ByTime(by_time)) => {
                    by_time.remove((time_of(index_key), self.primary.hash(key)));
                }
                Some(Secondary::Ordered(ordered)) => {
                    ordered
                        .write()
                        .remove(&(Key::from_slice(index_key), Key::from_slice(key)));
                }
                None => {}
            }
        }
    }

    /// What compaction must tell the writer about an entry it has copied.
    pub(super) fn plan_move(&self, entry: &Entry<'_>, old: Location, new: Location, size: u64) -> Move {
        let hash = self.primary.hash(entry.key);
        let hashed =
            entry
                .index_keys()
                .filter_map(|(index, key)| match self.secondary.get(usize::from(index.0)) {
                    Some(Secondary::Hashed(hashed)) => Some((index.0, hashed.hash(key))),
                    _ => None,
                });
        Move {
            table: self.number,
            hash,
            secondary: hashed.collect(),
            old,
            new,
            size,
        }
    }

    /// Lets the indexes point to the copy; false when the record has changed since it was copied.
    pub(super) fn apply_move(&self, moved: &Move) -> bool {
        if !self.primary.replace(moved.hash, moved.old, moved.new) {
            return false;
        }
        for (index, hash) in &moved.secondary {
            if let Some(Secondary::Hashed(hashed)) = self.secondary.get(usize::from(*index)) {
                hashed.replace(*hash, moved.old, moved.new);
            }
        }
        true
    }

    /// Bytes of the indexes, but for those that are ordered by keys of any kind.
    pub(super) fn memory(&self) -> usize {
        let secondary = self.secondary.iter().map(|index| match index {
            Secondary::Hashed(hashed) => hashed.memory(),
            Secondary::ByTime(by_time) => by_time.memory(),
            Secondary::Ordered(_) => 0,
        });
        self.primary.memory() + secondary.sum::<usize>()
    }
}

/// Entries of an ordered index with this key, counted some at a time: the writer waits no longer than for those.
fn count_in(ordered: &RwLock<BTreeSet<(Key, Key)>>, key: &[u8]) -> u64 {
    let mut from = Bound::Included((Key::from_slice(key), Key::from_slice(&[])));
    let mut count = 0;
    loop {
        let entries = ordered.read();
        let range = entries.range((from, Bound::Unbounded));
        let own = range.take_while(|(other, _)| other.as_slice() == key);
        let (more, last) = own
            .take(COUNTED)
            .fold((0, None), |(count, _), entry| (count + 1, Some(entry)));
        count += more as u64;
        match last {
            Some(last) if more == COUNTED => from = Bound::Excluded(last.clone()),
            _ => return count,
        }
    }
}

/// Entries of an ordered index from `from` to before `to`, or those of exactly one key.
pub(super) fn page_of(
    ordered: &RwLock<BTreeSet<(Key, Key)>>,
    from: Bound<(&[u8], &[u8])>,
    to: Option<&[u8]>,
    limit: usize,
    exactly: Option<&[u8]>,
) -> Vec<(Key, Key)> {
    let owned = |(key, primary): (&[u8], &[u8])| (Key::from_slice(key), Key::from_slice(primary));
    let from = from.map(owned);
    let within = |(key, _): &&(Key, Key)| {
        to.is_none_or(|to| key.as_slice() < to) && exactly.is_none_or(|exactly| key.as_slice() == exactly)
    };
    ordered
        .read()
        .range((from, Bound::Unbounded))
        .take_while(within)
        .take(limit)
        .cloned()
        .collect()
}

fn same(one: &Candidates, other: &Candidates) -> bool {
    let (mut one, mut other) = (one.clone(), other.clone());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}
