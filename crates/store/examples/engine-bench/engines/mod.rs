//! The engines behind one small interface. Index keys of a record are stored beside it, so that a deletion finds
//! its index entries; ours does so inside.

mod fjall;
mod own;
mod redb;
mod sqlite;

use std::path::Path;

use crate::Bytes;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What is measured.
pub(crate) trait Engine {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()>;
    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>>;
    /// The record of the first entry under an index key.
    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>>;
    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()>;
}

pub(crate) fn open(name: &str, directory: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(match name {
        "signalbox" => Box::new(own::Own::open(directory)?),
        "fjall" => Box::new(fjall::Fjall::open(directory)?),
        "redb" => Box::new(redb::Redb::open(directory)?),
        "sqlite" => Box::new(sqlite::Sqlite::open(directory)?),
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
    entries.push([&[0xff][..], &record.modified.to_be_bytes(), &record.id].concat());
    entries
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
