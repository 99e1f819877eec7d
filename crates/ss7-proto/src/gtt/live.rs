//! A table that is replaced beside its readers.

use std::sync::{Arc, PoisonError, RwLock};

use super::table::Table;

/// The present table. A reader takes it once for a batch of messages, and never waits for a table to be built.
#[derive(Debug)]
pub struct Live(RwLock<Arc<Table>>);

impl Live {
    /// With this table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(RwLock::new(Arc::new(table)))
    }

    /// The present table. The lock is held for the clone of a pointer.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        // A pointer cannot be half replaced, whatever a panicking thread did.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place and returns the one before, so that the caller frees it away from the traffic.
    pub fn replace(&self, table: Table) -> Arc<Table> {
        let table = Arc::new(table);
        std::mem::replace(
            &mut *self.0.write().unwrap_or_else(PoisonError::into_inner),
            table,
        )
    }
}
