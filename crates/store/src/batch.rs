//! Batches: writes to any tables that become durable together or not at all.

use crate::dictionary::Dictionaries;
use crate::error::Error;
use crate::record::{IndexKeys, Key};
use crate::schema::{MAX_KEY, TableId, TableSchema};
use crate::version::Version;
use records::SqlValue;

/// What must hold for an operation, and with it its whole batch, to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// There is no record of this key, or its lifetime is over.
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

/// Whether the record of this key and stored value has expired at a time (microseconds since 1970); with the limit of its
/// size.
pub(crate) type Judge = fn(&[u8], Vec<u8>, u64, usize, &Dictionaries) -> Result<bool, Error>;

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) table: TableId,
    pub(crate) key: Key,
    pub(crate) condition: Condition,
    pub(crate) change: Change,
    /// For [`Condition::Absent`], where records of the table have a lifetime: tells whether one has expired.
    pub(crate) expired: Option<Judge>,
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

    /// Whether it writes no record.
    pub(crate) fn only_deletes(&self) -> bool {
        !self
            .operations
            .iter()
            .any(|operation| matches!(operation.change, Change::Put(_)))
    }

    /// Adds a write of a row.
    pub(crate) fn put_row(
        &mut self,
        table: TableId,
        schema: &TableSchema,
        key: Key,
        row: NewRow,
        condition: Condition,
    ) {
        self.check(schema, &key, &row);
        self.bytes += row.value.len() + row.keys.as_bytes().len();
        self.push(table, key, condition, Change::Put(Box::new(row)));
    }

    /// Adds an operation.
    pub(crate) fn push(&mut self, table: TableId, key: Key, condition: Condition, change: Change) {
        self.bytes += key.len() + OPERATION_OVERHEAD;
        self.operations.push(Operation {
            table,
            key,
            condition,
            change,
            expired: None,
        });
    }

    /// Whether an operation requires that a record is absent or has expired.
    pub(crate) fn may_meet_expired(&self) -> bool {
        self.operations
            .iter()
            .any(|operation| operation.expired.is_some())
    }

    /// Keeps the first reason why this batch can never be written; `commit` returns it.
    fn check(&mut self, schema: &TableSchema, key: &[u8], row: &NewRow) {
        if self.fault.is_some() {
            return;
        }
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
