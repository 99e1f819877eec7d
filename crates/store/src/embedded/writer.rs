//! The one thread that writes.
//!
//! It takes whatever batches wait, checks each one's conditions against what is stored, and writes those that
//! pass to the end of the log, flushed to disk in one go. Then it lets the indexes point to them and answers all.
//! One writer means that conditions need no locks: what it has read, no other thread changes. Compaction, too, hands
//! its changes of indexes to this thread.
//!
//! After each flush the mark is written ([`super::mark`]), which tells a torn end from a damaged one.
//!
//! What a crash leaves: entries have a checksum and batches a mark at their end, so a batch is found whole or not
//! at all; it is acknowledged, and seen by readers, after the disk has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ahash::{AHashMap, AHashSet};
use crossbeam_channel::{Receiver, Sender};
use smallvec::SmallVec;

use super::Shared;
use super::checkpoint::Point;
use super::entry::{Entry, Kind, NONE_OLDER, NOTE, Note};
use super::hash_index::{Change as IndexChange, HashIndex, Location};
use super::judge::Progress;
use super::mark::{Mark, MarkFile};
use super::reserve::Reserve;
use super::running::Cut;
use super::segment::Segment;
use super::segments::Need;
use super::space::{Move, Old, Space};
use super::tail::ONLY_DELETIONS;
use crate::batch::{Batch, Change};
use crate::config::EmbeddedConfig;
use crate::error::{Conflict, Error, hex};
use crate::record::{IndexKeyIter, Key};
use crate::reply::Acknowledge;
use crate::schema::Index;
use crate::version::{Stamper, Version};

/// What the writer is asked for.
pub(super) enum Message {
    Commit(Job),
    /// Entries that compaction has copied; answered when the indexes point to the copies.
    Moves(Vec<Move>, Sender<()>),
    /// A checkpoint is to be written; answered with its moment.
    Checkpoint(Sender<Option<Point>>),
    /// A copy of the log is to be made; answered with what belongs to it, or why there can be none.
    Cut(Sender<Result<Cut, String>>),
}

/// A batch on its way to the writer.
pub(super) struct Job {
    pub(super) batch: Batch,
    pub(super) done: Acknowledge,
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) directory: PathBuf,
    pub(super) config: EmbeddedConfig,
    pub(super) site: u16,
    pub(super) stamper: Stamper,
    /// The segment at the end of the log.
    pub(super) active: Arc<Segment>,
    /// The active segment has its end; nothing is added to it.
    pub(super) sealed: bool,
    /// The active segment is one of those that are kept for deletions.
    pub(super) reserved: bool,
    /// Room for deletions on a full disk.
    pub(super) reserve: Reserve,
    /// Up to where the active segment is on the disk.
    pub(super) durable: u64,
    pub(super) mark: MarkFile,
    /// Of the active segment.
    pub(super) progress: Progress,
    /// What must be cut off the active segment before anything is written to it.
    pub(super) cut: Option<u64>,
    /// Wakes compaction: there may be work.
    pub(super) wake: Sender<()>,
    pub(super) group: Group,
    /// Why no write is accepted any more.
    pub(super) failed: Option<Error>,
    /// When it was tried last whether writes succeed again.
    pub(super) tried: Instant,
    /// The checkpoint is of the log as it is now.
    pub(super) fresh: bool,
}

/// What is staged and not yet in the log.
#[derive(Default)]
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    /// Offset in `bytes` of each entry, its size, and what it makes void.
    pub(super) entries: Vec<(usize, usize, Option<Old>)>,
    /// Records and unique keys that the group changes. A later batch that touches one of them waits for the next
    /// group, because its conditions must be judged by what this group leaves.
    rows: AHashSet<(u16, Key)>,
    holders: AHashSet<(u16, Index, Key)>,
    accepted: Vec<Accepted>,
}

/// A batch that is staged, and what its caller will be told.
struct Accepted {
    done: Acknowledge,
    version: Version,
    operations: u64,
}

/// Who holds the unique keys that a batch touches, after it.
type Holders = AHashMap<(u16, Index, Key), Option<Key>>;

/// What became of a batch.
enum Outcome {
    Staged,
    /// It must wait until the group is written.
    Later(Batch),
}

