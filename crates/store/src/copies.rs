//! What becomes of a copy of a store.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a copy of a store has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedUp {
    /// Files of the log.
    pub files: usize,
    /// Of these, those that both directories share as hard links: nothing is written to them any more.
    pub linked: usize,
    /// Bytes of the log.
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BackupError {
    /// One at a time.
    #[error("a backup into {} is being made; try again when it is complete", .0.display())]
    Busy(PathBuf),
    /// The engine is a database's.
    #[error("the records are in a database: back it up with its own tools")]
    Database,
    /// The directory cannot be used.
    #[error("{}: {reason}", .path.display())]
    Target {
        /// The directory, or what is in the way.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It could not be made; nothing of it is left.
    #[error("{0}; nothing of the backup is left")]
    Failed(String),
}

impl BackupError {
    pub(crate) fn target(path: &Path, reason: impl std::fmt::Display) -> BackupError {
        BackupError::Target {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
