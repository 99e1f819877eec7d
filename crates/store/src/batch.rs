//! Batches: writes to any tables that become durable together or not at all.

use crate::engine::TableId;
use crate::record::{IndexKeys, Key, Record};
use crate::schema::MAX_KEY;
use crate::sql_mapping::SqlValue;
use crate::store::Table;
use crate::version::Version;

/// What must hold for an operation, and with it its whole batch, to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// There is no record of this key.
    Absent,
    /// There is one, of any version.
    Present,
    /// There is one, of this version.
    Version(Version),
}

/// Writes that are carried out together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
    pub(crate) bytes: usize,
    pub(crate) fault: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) table: TableId,
    pub(crate) key: Key,
    pub(crate) condition: Condition,
    pub(crate) change: Change,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Box<NewRow>),
    Delete,
    /// Only the condition matters.
    Nothing,
}

/// A record as it goes to an engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewRow {
    pub(crate) keys: IndexKeys,
    /// Encoded and perhaps compressed.
    pub(crate) value: Vec<u8>,
    /// Extra columns of a SQL mapping; empty for other engines.
    pub(crate) columns: Vec<SqlValue>,
}

/// What an operation costs in memory besides its key and value.
const OPERATION_OVERHEAD: usize = 256;

impl Batch {
    /// Writes `record` if `condition` holds; what was there before is replaced.
    pub fn put<T: Record>(&mut self, table: &Table<T>, record: &T, condition: Condition) {
        let key = record.key();
        let row = table.encode(record);
        self.check(table, &key, &row);
        self.bytes += key.len() + row.value.len() + row.keys.as_bytes().len() + OPERATION_OVERHEAD;
        self.operations.push(Operation {
            table: table.id(),
            key,
            condition,
            change: Change::Put(Box::new(row)),
        });
    }

    /// Writes `record` if there is none of its key.
    pub fn insert<T: Record>(&mut self, table: &Table<T>, record: &T) {
        self.put(table, record, Condition::Absent);
    }

    /// Replaces the record of this version.
    pub fn update<T: Record>(&mut self, table: &Table<T>, record: &T, version: Version) {
        self.put(table, record, Condition::Version(version));
    }

    /// Deletes the record of this key if `condition` holds.
    pub fn delete<T: Record>(&mut self, table: &Table<T>, key: &[u8], condition: Condition) {
        self.bytes += key.len() + OPERATION_OVERHEAD;
        self.operations.push(Operation {
            table: table.id(),
            key: Key::from_slice(key),
            condition,
            change: Change::Delete,
        });
    }

    /// Writes nothing, but the batch is carried out only if `condition` holds for this key.
    pub fn require<T: Record>(&mut self, table: &Table<T>, key: &[u8], condition: Condition) {
        self.bytes += key.len() + OPERATION_OVERHEAD;
        self.operations.push(Operation {
            table: table.id(),
            key: Key::from_slice(key),
            condition,
            change: Change::Nothing,
        });
    }

    /// How many operations it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// It has no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Remembers the first reason why this batch can never be written; `commit` tells it.
    fn check<T: Record>(&mut self, table: &Table<T>, key: &[u8], row: &NewRow) {
        if self.fault.is_some() {
            return;
        }
        let schema = table.schema();
        let count = schema.indexes.len();
        if key.is_empty() || key.len() > MAX_KEY {
            self.fault = Some(format!(
                "table {}: a primary key has 1 to {MAX_KEY} bytes, this one has {}",
                schema.name,
                key.len()
            ));
        } else if row.keys.longest() > MAX_KEY {
            self.fault = Some(format!(
                "table {}: an index key has at most {MAX_KEY} bytes, this one has {}",
                schema.name,
                row.keys.longest()
            ));
        } else if let Some((index, _)) = row.keys.iter().find(|(index, _)| usize::from(index.0) >= count) {
            self.fault = Some(format!(
                "table {} has {count} indexes, none at {}",
                schema.name, index.0
            ));
        }
    }
}
