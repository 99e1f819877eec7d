//! What can go wrong with a file of numbers.

use std::io;
use std::path::{Path, PathBuf};

use crate::key::{BlockName, Key};
use crate::names::NameError;
use crate::sets::SetError;

/// A block whose bytes are not those that were written. Its own numbers are refused, all others are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block at byte {offset} ({}) is damaged; its numbers are refused", BlockName(*.block))]
pub struct Damaged {
    pub(crate) block: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// Why a file cannot be written, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file has another format.
    #[error("{}: not a file of numbers or names", .0.display())]
    Foreign(PathBuf),
    /// The file was written by another version of the format.
    #[error("{}: version {found} of the format; this program reads version {expected}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// The file is shorter or longer than it says.
    #[error("{}: {found} bytes, expected {expected}; the file is cut or has foreign bytes at its end", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        found: u64,
        /// The length that its header has.
        expected: u64,
    },
    /// Both copies of the header, or of the index, are damaged.
    #[error("{}: both copies of the {part} are damaged; restore the file, or import it again", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// `header` or `index`.
        part: &'static str,
    },
    /// Changes that belong to another base.
    #[error("{}: holds the changes of another base than {}", path.display(), base.display())]
    OtherBase {
        /// The file of changes.
        path: PathBuf,
        /// The base.
        base: PathBuf,
    },
    /// Another process writes this file.
    #[error("{}: another process writes this file", .0.display())]
    Busy(PathBuf),
    /// Keys must ascend.
    #[error("{key} follows {before}; expected the order of kind, number of digits, number")]
    Order {
        /// The key that comes too late.
        key: Key,
        /// The one before it.
        before: Key,
    },
    /// A key comes twice.
    #[error("{0} is there twice")]
    Twice(Key),
    /// A name cannot be kept.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A destination set cannot be kept.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A block cannot be read, so it cannot be copied or changed either.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The journal refuses; nothing was changed.
    #[error("journal: {0}")]
    Journal(io::Error),
}

impl Error {
    /// Makes an error of the system one of this file.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}
