//! What a function keeps, as a store sees it: records with keys, the shapes of their tables, their columns in SQL.
//!
//! No engine, no runtime: a function's records compile and are tested without a store.

mod record;
mod schema;
mod sql_mapping;

pub use record::{DecodeError, IndexKeyIter, IndexKeys, Key, Record};
pub use schema::{Index, IndexSchema, MAX_INDEXES, MAX_KEY, TableSchema};
pub use sql_mapping::{SqlColumn, SqlIndex, SqlMapping, SqlValue};
