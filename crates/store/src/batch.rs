//! Batches: writes to any tables that become durable together or not at all.

use crate::dictionary::Dictionaries;
use crate::error::{Conflict, Error};
use crate::record::{IndexKeys, Key};
use crate::schema::{Index, MAX_KEY, TableId, TableSchema};
use crate::version::Version;
use records::SqlValue;

/// What must hold for an operation, and with it its whole batch, to be carried out. A record whose lifetime is over counts
/// as absent.
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
    /// The time that lifetimes are judged by, in microseconds since 1970.
    pub(crate) now: u64,
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
    /// Where records of the table have a lifetime, and one that has expired counts as absent.
    pub(crate) lifetime: Option<Lifetime>,
}

/// How to find out whether a record has expired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    /// The index whose key is the time of expiry: what an engine judges by.
    pub(crate) index: Index,
    /// What the store judges by that has the record; `None` where its table has no unique keys.
    pub(crate) judge: Option<Judge>,
}

impl Operation {
    /// Whether its condition holds for a record of this version, which expires at the time in this key.
    pub(crate) fn check(&self, stored: Option<(Version, Option<&[u8]>)>, now: u64) -> Result<(), Conflict> {
        let is_live = |expiry: Option<&[u8]>| {
            let at = expiry.and_then(<[u8]>::first_chunk);
            self.lifetime.is_none() || at.is_none_or(|at| u64::from_be_bytes(*at) > now)
        };
        let stored = stored.filter(|(_, expiry)| is_live(*expiry));
        let version = stored.map(|(version, _)| version);
        match (self.condition, version) {
            (Condition::Absent, Some(version)) => Err(Conflict::Exists(version)),
            (Condition::Present | Condition::Version(_), None) => Err(Conflict::Absent),
            (Condition::Version(expected), Some(version)) if expected != version => {
                Err(Conflict::Changed(version))
            }
            _ => Ok(()),
        }
    }
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
            lifetime: None,
        });
    }

    /// Whether a unique key that it gives to a record may have a holder that has expired.
    pub(crate) fn may_meet_expired(&self) -> bool {
        self.operations.iter().any(|operation| {
            operation.lifetime.is_some_and(|it| it.judge.is_some())
                && matches!(operation.change, Change::Put(_))
        })
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
