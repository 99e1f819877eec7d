//! SQLite with a write-ahead log.

use std::path::Path;

use super::{Engine, Outcome};
use crate::Bytes;

pub(super) struct Sqlite(rusqlite::Connection);

impl Sqlite {
    pub(super) fn open(directory: &Path) -> Outcome<Sqlite> {
        let connection = rusqlite::Connection::open(directory.join("sqlite"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144;
             CREATE TABLE binding (id BLOB PRIMARY KEY, ipv4 BLOB, supi BLOB, gpsi BLOB, modified INTEGER, value BLOB) WITHOUT ROWID;
             CREATE INDEX i0 ON binding (ipv4); CREATE INDEX i1 ON binding (supi); CREATE INDEX i2 ON binding (gpsi);
             CREATE INDEX im ON binding (modified);",
        )?;
        connection.set_prepared_statement_cache_capacity(16);
        Ok(Sqlite(connection))
    }

    fn one(&self, statement: &str, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        use rusqlite::OptionalExtension as _;
        Ok(self
            .0
            .prepare_cached(statement)?
            .query_row([key], |row| row.get(0))
            .optional()?)
    }
}

impl Engine for Sqlite {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO binding VALUES (?, ?, ?, ?, ?, ?)")?;
            for record in group {
                let key = |position: usize| record.keys[position].1.as_slice();
                let modified = i64::try_from(record.modified)?;
                insert.execute((
                    &record.id[..],
                    key(0),
                    key(1),
                    key(2),
                    modified,
                    record.value.as_slice(),
                ))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.one("SELECT value FROM binding WHERE id = ?", id)
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let column = ["ipv4", "supi", "gpsi"][usize::from(index)];
        self.one(
            &format!("SELECT value FROM binding WHERE {column} = ? LIMIT 1"),
            key,
        )
    }

    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM binding WHERE id = ?")?;
            for id in group {
                delete.execute([&id[..]])?;
            }
        }
        Ok(transaction.commit()?)
    }
}