impl Writer {
    /// Runs until all senders are gone.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut last = Instant::now();
        loop {
            let first = match self.next(messages) {
                Ok(Some(first)) => first,
                Ok(None) => continue,
                Err(_) => break,
            };
            // A batch in a quiet moment is served at once; under load groups keep their distance, so that
            // each flush serves many. Asleep, not waiting on the queue: callers need not wake this thread.
            std::thread::sleep(
                self.config
                    .group_interval
                    .duration()
                    .saturating_sub(last.elapsed()),
            );
            last = Instant::now();
            let mut next = Some(first);
            let mut count = 0;
            while let Some(message) = next {
                match message {
                    Message::Commit(job) => {
                        self.take(job);
                        count += 1;
                    }
                    Message::Moves(moves, done) => {
                        // Indexes must show what is staged before they are changed.
                        self.finish();
                        self.fresh = false;
                        self.apply_moves(&moves);
                        // Compaction may have been stopped; then no thread waits.
                        let _ = done.send(());
                    }
                    Message::Checkpoint(done) => {
                        // Of what readers see, not of what is staged.
                        self.finish();
                        let _ = done.send(self.point());
                    }
                    Message::Cut(done) => {
                        // What was committed before is acknowledged and in it.
                        self.finish();
                        let _ = done.send(self.cut());
                    }
                }
                let full = count >= self.config.group_batches || self.group.bytes.len() >= LARGE_GROUP;
                next = if full { None } else { messages.try_recv().ok() };
            }
            self.finish();
        }
        self.close();
    }

    /// The log as it is now.
    fn cut(&self) -> Result<Cut, String> {
        if let Some(error) = &self.failed {
            return Err(error.to_string());
        }
        let list = self.shared.segments.list();
        // Without what compaction has not finished: its originals have all of it.
        let files = list.originals().into_iter();
        Ok(Cut {
            files: files.map(|file| (file.clone(), file.length())).collect(),
            open: !self.sealed,
            mark: Mark {
                segment: self.active.name.last,
                offset: self.active.length(),
            },
        })
    }

    /// Stages a batch, or answers it.
    fn take(&mut self, Job { batch, done }: Job) {
        self.shared.counters.waiting_bytes.fetch_sub(batch.bytes, Relaxed);
        if let Some(error) = &self.failed {
            self.shared.counters.failures.fetch_add(1, Relaxed);
            self.shared.trouble.refused(1);
            let _ = done.send(Err(error.clone()));
            return;
        }
        let (version, operations) = (self.stamper.next(), batch.operations.len() as u64);
        let outcome = match self.stage(batch, version) {
            Ok(Outcome::Later(batch)) => {
                self.finish();
                // The group is empty now; only a full segment can be in the way.
                let need = match batch.only_deletes() {
                    true => Need::Deletions,
                    false => Need::Writes,
                };
                self.make_room(batch.bytes, need)
                    .and_then(|()| self.stage(batch, version))
            }
            other => other,
        };
        match outcome {
            Ok(Outcome::Staged) => self.group.accepted.push(Accepted {
                done,
                version,
                operations,
            }),
            Ok(Outcome::Later(_)) => {
                // `Config::validate` keeps batches below half a segment.
                let _ = done.send(Err(Error::Invalid("the batch does not fit a segment".to_owned())));
            }
            Err(error) => {
                let counter = match error {
                    Error::Conflict { .. } => &self.shared.counters.conflicts,
                    _ => &self.shared.counters.failures,
                };
                counter.fetch_add(1, Relaxed);
                // The caller may have gone; nothing was written.
                let _ = done.send(Err(error));
            }
        }
    }

    /// Checks a batch and stages its writes; on an error nothing of it is staged.
    fn stage(&mut self, batch: Batch, version: Version) -> Result<Outcome, Error> {
        // `bytes` of a batch is never less than what its entries take.
        let bytes = self.group.bytes.len().max(NOTE) + batch.bytes;
        if self.sealed || self.active.length() + bytes as u64 > self.config.segment.bytes() {
            return Ok(Outcome::Later(batch));
        }
        self.reserved = self.reserved && self.shared.segments.is_full();
        if !batch.only_deletes() {
            if self.reserved {
                return Err(Error::Engine(self.shared.segments.full()));
            }
            if self.takes_only_deletions() {
                self.shared.trouble.refused(1);
                return Err(Error::Engine(ONLY_DELETIONS.to_owned()));
            }
        }
        let mut rows: SmallVec<[(u16, Key); 2]> = SmallVec::new();
        let mut old: SmallVec<[Option<Old>; 2]> = SmallVec::new();
        for (position, operation) in batch.operations.iter().enumerate() {
            let space = self.shared.space(operation.table);
            let row = (space.number, operation.key.clone());
            if self.group.rows.contains(&row) {
                return Ok(Outcome::Later(batch));
            }
            if rows.contains(&row) {
                let key = hex(&operation.key);
                return Err(Error::Invalid(format!(
                    "table {}: the batch names record {key} twice",
                    space.name
                )));
            }
            rows.push(row);
            let known = self.known(space, &operation.key)?;
            let stored = known.as_ref().map(|known| {
                let expiry = operation.lifetime.and_then(|lifetime| {
                    IndexKeyIter::over(&known.keys).find(|(index, _)| *index == lifetime.index)
                });
                (known.version, expiry.map(|(_, at)| at))
            });
            let checked = operation.check(stored, batch.now);
            checked.map_err(|conflict| Error::Conflict {
                operation: position,
                table: space.static_name(),
                conflict,
            })?;
            old.push(known);
        }
        let mut holders = Holders::default();
        if !self.hand_over(&batch, &old, &mut holders)? {
            return Ok(Outcome::Later(batch));
        }
        self.write(&batch, old, version);
        self.group.rows.extend(rows);
        self.group.holders.extend(holders.into_keys());
        Ok(Outcome::Staged)
    }

    /// Who will hold the unique keys; false when the batch must wait for the next group.
    ///
    /// Unique keys are judged by the state after the whole batch, so that a batch may hand a key from one record
    /// to another.
    fn hand_over(&self, batch: &Batch, old: &[Option<Old>], holders: &mut Holders) -> Result<bool, Error> {
        for (operation, old) in batch.operations.iter().zip(old) {
            let space = self.shared.space(operation.table);
            let (Some(old), false) = (old, matches!(operation.change, Change::Nothing)) else {
                continue;
            };
            for (index, key) in IndexKeyIter::over(&old.keys).filter(|(index, _)| space.is_unique(*index)) {
                holders.insert((space.number, index, Key::from_slice(key)), None);
            }
        }
        if holders.keys().any(|place| self.group.holders.contains(place)) {
            return Ok(false);
        }
        for (position, operation) in batch.operations.iter().enumerate() {
            let Change::Put(row) = &operation.change else {
                continue;
            };
            let space = self.shared.space(operation.table);
            for (index, key) in row.keys.iter().filter(|(index, _)| space.is_unique(*index)) {
                let place = (space.number, index, Key::from_slice(key));
                if self.group.holders.contains(&place) {
                    return Ok(false);
                }
                let holder = match holders.get(&place) {
                    Some(holder) => holder.clone(),
                    None => {
                        let found = space.find(&self.shared.segments, index, key, 1, |entry| {
                            Key::from_slice(entry.key)
                        })?;
                        found.into_iter().next()
                    }
                };
                if let Some(holder) = holder.filter(|holder| *holder != operation.key) {
                    let index = space.index_schema(index).map_or("?", |index| index.name);
                    let conflict = Conflict::Unique {
                        index,
                        holder: Some(holder.to_vec()),
                    };
                    return Err(Error::Conflict {
                        operation: position,
                        table: space.static_name(),
                        conflict,
                    });
                }
                holders.insert(place, Some(operation.key.clone()));
            }
        }
        Ok(true)
    }

    /// Appends the entries of a batch to the group.
    fn write(&mut self, batch: &Batch, old: SmallVec<[Option<Old>; 2]>, version: Version) {
        let writes = |change: &Change, old: &Option<Old>| match change {
            Change::Put(_) => true,
            Change::Delete => old.is_some(),
            Change::Nothing => false,
        };
        let pairs = || batch.operations.iter().zip(&old);
        let mut left = pairs()
            .filter(|(operation, old)| writes(&operation.change, old))
            .count();
        let mut follows = false;
        for (operation, old) in batch.operations.iter().zip(old.clone()) {
            if !writes(&operation.change, &old) {
                continue;
            }
            if self.group.bytes.is_empty() {
                let head = Note {
                    number: self.active.name.last,
                    at: self.active.length(),
                    figure: self.durable,
                    chain: self.progress.chain,
                };
                head.encode(Kind::Group, &mut self.group.bytes);
            }
            left -= 1;
            let row = match &operation.change {
                Change::Put(row) => Some(row),
                _ => None,
            };
            let entry = Entry {
                kind: if row.is_some() { Kind::Put } else { Kind::Delete },
                continues: left > 0,
                follows: std::mem::replace(&mut follows, true),
                table: self.shared.space(operation.table).number,
                oldest: old.as_ref().map_or(NONE_OLDER, |old| old.oldest),
                version,
                created: old
                    .as_ref()
                    .filter(|_| row.is_some())
                    .map_or(version.micros(), |old| old.created),
                site: self.site,
                key: &operation.key,
                keys: row.map_or(&[], |row| row.keys.as_bytes()),
                value: row.map_or(&[], |row| &row.value),
            };
            let offset = self.group.bytes.len();
            let size = entry.encode(&mut self.group.bytes);
            self.group.entries.push((offset, size, old));
        }
    }

    /// What is stored under a key, as far as a later write must know it.
    fn known(&self, space: &Space, key: &[u8]) -> Result<Option<Old>, Error> {
        known(&self.shared, space, key)
    }

    /// Makes what is staged durable and visible, and answers.
    fn finish(&mut self) {
        if self.group.accepted.is_empty() {
            return;
        }
        self.fresh &= self.group.bytes.is_empty();
        let begun = Instant::now();
        let outcome = if self.group.bytes.is_empty() {
            Ok(())
        } else {
            self.append()
        };
        let counters = &self.shared.counters;
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        counters.commit_micros.fetch_add(took, Relaxed);
        counters.groups.fetch_add(1, Relaxed);
        match &outcome {
            Ok(()) => self.apply(),
            // Told by the first of them, not by each.
            Err(_) => self.shared.trouble.refused(self.group.accepted.len() as u64),
        }
        for Accepted {
            done,
            version,
            operations,
        } in self.group.accepted.drain(..)
        {
            if outcome.is_ok() {
                counters.batches.fetch_add(1, Relaxed);
                counters.operations.fetch_add(operations, Relaxed);
            } else {
                counters.failures.fetch_add(1, Relaxed);
            }
            // The caller may have gone; the write is kept all the same.
            let _ = done.send(outcome.clone().map(|()| version));
        }
        self.group.bytes.clear();
        self.group.bytes.shrink_to(KEEP_GROUP);
        self.group.entries.clear();
        self.group.rows.clear();
        self.group.holders.clear();
    }

    /// Lets the indexes show the group that has just been written.
    fn apply(&self) {
        let base = self.active.length() - self.group.bytes.len() as u64;
        for (offset, size, old) in &self.group.entries {
            // Made by `Entry::encode` a moment ago.
            let Ok(entry) = Entry::parse(&self.group.bytes[*offset..*offset + *size]) else {
                continue;
            };
            self.shared.apply(
                &entry,
                &self.active,
                (base + *offset as u64, *size as u64),
                old.as_ref(),
                &mut HashIndex::change,
            );
        }
    }

    fn apply_moves(&self, moves: &[Move]) {
        let list = self.shared.segments.list();
        for moved in moves {
            // A record that has changed since it was copied stays where it is now; the copy is void.
            if let Some(space) = self.shared.spaces.get(usize::from(moved.table))
                && space.apply_move(moved)
                && let Some(segment) = list.at(moved.new)
            {
                segment.add_live(moved.size);
            }
        }
    }
}

