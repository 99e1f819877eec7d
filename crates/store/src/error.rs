//! What can go wrong, who is at fault, and whether another try is safe.

use crate::version::Version;

/// An error of the store.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A condition of the batch did not hold. Nothing of the batch was written. The caller decides.
    #[error("operation {operation} on table {table}: {conflict}")]
    Conflict {
        /// Position of the operation in its batch.
        operation: usize,
        /// Name of the table.
        table: &'static str,
        /// Which condition.
        conflict: Conflict,
    },
    /// The queue of waiting batches is full. Nothing was written; answer "busy", try later.
    #[error("the store's queue is full ({waiting} batches, {bytes} bytes waiting); try later")]
    Overflow {
        /// Batches waiting.
        waiting: usize,
        /// Bytes waiting.
        bytes: usize,
    },
    /// The batch can never be written: the caller's fault.
    #[error("batch refused: {0}")]
    Invalid(String),
    /// The database cannot be reached, or does not answer in time.
    #[error("store unavailable: {reason}{}", if *.maybe_applied { " (the write may have been applied)" } else { "" })]
    Unavailable {
        /// What happened.
        reason: String,
        /// The write may have been applied; otherwise nothing was written and another try is safe.
        maybe_applied: bool,
    },
    /// Stored bytes cannot be read: a bug, a foreign writer, or a broken disk.
    #[error("table {table}, record {key}: {reason}")]
    Corrupt {
        /// Name of the table.
        table: &'static str,
        /// Primary key, hexadecimal.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed; writes are refused until restart, so that nothing is acknowledged that may be lost.
    #[error("store engine failed: {0}")]
    Engine(String),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// The configuration or the data on disk does not fit this program.
    #[error("cannot open the store: {0}")]
    Open(String),
}

/// Why a condition did not hold.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Conflict {
    /// It should have been absent but exists.
    #[error("the record exists already, version {0}")]
    Exists(Version),
    /// It should exist but does not.
    #[error("the record does not exist")]
    Absent,
    /// It has another version than expected.
    #[error("the record has changed, its version is now {0}")]
    Changed(Version),
    /// Another record holds a key of a unique index.
    #[error("index {index}: another record holds this key")]
    Unique {
        /// Name of the index.
        index: &'static str,
        /// Primary key of the other record, when the engine tells.
        holder: Option<Vec<u8>>,
    },
}

impl Error {
    /// Whether the same batch may be tried again without a risk of writing it twice.
    #[must_use]
    pub fn retry_is_safe(&self) -> bool {
        match self {
            Error::Overflow { .. } => true,
            Error::Unavailable { maybe_applied, .. } => !maybe_applied,
            _ => false,
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
