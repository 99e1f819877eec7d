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
#[derive(Clone, Copy, Debug)]
pub struct SqlMapping {
    /// Primary key.
    pub id: SqlColumn,
    /// One per index of the table, in the same order.
    pub indexes: &'static [SqlIndex],
    /// The record's value.
    pub value: SqlColumn,
    /// Time of creation, `datetime(6)`, second member of every index key, so that a lookup yields records by age.
    pub created: SqlColumn,
    /// Further columns, filled by [`crate::Record::columns`] in this order.
    pub extra: &'static [SqlColumn],
}
