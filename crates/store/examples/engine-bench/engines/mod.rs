//! The engines behind one small interface. Index keys of a record are stored beside it, so that a deletion finds
//! its index entries; ours does so inside.

mod fjall;
mod own;
mod redb;
mod rocksdb;
mod sqlite;

use std::path::Path;

use self::rocksdb::Values;
use crate::work::{Bytes, Work, modified};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What is measured.
pub(crate) trait Engine {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()>;
    /// Reads each record, and writes it again on the condition that it is as the change before has left it.
    fn update(&mut self, group: &[Bytes]) -> Outcome<()>;
    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>>;
    /// The record of the first entry under an index key.
    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>>;
    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()>;
    /// Waits until the work is done that writes have left to threads of the engine; `false`: the engine does not say.
    fn settle(&mut self) -> Outcome<bool> {
        Ok(false)
    }
}

/// Bytes of the caches of those engines that have one of their own.
const CACHE: usize = 256 << 20;

pub(crate) fn open<W: Work>(name: &str, directory: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(match name {
        "signalbox" => Box::new(own::Own::<W>::open(directory)?),
        "rocksdb" => Box::new(rocksdb::RocksDb::open(directory, Values::InTables)?),
        "rocksdb-blob" => Box::new(rocksdb::RocksDb::open(directory, Values::InBlobs)?),
        "rocksdb-small" => Box::new(rocksdb::RocksDb::open(
            directory,
            Values::InBlobsAndLogCompressed,
        )?),
        "fjall" => Box::new(fjall::Fjall::open(directory)?),
        "redb" => Box::new(redb::Redb::open(directory)?),
        "sqlite" => Box::new(sqlite::Sqlite::open(directory, W::KEYS)?),
        other => return Err(format!("no engine {other}").into()),
    })
}

/// All index entries of a record as keys: index number, key, end mark, identity.
fn entries(record: &Bytes) -> Vec<Vec<u8>> {
    let mut entries: Vec<Vec<u8>> = record
        .keys
        .iter()
        .map(|(index, key)| [&prefix(*index, key)[..], &record.id].concat())
        .collect();
    entries.push(last_entry(record.modified, &record.id));
    entries
}

/// The entry by time of modification.
fn last_entry(modified: u64, id: &[u8]) -> Vec<u8> {
    [&[0xff][..], &modified.to_be_bytes(), id].concat()
}

/// Whether a row is as the change before this one has left it.
fn is_before(row: &[u8], record: &Bytes) -> bool {
    let before = record
        .changes
        .checked_sub(1)
        .map(|changes| last_entry(modified(record.number, changes), &record.id));
    entries_of(row).last().copied() == before.as_deref()
}

fn changed_since(record: &Bytes) -> Box<dyn std::error::Error> {
    format!("record {} is not as it was written last", record.number).into()
}

/// Keys of the benchmark have no zero bytes inside except addresses, which have one length.
fn prefix(index: u8, key: &[u8]) -> Vec<u8> {
    [&[index][..], key, &[0, 0]].concat()
}

/// A row: index entries, then the value.
fn row(record: &Bytes, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut row = vec![entries.len() as u8];
    for entry in entries {
        row.push(entry.len() as u8);
        row.extend_from_slice(entry);
    }
    row.extend_from_slice(&record.value);
    row
}

fn entries_of(row: &[u8]) -> Vec<&[u8]> {
    let mut rest = &row[1..];
    (0..row[0])
        .map(|_| {
            let (entry, tail) = rest[1..].split_at(usize::from(rest[0]));
            rest = tail;
            entry
        })
        .collect()
}
