//! Names of the files of the log.
//!
//! A file is named `FIRST-LAST-GENERATION.log`. A new segment covers one number (`FIRST` = `LAST`, generation 0);
//! what compaction writes covers the numbers of the segments it replaces, with a higher generation. A file that
//! covers another file's numbers with a higher generation has replaced it; so the renaming that gives the new file
//! its name is the moment at which all old ones are void, and a crash leaves either. The numbers of the files follow
//! one another without a gap, from 1 on.

use std::fmt;
use std::path::{Path, PathBuf};

/// A name as the file system shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) last: u32,
    pub(super) first: u32,
    pub(super) generation: u32,
}

impl Name {
    pub(super) fn fresh(number: u32) -> Name {
        Name {
            first: number,
            last: number,
            generation: 0,
        }
    }

    pub(super) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }

    /// The name that a file has; `None` for what is not a file of the log.
    pub(super) fn parse(file: &str) -> Option<Name> {
        Name::numbers(file).filter(|name| name.to_string() == file)
    }

    fn numbers(file: &str) -> Option<Name> {
        let mut parts = file
            .strip_suffix(".log")?
            .splitn(3, '-')
            .map(|part| part.parse().ok());
        Some(Name {
            first: parts.next()??,
            last: parts.next()??,
            generation: parts.next()??,
        })
    }

    /// Whether this file's entries have moved to `other`.
    pub(super) fn is_replaced_by(self, other: Name) -> bool {
        other.generation > self.generation && other.first <= self.first && self.last <= other.last
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:010}-{:010}-{:06}.log",
            self.first, self.last, self.generation
        )
    }
}
