//! fjall: a tree of logs (LSM) in Rust.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE, Engine, Outcome, changed_since, entries, entries_of, is_before, prefix, row};
use crate::work::Bytes;

pub(super) struct Fjall {
    database: Database,
    rows: Keyspace,
    keys: Keyspace,
}

impl Fjall {
    pub(super) fn open(directory: &Path) -> Outcome<Fjall> {
        let database = Database::builder(directory).cache_size(CACHE as u64).open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(32 << 20);
        let (rows, keys) = (
            database.keyspace("rows", options)?,
            database.keyspace("keys", options)?,
        );
        Ok(Fjall { database, rows, keys })
    }
}

impl Engine for Fjall {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for record in group {
            let entries = entries(record);
            batch.insert(&self.rows, record.id.as_slice(), row(record, &entries));
            for entry in entries {
                batch.insert(&self.keys, entry, []);
            }
        }
        Ok(batch.commit()?)
    }

    fn update(&mut self, group: &[Bytes]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for record in group {
            let before = self.rows.get(&record.id)?;
            let before = before.filter(|before| is_before(before, record));
            let before = before.ok_or_else(|| changed_since(record))?;
            let (old, new) = (entries_of(&before), entries(record));
            for entry in old.iter().filter(|entry| !new.iter().any(|new| new == *entry)) {
                batch.remove(&self.keys, *entry);
            }
            batch.insert(&self.rows, record.id.as_slice(), row(record, &new));
            for entry in new.into_iter().filter(|entry| !old.contains(&entry.as_slice())) {
                batch.insert(&self.keys, entry, []);
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        Ok(self.rows.get(id)?.map(|row| row.to_vec()))
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let prefix = prefix(index, key);
        let Some(guard) = self.keys.prefix(&prefix).next() else {
            return Ok(None);
        };
        let entry = guard.key()?;
        self.get(&entry[prefix.len()..])
    }

    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for id in group {
            let Some(row) = self.rows.get(id)? else { continue };
            for entry in entries_of(&row) {
                batch.remove(&self.keys, entry);
            }
            batch.remove(&self.rows, id.as_slice());
        }
        Ok(batch.commit()?)
    }
}
