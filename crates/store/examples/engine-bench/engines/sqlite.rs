//! SQLite with a write-ahead log.

use std::path::Path;

use super::{CACHE, Engine, Outcome, changed_since};
use crate::work::{Bytes, modified};

pub(super) struct Sqlite(rusqlite::Connection);

impl Sqlite {
    pub(super) fn open(directory: &Path, keys: u8) -> Outcome<Sqlite> {
        let connection = rusqlite::Connection::open(directory.join("sqlite"))?;
        let cache = CACHE >> 10;
        let columns: String = (0..keys).map(|key| format!("k{key} BLOB, ")).collect();
        let indexes: String = (0..keys)
            .map(|key| format!("CREATE INDEX IF NOT EXISTS i{key} ON record (k{key});"))
            .collect();
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{cache};
             CREATE TABLE IF NOT EXISTS record (id BLOB PRIMARY KEY, modified INTEGER, {columns} value BLOB) WITHOUT ROWID;
             {indexes} CREATE INDEX IF NOT EXISTS im ON record (modified);",
        ))?;
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
        if let Some(first) = group.first() {
            let marks = ", ?".repeat(first.keys.len());
            let mut insert =
                transaction.prepare_cached(&format!("INSERT INTO record VALUES (?, ?{marks}, ?)"))?;
            for record in group {
                let modified = i64::try_from(record.modified)?;
                let mut values: Vec<&dyn rusqlite::ToSql> = vec![&record.id, &modified];
                values.extend(record.keys.iter().map(|(_, key)| key as &dyn rusqlite::ToSql));
                values.push(&record.value);
                insert.execute(values.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn update(&mut self, group: &[Bytes]) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let mut select = transaction.prepare_cached("SELECT modified, value FROM record WHERE id = ?")?;
            let mut update = transaction
                .prepare_cached("UPDATE record SET modified = ?, value = ? WHERE id = ? AND modified = ?")?;
            for record in group {
                let (before, _value): (i64, Vec<u8>) =
                    select.query_row([&record.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let expected = record.changes.checked_sub(1);
                let expected = expected.map(|changes| modified(record.number, changes));
                if Some(before.cast_unsigned()) != expected {
                    return Err(changed_since(record));
                }
                let at = i64::try_from(record.modified)?;
                update.execute((at, record.value.as_slice(), record.id.as_slice(), before))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.one("SELECT value FROM record WHERE id = ?", id)
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.one(
            &format!("SELECT value FROM record WHERE k{index} = ? LIMIT 1"),
            key,
        )
    }

    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM record WHERE id = ?")?;
            for id in group {
                delete.execute([id])?;
            }
        }
        Ok(transaction.commit()?)
    }
}
