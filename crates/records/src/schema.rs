//! What a table is: its name, its secondary indexes, and how it appears in a SQL database.

use crate::sql_mapping::SqlMapping;

/// Position of a secondary index in [`TableSchema::indexes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Index(pub u8);

/// One secondary index of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Name, unique in the table; part of SQL column names, so `[a-z0-9_]` only.
    pub name: &'static str,
    /// At most one record may hold a given key.
    pub unique: bool,
    /// A record may have several keys in this index (additional IPv6 prefixes of one session). Without it a
    /// record has none or one.
    pub multi: bool,
    /// Records can be scanned in the order of their keys (`store::Scan::by_index`), and any number of records
    /// may share a key. The embedded engine keeps the keys of such an index in memory; one that is not ordered
    /// takes nine to eighteen bytes a record there, but is meant for keys that few records share (an address,
    /// a subscriber; not a DNN).
    pub ordered: bool,
}

impl IndexSchema {
    /// Records may share a key; a record has at most one key.
    #[must_use]
    pub const fn many(name: &'static str) -> IndexSchema {
        IndexSchema {
            name,
            unique: false,
            multi: false,
            ordered: false,
        }
    }

    /// A key belongs to at most one record; a record has at most one key.
    #[must_use]
    pub const fn unique(name: &'static str) -> IndexSchema {
        IndexSchema {
            name,
            unique: true,
            multi: false,
            ordered: false,
        }
    }

    /// Records can be scanned in the order of their keys in this index.
    #[must_use]
    pub const fn ordered(self) -> IndexSchema {
        IndexSchema {
            ordered: true,
            ..self
        }
    }

    /// A record may have several keys in this index.
    #[must_use]
    pub const fn multi(self) -> IndexSchema {
        IndexSchema { multi: true, ..self }
    }
}

/// The shape of a table, a constant of the record's type.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Name, unique in the store; also the SQL table's name, so `[a-z0-9_]` only.
    pub name: &'static str,
    /// Secondary indexes; [`Index`] is a position here. At most [`MAX_INDEXES`].
    pub indexes: &'static [IndexSchema],
    /// Records can be scanned by time of last modification (`store::Scan::by_modified`, the audit). Costs a key
    /// in SQL, nothing in the embedded engine.
    pub by_modified: bool,
    /// How the table appears in SQL; `None` is the generic mapping.
    pub sql: Option<&'static SqlMapping>,
}

/// More indexes than this would make a write cost more than the record is worth.
pub const MAX_INDEXES: usize = 32;
/// Longest primary or index key, in bytes. SQL engines index no more than a few hundred.
pub const MAX_KEY: usize = 512;
