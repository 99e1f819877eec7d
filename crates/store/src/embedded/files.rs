//! The files of the log in a directory: which there are, which others have replaced, which are missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compact::TEMPORARY;
use super::disk;
use super::head::{FILE_HEAD, Format};
use super::mark::Mark;
use super::name::Name;
use super::segment::{Segment, Unopened};
use super::segments::{Need, Segments};
use crate::error::Error;

/// Ends what is said of damage.
const ADVICE: &str = "Nothing has been changed. Restore it, or the whole directory, from a copy; \
    `signalbox store verify DIRECTORY` lists all damage, `signalbox store salvage DIRECTORY` keeps what can be read \
    and sets the rest aside";

/// What is said when damage keeps the store from opening.
pub(super) fn refuse(path: &Path, byte: u64, reason: impl std::fmt::Display) -> Error {
    Error::Open(format!(
        "{}: damaged at byte {byte}: {reason}. {ADVICE}",
        path.display()
    ))
}

/// What is said when the system does not let us.
pub(super) fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Open(format!("{}: {error}", path.display()))
}

/// Names of the files in a directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// Those that make up the log, in order.
    pub(super) kept: Vec<Name>,
    /// Those whose entries another file has. A compaction was interrupted before it had removed them.
    pub(super) replaced: Vec<Name>,
}

impl Listing {
    pub(super) fn read(directory: &Path) -> Result<Listing, Error> {
        let mut names = Vec::new();
        for file in std::fs::read_dir(directory).map_err(|error| failed(directory, error))? {
            let file = file.map_err(|error| failed(directory, error))?;
            names.extend(file.file_name().to_str().and_then(Name::parse));
        }
        names.sort_unstable();
        let all = names.clone();
        let (replaced, kept) = names
            .into_iter()
            .partition(|name| all.iter().any(|other| name.is_replaced_by(*other)));
        Ok(Listing { kept, replaced })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Numbers that no file covers, first and last; numbers begin with 1 and follow one another. The newest file is
    /// at least the one that the mark names.
    pub(super) fn gaps(&self, mark: Option<Mark>) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut next = 1;
        for name in &self.kept {
            if name.first > next {
                gaps.push((next, name.first - 1));
            }
            next = next.max(name.last.saturating_add(1));
        }
        let newest = mark.map_or(0, |mark| mark.segment);
        if newest >= next {
            gaps.push((next, newest));
        }
        gaps
    }

    /// Files that claim numbers of the file before them, though neither has replaced the other.
    pub(super) fn overlaps(&self) -> impl Iterator<Item = Name> + '_ {
        self.kept
            .windows(2)
            .filter(|pair| pair[1].first <= pair[0].last)
            .map(|pair| pair[1])
    }

    /// Refuses a log of which files are missing.
    pub(super) fn check(&self, directory: &Path, mark: Option<Mark>) -> Result<(), Error> {
        if let Some((first, last)) = self.gaps(mark).into_iter().next() {
            let name = Name {
                first,
                last,
                generation: 0,
            };
            let lost = match first == last {
                true => "the file is missing".to_owned(),
                false => format!("the files of numbers {first} to {last} are missing"),
            };
            return Err(refuse(&name.path(directory), 0, lost));
        }
        match self.overlaps().next() {
            Some(name) => Err(refuse(
                &name.path(directory),
                0,
                "another file has some of its numbers",
            )),
            None => Ok(()),
        }
    }
}

/// The files of the log, open.
pub(super) struct Opened {
    pub(super) segments: Segments,
    /// What is not a part of the log and may go when all that is has been read.
    pub(super) leftovers: Vec<PathBuf>,
}

/// Opens the files of the log, which may have `most`. Nothing is changed.
pub(super) fn open(
    directory: &Path,
    listing: &Listing,
    mark: Option<Mark>,
    most: usize,
) -> Result<Opened, Error> {
    listing.check(directory, mark)?;
    let segments = Segments::new(most);
    let mut leftovers = vec![directory.join(TEMPORARY)];
    leftovers.extend(listing.replaced.iter().map(|name| name.path(directory)));
    for (position, name) in listing.kept.iter().enumerate() {
        let (path, slot) = (name.path(directory), segments.take_slot(Need::Upkeep)?);
        let newest = position + 1 == listing.kept.len();
        match Segment::open(path.clone(), *name, slot, true) {
            Ok(segment) if segment.format == Format::Two && mark.is_none() => {
                return Err(refuse(
                    &directory.join(super::mark::MARK),
                    0,
                    "the file is missing",
                ));
            }
            Ok(segment) => segments.add(&Arc::new(segment)),
            Err(Unopened::Io(error)) => return Err(failed(&path, error)),
            Err(Unopened::Head { length, .. }) if newest && is_unborn(*name, length, mark) => {
                segments.free_slot(slot);
                leftovers.push(path);
            }
            Err(Unopened::Head { reason, .. }) => return Err(refuse(&path, 0, reason)),
        }
    }
    Ok(Opened { segments, leftovers })
}

/// Whether the newest file, whose head cannot be read, was created in the moment of a crash: there is no entry in
/// it, and the mark was not in it yet.
pub(super) fn is_unborn(name: Name, length: u64, mark: Option<Mark>) -> bool {
    length <= FILE_HEAD && name.generation == 0 && mark.is_none_or(|mark| mark.segment < name.last)
}

/// Removes what is not a part of the log.
pub(super) fn remove(leftovers: &[PathBuf]) -> Result<(), Error> {
    for path in leftovers {
        match disk::remove_file(path) {
            Ok(()) => {
                tracing::info!(file = %path.display(), "removed a file whose entries are in another, or that has none");
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(first: u32, last: u32, generation: u32) -> Name {
        Name {
            first,
            last,
            generation,
        }
    }

    #[test]
    fn gaps_are_found_and_what_compaction_has_replaced_is_none() {
        let directory = tempfile::tempdir().unwrap();
        for name in [name(1, 3, 1), name(2, 2, 0), name(4, 4, 0), name(7, 7, 0)] {
            std::fs::write(name.path(directory.path()), "").unwrap();
        }
        let listing = Listing::read(directory.path()).unwrap();
        assert_eq!(listing.replaced, [name(2, 2, 0)]);
        let mark = |segment| Some(Mark { segment, offset: 16 });
        assert_eq!(listing.gaps(None), [(5, 6)]);
        assert_eq!(listing.gaps(mark(7)), [(5, 6)]);
        assert_eq!(listing.gaps(mark(9)), [(5, 6), (8, 9)]);
        assert_eq!(listing.overlaps().count(), 0);
        std::fs::write(name(3, 4, 1).path(directory.path()), "").unwrap();
        let listing = Listing::read(directory.path()).unwrap();
        assert_eq!(listing.overlaps().collect::<Vec<_>>(), [name(3, 4, 1)]);
    }
}
