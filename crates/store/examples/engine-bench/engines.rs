//! The engines behind one small interface. Index keys of a record are stored beside it, so that a deletion finds
//! its index entries; ours does so inside.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use redb::{ReadableDatabase as _, TableDefinition};
use store::{Batch, Condition, Config, EmbeddedConfig, Store, Table, TableDef};

use crate::Bytes;
use crate::binding::Binding;

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
        "signalbox" => Box::new(Own::open(directory)?),
        "fjall" => Box::new(Fjall::open(directory)?),
        "redb" => Box::new(Redb::open(directory)?),
        "sqlite" => Box::new(Sqlite::open(directory)?),
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

/// This crate.
struct Own {
    runtime: tokio::runtime::Runtime,
    store: Store,
    table: Table<Binding>,
    next: u64,
}

impl Own {
    fn open(directory: &Path) -> Outcome<Own> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let embedded = EmbeddedConfig {
            directory: directory.to_owned(),
            // The others' groups follow one another without a pause as well.
            group_interval: settings::Period::from_millis(0),
            ..EmbeddedConfig::default()
        };
        let config = Config {
            embedded,
            ..Config::default()
        };
        let store = runtime.block_on(Store::open(&config, &[TableDef::of::<Binding>()]))?;
        let table = store.table()?;
        Ok(Own {
            runtime,
            store,
            table,
            next: 0,
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> Outcome<()> {
        let receipts: Vec<_> = batches
            .into_iter()
            .map(|batch| self.store.commit(batch))
            .collect();
        receipts
            .into_iter()
            .try_for_each(|receipt| receipt.wait().map(|_| ()))?;
        Ok(())
    }
}

impl Engine for Own {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let batches = group.iter().map(|_| {
            let mut batch = Batch::default();
            batch.insert(&self.table, &Binding::new(self.next));
            self.next += 1;
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self.runtime.block_on(self.table.get(id))?;
        Ok(found.map(|stored| stored.number.to_le_bytes().to_vec()))
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self
            .runtime
            .block_on(self.table.find(store::Index(index), key, 1))?;
        Ok(found.first().map(|stored| stored.number.to_le_bytes().to_vec()))
    }

    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()> {
        let batches = group.iter().map(|id| {
            let mut batch = Batch::default();
            batch.delete(&self.table, id, Condition::Always);
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }
}

struct Fjall {
    database: Database,
    rows: Keyspace,
    keys: Keyspace,
}

impl Fjall {
    fn open(directory: &Path) -> Outcome<Fjall> {
        let database = Database::builder(directory).cache_size(256 << 20).open()?;
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
            batch.insert(&self.rows, record.id, row(record, &entries));
            for entry in entries {
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

    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for id in group {
            let Some(row) = self.rows.get(id)? else { continue };
            for entry in entries_of(&row) {
                batch.remove(&self.keys, entry);
            }
            batch.remove(&self.rows, *id);
        }
        Ok(batch.commit()?)
    }
}

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
const KEYS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("keys");

struct Redb(redb::Database);

impl Redb {
    fn open(directory: &Path) -> Outcome<Redb> {
        let database = redb::Database::builder()
            .set_cache_size(256 << 20)
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

    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()> {
        let transaction = self.0.begin_write()?;
        {
            let (mut rows, mut keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
            for id in group {
                let Some(row) = rows.remove(&id[..])?.map(|row| row.value().to_vec()) else {
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

struct Sqlite(rusqlite::Connection);

impl Sqlite {
    fn open(directory: &Path) -> Outcome<Sqlite> {
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
