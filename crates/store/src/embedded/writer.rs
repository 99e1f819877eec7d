//! The one thread that writes.
//!
//! It takes whatever batches wait, checks each one's conditions against what is stored, and commits those that
//! pass as one write to the engine's journal, flushed to disk. Then it answers all of them. One writer means that
//! conditions need no locks: what it has read, nobody else changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ahash::{AHashMap, AHashSet};
use crossbeam_channel::Receiver;
use fjall::{Database, Keyspace, OwnedWriteBatch as WriteBatch, PersistMode};

use super::layout::{Envelope, entry, modified_entry, unique_entry};
use super::{Counters, Space};
use crate::batch::{Batch, Change, Condition, NewRow};
use crate::config::{Durability, EmbeddedConfig};
use crate::engine::TableId;
use crate::error::{Conflict, Error, hex};
use crate::record::{IndexKeyIter, Key};
use crate::reply::Acknowledge;
use crate::schema::{Index, TableSchema};
use crate::version::{Stamper, Version};

/// A batch on its way to the writer.
pub(super) struct Job {
    pub(super) batch: Batch,
    pub(super) done: Acknowledge,
}

pub(super) struct Writer {
    pub(super) database: Database,
    pub(super) spaces: Arc<Vec<Space>>,
    pub(super) config: EmbeddedConfig,
    pub(super) site: u16,
    pub(super) stamper: Stamper,
    pub(super) counters: Arc<Counters>,
}

/// What is left of a record that a later write must know: its version, age, and index keys.
#[derive(Clone, Debug)]
struct Known {
    version: Version,
    created: u64,
    keys: Vec<u8>,
}

/// What the batches of a group write. The engine writes a group as one, without an order among writes of the
/// same key, so a batch that touches what an earlier one touches waits for the next group.
#[derive(Default)]
struct Touched {
    rows: AHashSet<(TableId, Key)>,
    holders: AHashSet<(TableId, Vec<u8>)>,
}

/// Who holds the unique index entries that a batch touches, after it.
type Holders = AHashMap<(TableId, Vec<u8>), Option<Key>>;

/// What became of a batch.
enum Outcome {
    Staged,
    /// It must wait for the next group.
    Later(Batch),
}

/// A batch that is staged, and what its caller will be told.
struct Accepted {
    done: Acknowledge,
    version: Version,
    operations: u64,
}

