//! Tables as the store numbers them.

pub use records::{Index, IndexSchema, MAX_INDEXES, MAX_KEY, TableSchema};

/// Position of a table in the list the store was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableId(pub(crate) u16);
