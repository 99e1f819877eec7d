//! A copy of a store that is open, while it serves.
//!
//! The writer thread answers with the files of the log and their lengths between two groups ([`Cut`]): what was acknowledged
//! before is in them, and of a batch there is all or nothing. The log only grows at its end, so that the copy needs no lock: it
//! reads from the open files, also those that compaction removes meanwhile. It is made in a directory beside the one that is
//! wanted, which gets the name when all of it is on the disk: under that name there is a whole copy or none.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::statvfs;

use super::catalogue::CATALOGUE;
use super::disk;
use super::mark::{Mark, MarkFile};
use super::private;
use super::segment::Segment;
use crate::copies::{BackedUp, BackupError};

/// Ends the name of a copy that is being made, or was not finished.
const INCOMPLETE: &str = ".incomplete";
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Room that a copy leaves on the disk: it may be that of the store.
const LEAVE: u64 = 32 << 20;

/// The log at one moment.
pub(super) struct Cut {
    /// Oldest first, with their lengths.
    pub(super) files: Vec<(Arc<Segment>, u64)>,
    /// Whether the last one is being written.
    pub(super) open: bool,
    pub(super) mark: Mark,
}

/// What a copy is made with.
pub(super) struct Source<'a> {
    /// Of the store.
    pub(super) directory: &'a Path,
    /// Bytes read in a second.
    pub(super) rate: u64,
    pub(super) stopping: &'a AtomicBool,
}

/// The directory into which a copy is being made.
#[derive(Default)]
pub(super) struct InProgress(Mutex<Option<PathBuf>>);

impl InProgress {
    pub(super) fn begin(&self, to: &Path) -> Result<Turn<'_>, BackupError> {
        let mut current = self.0.lock();
        if let Some(other) = &*current {
            return Err(BackupError::Busy(other.clone()));
        }
        *current = Some(to.to_owned());
        Ok(Turn(self))
    }
}

/// Ends with the copy.
pub(super) struct Turn<'a>(&'a InProgress);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// Whether a directory can take a copy; returns the one in which it is made.
pub(super) fn check(directory: &Path, to: &Path) -> Result<PathBuf, BackupError> {
    if !to.is_absolute() {
        return Err(BackupError::target(to, "not an absolute path"));
    }
    let (Some(above), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(BackupError::target(to, "not the name of a directory"));
    };
    let above = above
        .canonicalize()
        .map_err(|error| BackupError::target(above, error))?;
    if directory.canonicalize().is_ok_and(|own| above.starts_with(own)) {
        return Err(BackupError::target(to, "inside the directory of the store"));
    }
    match std::fs::read_dir(to).map(|mut inside| inside.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(BackupError::target(to, "not empty")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(BackupError::target(to, error)),
    }
    let mut incomplete = name.to_owned();
    incomplete.push(INCOMPLETE);
    let incomplete = above.join(incomplete);
    match incomplete.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(incomplete),
        Err(error) => Err(BackupError::target(&incomplete, error)),
        Ok(_) => Err(BackupError::target(
            &incomplete,
            "there from a backup that is being made or was broken off; remove it",
        )),
    }
}

impl Source<'_> {
    /// Makes the copy in `incomplete`, then calls it `to`.
    pub(super) fn copy(&self, cut: &Cut, incomplete: &Path, to: &Path) -> Result<BackedUp, BackupError> {
        std::fs::create_dir(incomplete).map_err(|error| BackupError::target(incomplete, error))?;
        let made = private::create_directory(incomplete)
            .and_then(|()| private::tighten(incomplete, |_| true))
            .and_then(|()| self.fill(cut, incomplete))
            .and_then(|made| {
                disk::sync_directory(&incomplete.join(CATALOGUE))?;
                std::fs::rename(incomplete, to)?;
                disk::sync_directory(to)?;
                Ok(made)
            });
        made.map_err(|error| {
            // Nothing but the copy is in it.
            let left = std::fs::remove_dir_all(incomplete);
            match left {
                Ok(()) => BackupError::Failed(format!("{}: {error}", to.display())),
                Err(left) => BackupError::target(incomplete, format!("{error}; and it stays: {left}")),
            }
        })
    }

    fn fill(&self, cut: &Cut, into: &Path) -> io::Result<BackedUp> {
        let mut made = BackedUp::default();
        let mut rest = Vec::new();
        for (position, (file, length)) in cut.files.iter().enumerate() {
            let copy = file.name.path(into);
            let is_complete = !cut.open || position + 1 < cut.files.len();
            // Compaction may have removed it, or it is on another file system.
            match is_complete && std::fs::hard_link(file.path(), &copy).is_ok() {
                true => made.linked += 1,
                false => rest.push((file, *length, copy)),
            }
            made.files += 1;
            made.bytes += length;
        }
        has_room(into, rest.iter().map(|(_, length, _)| length).sum())?;
        let mut pace = Pace::new(self.rate);
        for (file, length, copy) in rest {
            self.copy_file(file, length, &copy, &mut pace)?;
        }
        let mut catalogue = private::create_new(&into.join(CATALOGUE))?;
        catalogue.write_all(&std::fs::read(self.directory.join(CATALOGUE))?)?;
        catalogue.sync_all()?;
        MarkFile::create(into, cut.mark)?;
        Ok(made)
    }

    fn copy_file(&self, file: &Segment, length: u64, to: &Path, pace: &mut Pace) -> io::Result<()> {
        let mut copy = private::create_new(to)?;
        let mut bytes = vec![0; CHUNK];
        let mut at = 0;
        while at < length {
            if self.stopping.load(Relaxed) {
                return Err(io::Error::other("the store is being closed"));
            }
            let want = usize::try_from(length - at).map_or(CHUNK, |left| left.min(CHUNK));
            let got = file.read_bytes(&mut bytes[..want], at)?;
            if got == 0 {
                return Err(io::Error::other(format!(
                    "{}: ends at byte {at}",
                    file.path().display()
                )));
            }
            copy.write_all(&bytes[..got])?;
            at += got as u64;
            pace.spend(got as u64);
        }
        copy.sync_all()
    }
}

/// Says at once what would fail later, and keeps room for a store on the same disk.
pub(super) fn has_room(directory: &Path, bytes: u64) -> io::Result<()> {
    let disk = statvfs(directory)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    match free >= bytes.saturating_add(LEAVE) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("the disk has {free} bytes, the copy needs {bytes} and leaves {LEAVE}"),
        )),
    }
}

/// Holds back what would take the disk from the store.
struct Pace {
    rate: u64,
    began: Instant,
    spent: u64,
}

impl Pace {
    fn new(rate: u64) -> Pace {
        Pace {
            rate: rate.max(1),
            began: Instant::now(),
            spent: 0,
        }
    }

    fn spend(&mut self, bytes: u64) {
        self.spent += bytes;
        let due = Duration::from_secs_f64(self.spent as f64 / self.rate as f64);
        std::thread::sleep(due.saturating_sub(self.began.elapsed()));
    }
}
