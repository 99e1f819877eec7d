//! redb: a copy-on-write B-tree in Rust.

use std::path::Path;

use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::{CACHE, Engine, Outcome, changed_since, entries, entries_of, is_before, prefix, row};
use crate::work::Bytes;

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
const KEYS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("keys");

pub(super) struct Redb(redb::Database);

impl Redb {
    pub(super) fn open(directory: &Path) -> Outcome<Redb> {
        let database = redb::Database::builder()
            .set_cache_size(CACHE)
            .create(directory.join("redb"))?;
        Ok(Redb(database))
    }
}

impl Engine for Redb {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let transaction = self.0.begin_write()?;
        {
            let (mut rows, mut keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
            for record in group {
                let entries = entries(record);
                rows.insert(&record.id[..], row(record, &entries).as_slice())?;
                for entry in entries {
                    keys.insert(entry.as_slice(), ())?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, group: &[Bytes]) -> Outcome<()> {
        let transaction = self.0.begin_write()?;
        {
            let (mut rows, mut keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
            for record in group {
                let before = rows.get(&record.id[..])?.map(|row| row.value().to_vec());
                let before = before.filter(|before| is_before(before, record));
                let before = before.ok_or_else(|| changed_since(record))?;
                let (old, new) = (entries_of(&before), entries(record));
                for entry in old.iter().filter(|entry| !new.iter().any(|new| new == *entry)) {
                    keys.remove(*entry)?;
                }
                rows.insert(&record.id[..], row(record, &new).as_slice())?;
                for entry in new.iter().filter(|entry| !old.contains(&entry.as_slice())) {
                    keys.insert(entry.as_slice(), ())?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let rows = self.0.begin_read()?.open_table(ROWS)?;
        Ok(rows.get(id)?.map(|row| row.value().to_vec()))
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let prefix = prefix(index, key);
        let transaction = self.0.begin_read()?;
        let (rows, keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
        let Some(entry) = keys.range(prefix.as_slice()..)?.next() else {
            return Ok(None);
        };
        let entry = entry?.0;
        let Some(id) = entry.value().strip_prefix(&prefix[..]) else {
            return Ok(None);
        };
        Ok(rows.get(id)?.map(|row| row.value().to_vec()))
    }

    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()> {
        let transaction = self.0.begin_write()?;
        {
            let (mut rows, mut keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
            for id in group {
                let Some(row) = rows.remove(id.as_slice())?.map(|row| row.value().to_vec()) else {
                    continue;
                };
                for entry in entries_of(&row) {
                    keys.remove(entry)?;
                }
            }
        }
        Ok(transaction.commit()?)
    }
}
