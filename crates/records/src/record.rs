//! Records: what a function stores, and how it becomes bytes and index keys.

use std::fmt;

use smallvec::SmallVec;

use crate::schema::{Index, TableSchema};
use crate::sql_mapping::SqlValue;

/// A primary or index key. Short keys live inline.
pub type Key = SmallVec<[u8; 24]>;

/// A type that has a table.
///
/// The codec is the function's: JSON where humans look, something tighter where millions are kept. It must be
/// able to read what its earlier releases wrote.
pub trait Record: Sized + 'static {
    /// The table's shape.
    const TABLE: &'static TableSchema;

    /// The index that has the records by [`Record::expires`]; it is declared `ordered`, and [`Record::index`] gives it no key.
    /// None: the records of this table do not expire.
    const EXPIRY: Option<Index> = None;

    /// The primary key.
    fn key(&self) -> Key;

    /// Adds the keys under which the record can be found.
    fn index(&self, keys: &mut IndexKeys);

    /// When the record expires, in microseconds since 1970; `None`: never. From then on reads leave it out, conditions of
    /// writes take it for absent, and its unique keys are free. The store's sweep removes it; until then it counts for the
    /// limit of a `find`.
    fn expires(&self) -> Option<u64> {
        None
    }

    /// The keys under which the record can be found, with the one of its expiry.
    fn all_keys(&self, keys: &mut IndexKeys) {
        self.index(keys);
        if let (Some(index), Some(at)) = (Self::EXPIRY, self.expires()) {
            keys.add(index, &at.to_be_bytes());
        }
    }

    /// Appends the record as bytes. The primary key need not be repeated.
    fn encode(&self, out: &mut Vec<u8>);

    /// The record from its primary key and the bytes that [`Record::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are not a record; says what is wrong.
    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError>;

    /// Values of the extra columns of a SQL mapping, in its order; asked only when the store is a SQL database.
    fn columns(&self, _out: &mut Vec<SqlValue>) {}
}

/// Stored bytes that are not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// The index keys of one record, kept in one buffer: `[index][length, little endian u16][key]…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexKeys {
    bytes: SmallVec<[u8; 120]>,
    count: usize,
    longest: usize,
}

impl IndexKeys {
    /// Adds a key under which the record can be found by `index`.
    ///
    /// The same key twice counts once.
    pub fn add(&mut self, index: Index, key: &[u8]) {
        if self.iter().any(|held| held == (index, key)) {
            return;
        }
        self.count += 1;
        self.longest = self.longest.max(key.len());
        // A key beyond MAX_KEY is refused when the batch is committed; here it is only kept in shape.
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        self.bytes.push(index.0);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&key[..usize::from(length)]);
    }

    /// The keys in the order they were added.
    pub fn iter(&self) -> IndexKeyIter<'_> {
        IndexKeyIter { rest: &self.bytes }
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// No key at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the longest key, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The keys as they are kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Iterator over index keys.
#[derive(Clone, Debug)]
pub struct IndexKeyIter<'a> {
    rest: &'a [u8],
}

impl<'a> IndexKeyIter<'a> {
    /// Over keys as [`IndexKeys::as_bytes`] has them.
    #[must_use]
    pub fn over(bytes: &'a [u8]) -> IndexKeyIter<'a> {
        IndexKeyIter { rest: bytes }
    }
}

impl<'a> Iterator for IndexKeyIter<'a> {
    type Item = (Index, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.rest.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let (key, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some((Index(head[0]), key))
    }
}
