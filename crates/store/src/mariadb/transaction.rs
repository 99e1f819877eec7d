//! A group of batches as one transaction.
//!
//! 1. `INSERT` the transaction's stamp into `signalbox_commits`. When the answer to a later `COMMIT` is lost, the
//!    stamp tells on another node whether it was carried out; and should the lost one still be on its way, the two
//!    cannot both succeed.
//! 2. Read and lock what is stored under the keys of all batches; judge each batch's conditions. Batches that do
//!    not pass are left out, and told.
//! 3. Write: deletions, index tables, updates, insertions, each in bulk.
//! 4. `COMMIT`.
//!
//! **In a Galera cluster** a transaction that loses against one of another node is rolled back by the server in the
//! middle. The next statement should fail then, but MariaDB (seen in 10.11) lets some through: the statement and
//! all that follow succeed, outside of the transaction, and so does `COMMIT`, which has nothing to commit. So the
//! stamp is read again before `COMMIT` and after it, and `autocommit` is off: without a transaction, statements
//! begin another one, which is rolled back when the stamp is not in it.
//!
//! Batches of a group never touch the same record (see `write`), so their order does not matter.

use std::collections::HashMap;
use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Value};

use super::nodes::{Failure, Nodes};
use super::sql::{SIDE_VERSION, SqlTable, step};
use crate::batch::{Batch, Change, NewRow, Operation};
use crate::error::{Conflict, Error};
use crate::schema::TableId;
use crate::version::Version;

/// Names a transaction, everywhere and for ever: eight bytes of time, eight at random.
pub(super) type Stamp = [u8; 16];

/// A batch in a group.
pub(super) struct Member {
    pub(super) batch: Batch,
    pub(super) version: Version,
}

/// What became of a batch.
pub(super) type Verdict = Result<Version, Error>;

/// How far a transaction that failed had come.
pub(super) struct Broken {
    pub(super) failure: Failure,
    /// `COMMIT` was sent: it may have been carried out. Then these are the verdicts if it was.
    pub(super) verdicts: Option<Vec<Verdict>>,
}

/// What is needed besides the group.
pub(super) struct Context {
    pub(super) nodes: Arc<Nodes>,
    pub(super) tables: Arc<Vec<SqlTable>>,
    pub(super) site: Arc<str>,
}

/// What is stored, of the records a group names: version, and key of the index of expiry.
type Known = HashMap<(TableId, Vec<u8>), (Version, Option<Vec<u8>>)>;

impl Context {
    fn table(&self, id: TableId) -> &SqlTable {
        // Ids come from `Store::table`, which counted the same list.
        &self.tables[usize::from(id.0)]
    }