impl Writer {
    /// Runs until all senders are gone.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut group = Vec::new();
        while let Ok(first) = jobs.recv() {
            group.push(first);
            self.gather(jobs, &mut group);
            self.commit(&mut group);
        }
    }

    fn gather(&self, jobs: &Receiver<Job>, group: &mut Vec<Job>) {
        let wait = self.config.group_wait.duration();
        let deadline = (!wait.is_zero()).then(|| Instant::now() + wait);
        while group.len() < self.config.group_batches {
            let next = match deadline {
                None => jobs.try_recv().ok(),
                Some(deadline) => jobs.recv_deadline(deadline).ok(),
            };
            match next {
                Some(job) => group.push(job),
                None => break,
            }
        }
    }

    /// Commits a group, or several in order where batches touch the same records.
    fn commit(&mut self, group: &mut Vec<Job>) {
        let bytes: usize = group.iter().map(|job| job.batch.bytes).sum();
        self.counters.waiting_bytes.fetch_sub(bytes, Relaxed);
        let mut staged = self.staging();
        let mut touched = Touched::default();
        let mut accepted = Vec::with_capacity(group.len());
        for Job { mut batch, done } in group.drain(..) {
            let (version, operations) = (self.stamper.next(), batch.operations.len() as u64);
            let staging = loop {
                match self.stage(batch, version, &mut touched, &mut staged) {
                    Ok(Outcome::Later(again)) => {
                        self.finish(std::mem::replace(&mut staged, self.staging()), &mut accepted);
                        // With nothing touched, the second round cannot end here again.
                        touched = Touched::default();
                        batch = again;
                    }
                    Ok(Outcome::Staged) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            match staging {
                Ok(()) => accepted.push(Accepted {
                    done,
                    version,
                    operations,
                }),
                Err(error) => {
                    let counter = match error {
                        Error::Conflict { .. } => &self.counters.conflicts,
                        _ => &self.counters.failures,
                    };
                    counter.fetch_add(1, Relaxed);
                    // Whoever asked may have gone; nothing was written.
                    let _ = done.send(Err(error));
                }
            }
        }
        self.finish(staged, &mut accepted);
    }

    fn staging(&self) -> WriteBatch {
        let mode = match self.config.durability {
            Durability::Fsync => PersistMode::SyncData,
            Durability::Os => PersistMode::Buffer,
        };
        self.database.batch().durability(Some(mode))
    }

    /// Makes staged writes durable and tells their callers.
    fn finish(&self, staged: WriteBatch, accepted: &mut Vec<Accepted>) {
        if accepted.is_empty() {
            return;
        }
        let begun = Instant::now();
        let outcome = staged.commit().map_err(|error| Error::Engine(error.to_string()));
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counters.commit_micros.fetch_add(took, Relaxed);
        self.counters.groups.fetch_add(1, Relaxed);
        if let Err(error) = &outcome {
            tracing::error!(%error, "the store's journal cannot be written; no write is accepted any more");
        }
        for Accepted {
            done,
            version,
            operations,
        } in accepted.drain(..)
        {
            if outcome.is_ok() {
                self.counters.batches.fetch_add(1, Relaxed);
                self.counters.operations.fetch_add(operations, Relaxed);
            } else {
                self.counters.failures.fetch_add(1, Relaxed);
            }
            // Whoever asked may have gone; the write is kept all the same.
            let _ = done.send(outcome.clone().map(|()| version));
        }
    }

    /// Checks a batch and stages its writes; on an error nothing of it is staged.
    fn stage(
        &self,
        batch: Batch,
        version: Version,
        touched: &mut Touched,
        staged: &mut WriteBatch,
    ) -> Result<Outcome, Error> {
        let mut rows = AHashSet::with_capacity(batch.operations.len());
        let mut old = Vec::with_capacity(batch.operations.len());
        for (position, operation) in batch.operations.iter().enumerate() {
            let row = (operation.table, operation.key.clone());
            if touched.rows.contains(&row) {
                return Ok(Outcome::Later(batch));
            }
            let space = self.space(operation.table);
            if !rows.insert(row) {
                let key = hex(&operation.key);
                return Err(Error::Invalid(format!(
                    "table {}: the batch names record {key} twice",
                    space.schema.name
                )));
            }
            let known = space.known(&operation.key)?;
            check(operation.condition, known.as_ref().map(|known| known.version)).map_err(|conflict| {
                Error::Conflict {
                    operation: position,
                    table: space.schema.name,
                    conflict,
                }
            })?;
            old.push(known);
        }
        let mut holders = self.released(&batch, &old);
        if !self.take(&batch, touched, &mut holders)? {
            return Ok(Outcome::Later(batch));
        }
        for (operation, old) in batch.operations.into_iter().zip(old) {
            let space = self.space(operation.table);
            match operation.change {
                Change::Nothing => {}
                Change::Delete => {
                    if let Some(old) = old {
                        unlink(space, staged, &operation.key, &old, &[]);
                        staged.remove(&space.rows, operation.key.as_slice());
                    }
                }
                Change::Put(row) => self.put(space, staged, &operation.key, old.as_ref(), &row, version),
            }
        }
        for ((table, entry), holder) in &holders {
            let space = self.space(*table);
            match holder {
                Some(holder) => staged.insert(&space.keys, entry.as_slice(), holder.as_slice()),
                None => staged.remove(&space.keys, entry.as_slice()),
            }
        }
        touched.rows.extend(rows);
        touched.holders.extend(holders.into_keys());
        Ok(Outcome::Staged)
    }

    fn space(&self, table: TableId) -> &Space {
        // Ids come from `Store::table`, which counted the same list.
        &self.spaces[usize::from(table.0)]
    }

    fn put(
        &self,
        space: &Space,
        staged: &mut WriteBatch,
        key: &[u8],
        old: Option<&Known>,
        row: &NewRow,
        version: Version,
    ) {
        // The record before its index entries: a reader who sees an entry finds the record.
        let created = old.map_or(version.micros(), |old| old.created);
        let envelope = Envelope {
            version,
            created,
            site: self.site,
            keys: row.keys.as_bytes(),
            value: &row.value,
        };
        staged.insert(&space.rows, key, envelope.encode());
        let before = old.map_or(&[][..], |old| &old.keys);
        if let Some(old) = old {
            unlink(space, staged, key, old, row.keys.as_bytes());
        }
        for (index, index_key) in row.keys.iter() {
            // An entry that was there stays as it is.
            if IndexKeyIter::over(before).any(|earlier| earlier == (index, index_key)) {
                continue;
            }
            if !space.is_unique(index) {
                staged.insert(&space.keys, entry(index, index_key, key), &[][..]);
            }
        }
        if space.schema.by_modified {
            staged.insert(&space.keys, modified_entry(version, key), &[][..]);
        }
    }

    /// The unique entries that the batch's records have had, as if all were given up.
    ///
    /// Unique keys are judged by the state after the whole batch, so that a batch may hand a key from one record
    /// to another.
    fn released(&self, batch: &Batch, old: &[Option<Known>]) -> Holders {
        let mut holders = Holders::default();
        for (operation, old) in batch.operations.iter().zip(old) {
            let space = self.space(operation.table);
            let (Some(old), false) = (old, matches!(operation.change, Change::Nothing)) else {
                continue;
            };
            for (index, key) in IndexKeyIter::over(&old.keys).filter(|(index, _)| space.is_unique(*index)) {
                holders.insert((operation.table, unique_entry(index, key)), None);
            }
        }
        holders
    }

    /// Takes the unique entries of the batch's new records; false when the batch must wait for the next group.
    fn take(&self, batch: &Batch, touched: &Touched, holders: &mut Holders) -> Result<bool, Error> {
        if holders.keys().any(|place| touched.holders.contains(place)) {
            return Ok(false);
        }
        for (position, operation) in batch.operations.iter().enumerate() {
            let Change::Put(row) = &operation.change else {
                continue;
            };
            let space = self.space(operation.table);
            for (index, key) in row.keys.iter().filter(|(index, _)| space.is_unique(*index)) {
                let place = (operation.table, unique_entry(index, key));
                if touched.holders.contains(&place) {
                    return Ok(false);
                }
                let holder = match holders.get(&place) {
                    Some(holder) => holder.clone(),
                    None => space.holder(&place.1)?,
                };
                if let Some(holder) = holder.filter(|holder| *holder != operation.key) {
                    let holder = Some(holder.to_vec());
                    let conflict = Conflict::Unique {
                        index: index_name(space.schema, index),
                        holder,
                    };
                    return Err(Error::Conflict {
                        operation: position,
                        table: space.schema.name,
                        conflict,
                    });
                }
                holders.insert(place, Some(operation.key.clone()));
            }
        }
        Ok(true)
    }
}

/// Removes the entries of a record's former index keys, except those it keeps and those of unique indexes.
fn unlink(space: &Space, staged: &mut WriteBatch, key: &[u8], old: &Known, kept: &[u8]) {
    for (index, index_key) in IndexKeyIter::over(&old.keys) {
        if IndexKeyIter::over(kept).any(|later| later == (index, index_key)) {
            continue;
        }
        if !space.is_unique(index) {
            staged.remove(&space.keys, entry(index, index_key, key));
        }
    }
    if space.schema.by_modified {
        staged.remove(&space.keys, modified_entry(old.version, key));
    }
}

fn check(condition: Condition, version: Option<Version>) -> Result<(), Conflict> {
    match (condition, version) {
        (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => Ok(()),
        (Condition::Absent, Some(version)) => Err(Conflict::Exists(version)),
        (Condition::Present | Condition::Version(_), None) => Err(Conflict::Absent),
        (Condition::Version(expected), Some(version)) if expected == version => Ok(()),
        (Condition::Version(_), Some(version)) => Err(Conflict::Changed(version)),
    }
}

fn index_name(schema: &'static TableSchema, index: Index) -> &'static str {
    schema
        .indexes
        .get(usize::from(index.0))
        .map_or("?", |index| index.name)
}

impl Space {
    fn is_unique(&self, index: Index) -> bool {
        self.schema
            .indexes
            .get(usize::from(index.0))
            .is_some_and(|index| index.unique)
    }

    fn known(&self, key: &[u8]) -> Result<Option<Known>, Error> {
        let Some(bytes) = read(&self.rows, key)? else {
            return Ok(None);
        };
        let envelope = Envelope::decode(&bytes).map_err(|reason| self.corrupt(key, reason))?;
        Ok(Some(Known {
            version: envelope.version,
            created: envelope.created,
            keys: envelope.keys.to_vec(),
        }))
    }

    fn holder(&self, unique_entry: &[u8]) -> Result<Option<Key>, Error> {
        Ok(read(&self.keys, unique_entry)?.map(|primary| Key::from_slice(&primary)))
    }
}

pub(super) fn read(space: &Keyspace, key: &[u8]) -> Result<Option<fjall::Slice>, Error> {
    space.get(key).map_err(|error| Error::Engine(error.to_string()))
}
