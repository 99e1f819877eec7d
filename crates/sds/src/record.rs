//! What is stored: the head of the journal, its entries, and groups.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

/// The state of the journal. Every transaction replaces it on condition, so that offsets have no gaps, whichever server
/// writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Identity of the journal, made at random with it.
    pub(crate) id: String,
    /// Offset of the newest transaction; 0: there was none.
    pub(crate) offset: u64,
    /// Offset of the oldest transaction that is kept; one above `offset` where none is.
    pub(crate) first: u64,
}

impl Head {
    /// The key of the only record.
    pub(crate) const KEY: &'static [u8] = b"head";
}

/// A transaction of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    /// Its changes, as [`crate::change::encode`] writes them.
    pub(crate) changes: Bytes,
}

impl Entry {
    /// By offset.
    pub(crate) const OFFSET: Index = Index(0);
}

/// Numbers of one subscriber, which are changed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    #[serde(skip)]
    pub(crate) id: String,
    /// `imsi,001010000000001`; each number is in one group at most.
    pub(crate) numbers: Vec<String>,
}

impl Group {
    /// By number.
    pub(crate) const NUMBER: Index = Index(0);
}

fn of_json<T: for<'d> Deserialize<'d>>(value: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
}

fn to_json(value: &impl Serialize, out: &mut Vec<u8>) {
    // Strings and numbers always have a form in JSON, and a vector takes it.
    let _ = serde_json::to_writer(out, value);
}

impl Record for Head {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sds_head",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(Self::KEY)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        to_json(self, out);
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        of_json(value)
    }
}

impl Record for Entry {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sds_journal",
        indexes: &[IndexSchema::many("offset_key").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.offset.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::OFFSET, &self.offset.to_be_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.changes);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let offset = key.try_into().map(u64::from_be_bytes);
        Ok(Self {
            offset: offset.map_err(|_| DecodeError("a key of 8 bytes is expected".to_owned()))?,
            changes: Bytes::copy_from_slice(value),
        })
    }
}

impl Record for Group {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sds_groups",
        indexes: &[IndexSchema::unique("number").multi()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.id.as_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        for number in &self.numbers {
            keys.add(Self::NUMBER, number.as_bytes());
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        to_json(self, out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = String::from_utf8(key.to_vec()).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id,
            ..of_json(value)?
        })
    }
}
