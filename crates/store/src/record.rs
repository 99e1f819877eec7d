//! Records as the store keeps them, and how it opens their tables.

use std::sync::Arc;

pub use records::{DecodeError, IndexKeyIter, IndexKeys, Key, Record};

use crate::schema::{Index, TableSchema};
use crate::version::Version;

/// A record as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    /// The record.
    pub record: T,
    /// Its version; changes with every write. An HTTP ETag can be made of it.
    pub version: Version,
    /// When it was first written, in microseconds since 1970.
    pub created: u64,
    /// The site that wrote it last.
    pub site: Arc<str>,
}

impl<T> Stored<T> {
    /// When it was last written, in microseconds since 1970.
    #[must_use]
    pub fn modified(&self) -> u64 {
        self.version.micros()
    }
}

impl<T> std::ops::Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.record
    }
}

/// Computes index keys from a primary key and an encoded record.
pub(crate) type Reindex = fn(&[u8], &[u8], &mut IndexKeys) -> Result<(), DecodeError>;

/// A table as the store opens it: its schema, and how to compute index keys of a stored record again when the
/// list of indexes has changed between releases.
#[derive(Clone, Copy, Debug)]
pub struct TableDef {
    /// The shape.
    pub schema: &'static TableSchema,
    pub(crate) reindex: Reindex,
    /// The index that has the records by their expiry.
    pub(crate) expiry: Option<Index>,
}

impl TableDef {
    /// The table of a record type.
    #[must_use]
    pub fn of<T: Record>() -> TableDef {
        TableDef {
            schema: T::TABLE,
            expiry: T::EXPIRY,
            reindex: |key, value, keys| {
                T::decode(key, value)?.all_keys(keys);
                Ok(())
            },
        }
    }
}
