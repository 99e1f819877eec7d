//! How a table appears in a SQL database when it wants columns of its own.
//!
//! Without a mapping a table has generic columns: `id`, `version`, `created`, `site_id`, `value` and one
//! `VARBINARY` column per index. With one, indexes and further members become readable, typed columns, so that
//! other tools (reports, a vendor's audit) can query them.

/// A value of a SQL column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlValue {
    /// `NULL`.
    Null,
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A column that shows an index, or a member of the record.
#[derive(Clone, Copy, Debug)]
pub struct SqlColumn {
    /// Name of the column.
    pub name: &'static str,
    /// Its type as SQL, for example `varchar(64)`.
    pub sql_type: &'static str,
}

/// The column of an index, and how an index key is written there.
#[derive(Clone, Copy, Debug)]
pub struct SqlIndex {
    /// The column.
    pub column: SqlColumn,
    /// Name of the SQL key.
    pub key_name: &'static str,
    /// An index key as the column's value. Must be one to one: lookups compare columns.
    pub to_sql: fn(&[u8]) -> SqlValue,
}

/// Names and types of a table's columns.
///
/// Besides these a table always has `record_version` (`bigint unsigned`) and `site_id` (`varchar(128)`).
#[derive(Clone, Copy, Debug)]
pub struct SqlMapping {
    /// Primary key; the key's bytes are its value.
    pub id: SqlColumn,
    /// One per index of the table, in the same order; for a `multi` index, `column` is the one of the index's own
    /// table.
    pub indexes: &'static [SqlIndex],
    /// Name of the column of the record's value, a `longblob`.
    pub value: &'static str,
    /// Name of the column of the time of creation, `datetime(6)` in UTC. It is the second member of every index's
    /// key, so that a lookup yields records by age.
    pub created: &'static str,
    /// Name of the column of the time of last modification, `bigint unsigned`, in milliseconds since 1970.
    pub modified: &'static str,
    /// Further columns, filled by [`crate::Record::columns`] in this order.
    pub extra: &'static [SqlColumn],
    /// Further keys: name and column.
    pub keys: &'static [(&'static str, &'static str)],
}