/// A group of this many bytes is written without waiting for more.
const LARGE_GROUP: usize = 8 << 20;
/// A group buffer larger than this is given back.
const KEEP_GROUP: usize = 4 << 20;

impl Shared {
    /// Lets the indexes show an entry of the log, and counts what it makes void. Only the writer thread calls
    /// this, and recovery before there is one. `change` carries out changes of secondary indexes, each index's in
    /// their order.
    pub(super) fn apply<'s>(
        &'s self,
        entry: &Entry<'_>,
        segment: &Segment,
        (offset, size): (u64, u64),
        old: Option<&Old>,
        change: &mut impl FnMut(&'s HashIndex, IndexChange),
    ) {
        let Some(space) = self.spaces.get(usize::from(entry.table)) else {
            return;
        };
        segment.saw_version(entry.version.0);
        match (entry.kind, old) {
            (Kind::Put, _) => {
                let location = Location::new(segment.slot, offset);
                space.apply_put(entry.key, entry.keys, location, old, change);
                segment.add_live(size);
            }
            (Kind::Delete, Some(old)) => space.apply_delete(entry.key, old, change),
            (Kind::Delete, None) | (Kind::Group | Kind::End, _) => {}
        }
        if let Some(old) = old
            && let Some(segment) = self.segments.list().at(old.location)
        {
            segment.remove_live(old.size);
        }
    }
}

/// What is stored under a key, as far as a later write must know it.
pub(super) fn known(shared: &Shared, space: &Space, key: &[u8]) -> Result<Option<Old>, Error> {
    space.lookup(&shared.segments, key, |location, entry| {
        let holder = shared
            .segments
            .list()
            .at(location)
            .map_or(0, |segment| segment.name.last);
        Old {
            location,
            version: entry.version,
            created: entry.created,
            keys: SmallVec::from_slice(entry.keys),
            oldest: entry.oldest.min(holder),
            size: entry.size(),
        }
    })
}