    /// Runs a group as a transaction; a verdict for each member.
    pub(super) async fn run(
        &self,
        conn: &mut Conn,
        group: &[Member],
        stamp: &Stamp,
    ) -> Result<Vec<Verdict>, Broken> {
        let early = |failure| Broken {
            failure,
            verdicts: None,
        };
        let prepared = match self.prepare(conn, group, stamp).await {
            Ok(verdicts) => self.still_in_transaction(conn, stamp).await.map(|()| verdicts),
            Err(failure) => Err(failure),
        };
        let verdicts = match prepared {
            Ok(verdicts) => verdicts,
            Err(failure) => {
                if !matches!(failure, Failure::Lost(_) | Failure::Unfit(_)) {
                    // A rollback that fails is noticed by the next statement.
                    let _ = self.nodes.within(conn.query_drop("ROLLBACK")).await;
                }
                return Err(early(failure));
            }
        };
        let end = if verdicts.iter().any(Result::is_ok) {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        match self.nodes.within(conn.query_drop(end)).await {
            Ok(()) if end == "ROLLBACK" || !self.nodes.certify() => Ok(verdicts),
            // Without the stamp nothing was committed. If it cannot be read, that is open.
            Ok(()) => match self.was_committed(conn, stamp).await {
                Ok(true) => Ok(verdicts),
                Ok(false) => Err(early(rolled_back())),
                Err(failure) => Err(Broken {
                    failure,
                    verdicts: Some(verdicts),
                }),
            },
            Err(failure @ (Failure::Lost(_) | Failure::Unfit(_))) if end == "COMMIT" => Err(Broken {
                failure,
                verdicts: Some(verdicts),
            }),
            Err(failure) => Err(early(failure)),
        }
    }

    /// Whether the transaction of this stamp was carried out.
    pub(super) async fn was_committed(&self, conn: &mut Conn, stamp: &Stamp) -> Result<bool, Failure> {
        let asked =
            conn.exec_first::<u8, _, _>("SELECT 1 FROM signalbox_commits WHERE stamp = ?", (&stamp[..],));
        Ok(self.nodes.within(asked).await?.is_some())
    }

    /// Fails when the server has rolled the transaction back without a word.
    async fn still_in_transaction(&self, conn: &mut Conn, stamp: &Stamp) -> Result<(), Failure> {
        if self.nodes.certify() && !self.was_committed(conn, stamp).await? {
            return Err(rolled_back());
        }
        Ok(())
    }

    async fn prepare(
        &self,
        conn: &mut Conn,
        group: &[Member],
        stamp: &Stamp,
    ) -> Result<Vec<Verdict>, Failure> {
        // Also after a rollback by the server no statement stands alone, see the head of this file.
        self.nodes.within(conn.query_drop("SET autocommit = 0")).await?;
        let insert = conn.exec_drop("INSERT INTO signalbox_commits (stamp) VALUES (?)", (&stamp[..],));
        self.nodes.within(insert).await?;
        let known = self.lock(conn, group).await?;
        let verdicts: Vec<Verdict> = group.iter().map(|member| self.judge(member, &known)).collect();
        let mut writes = Writes::new(self.tables.len());
        for (member, verdict) in group.iter().zip(&verdicts) {
            let Ok(version) = verdict else { continue };
            for operation in &member.batch.operations {
                writes.add(operation, *version, &known);
            }
        }
        for (position, writes) in writes.tables.iter().enumerate() {
            self.write(conn, &self.tables[position], writes).await?;
        }
        Ok(verdicts)
    }

    /// Versions of the records that the group names, which stay as they are until the transaction ends.
    async fn lock(&self, conn: &mut Conn, group: &[Member]) -> Result<Known, Failure> {
        let mut known = Known::new();
        for (position, table) in self.tables.iter().enumerate() {
            let operations = group.iter().flat_map(|member| &member.batch.operations);
            let mut keys: Vec<&[u8]> = operations
                .filter(|operation| usize::from(operation.table.0) == position)
                .map(|operation| operation.key.as_slice())
                .collect();
            // In one order everywhere, so that transactions wait for one another and not in a circle.
            keys.sort_unstable();
            for keys in keys.chunks(super::sql::STEPS[super::sql::STEPS.len() - 1]) {
                let count = step(keys.len());
                // The last key again, up to the number the statement has.
                let padded = keys
                    .iter()
                    .chain(std::iter::repeat(&keys[keys.len() - 1]))
                    .take(count);
                let values: Vec<Value> = padded.map(|key| Value::from(*key)).collect();
                let rows: Vec<(Vec<u8>, u64, Option<Vec<u8>>)> =
                    self.nodes.within(conn.exec(table.lock(count), values)).await?;
                // Numbers of tables are 16 bits by `Store::table`.
                let id = TableId(position as u16);
                let rows = rows.into_iter();
                known.extend(rows.map(|(key, version, expiry)| ((id, key), (Version(version), expiry))));
            }
        }
        Ok(known)
    }

    /// Whether the conditions of a batch hold; the version it gets.
    fn judge(&self, member: &Member, known: &Known) -> Verdict {
        for (position, operation) in member.batch.operations.iter().enumerate() {
            let stored = known.get(&(operation.table, operation.key.to_vec()));
            let stored = stored.map(|(version, expiry)| (*version, expiry.as_deref()));
            let Err(conflict) = operation.check(stored, member.batch.now) else {
                continue;
            };
            let table = self.table(operation.table).name;
            return Err(Error::Conflict {
                operation: position,
                table,
                conflict,
            });
        }
        let stored = member.batch.operations.iter();
        let stored = stored.filter_map(|operation| known.get(&(operation.table, operation.key.to_vec())));
        Ok(stored.fold(member.version, |version, (stored, _)| version.beyond(*stored)))
    }

    async fn write(
        &self,
        conn: &mut Conn,
        table: &SqlTable,
        writes: &TableWrites<'_>,
    ) -> Result<(), Failure> {
        let id = |key: &[u8]| vec![Value::from(key)];
        // First what goes, so that a unique key can be handed on within a batch.
        let gone: Vec<Vec<Value>> = writes.deletes.iter().map(|key| id(key)).collect();
        self.bulk(conn, &table.delete, gone).await?;
        for (position, index, side) in table.side_tables() {
            let changed = writes
                .deletes
                .iter()
                .copied()
                .chain(writes.updates.iter().map(|(key, ..)| *key));
            let delete = format!("DELETE FROM `{side}` WHERE `{}` = ?", table.id.name);
            self.bulk(conn, &delete, changed.map(|key| vec![Value::from(key)]).collect())
                .await?;
            let rows = writes.updates.iter().chain(&writes.inserts);
            let entries = rows.flat_map(|(key, row, version)| {
                let own = row
                    .keys
                    .iter()
                    .filter(move |(of, _)| usize::from(of.0) == position);
                own.map(|(_, of)| vec![index.key_value(of), Value::from(*key), Value::UInt(version.0)])
            });
            let insert = format!(
                "INSERT INTO `{side}` (`{}`, `{}`, `{SIDE_VERSION}`) VALUES (?, ?, ?)",
                index.column, table.id.name
            );
            self.bulk(conn, &insert, entries.collect()).await?;
        }
        let updates = writes.updates.iter();
        let updates = updates.map(|(key, row, version)| table.update_values(key, row, *version, &self.site));
        self.bulk(conn, &table.update, updates.collect()).await?;
        let inserts = writes.inserts.iter();
        let inserts = inserts.map(|(key, row, version)| table.insert_values(key, row, *version, &self.site));
        self.bulk(conn, &table.insert, inserts.collect()).await
    }

    async fn bulk(&self, conn: &mut Conn, statement: &str, rows: Vec<Vec<Value>>) -> Result<(), Failure> {
        match rows.len() {
            0 => Ok(()),
            // One row the plain way: every server can.
            1 => {
                let row = rows.into_iter().next().unwrap_or_default();
                self.nodes.within(conn.exec_drop(statement, row)).await
            }
            _ => self.nodes.within(conn.exec_batch(statement, rows)).await,
        }
    }

    /// The verdict on a single batch whose insertion met a key that exists.
    pub(super) fn duplicate(&self, member: &Member, message: &str) -> Option<Error> {
        for (position, operation) in member.batch.operations.iter().enumerate() {
            let (Change::Put(_), table) = (&operation.change, self.table(operation.table)) else {
                continue;
            };
            let unique = table.indexes.iter().enumerate().filter(|(_, index)| index.unique);
            for (number, index) in unique {
                // "Duplicate entry '…' for key 'NAME'" or 'TABLE.NAME'; a side table's own primary key.
                let names_it = message.ends_with(&format!("'{}'", index.key_name))
                    || message.ends_with(&format!(".{}'", index.key_name))
                    || index.side.is_some() && message.ends_with("PRIMARY'");
                if names_it {
                    let index = table
                        .def
                        .schema
                        .indexes
                        .get(number)
                        .map_or("?", |index| index.name);
                    let conflict = Conflict::Unique { index, holder: None };
                    return Some(Error::Conflict {
                        operation: position,
                        table: table.name,
                        conflict,
                    });
                }
            }
        }
        None
    }
}

fn rolled_back() -> Failure {
    Failure::Again("the server has rolled the transaction back and not said so".to_owned())
}

/// What a transaction writes.
struct Writes<'a> {
    tables: Vec<TableWrites<'a>>,
}

#[derive(Default)]
struct TableWrites<'a> {
    inserts: Vec<(&'a [u8], &'a NewRow, Version)>,
    updates: Vec<(&'a [u8], &'a NewRow, Version)>,
    deletes: Vec<&'a [u8]>,
}

impl<'a> Writes<'a> {
    fn new(tables: usize) -> Writes<'a> {
        Writes {
            tables: (0..tables).map(|_| TableWrites::default()).collect(),
        }
    }

    fn add(&mut self, operation: &'a Operation, version: Version, known: &Known) {
        let exists = known.contains_key(&(operation.table, operation.key.to_vec()));
        let table = &mut self.tables[usize::from(operation.table.0)];
        match &operation.change {
            Change::Put(row) if exists => table.updates.push((&operation.key, row, version)),
            Change::Put(row) => table.inserts.push((&operation.key, row, version)),
            Change::Delete if exists => table.deletes.push(&operation.key),
            Change::Delete | Change::Nothing => {}
        }
    }
}
