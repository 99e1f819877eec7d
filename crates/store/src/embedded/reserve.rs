//! Room on the disk that is kept for deletions, so that a full disk can be emptied through the function.
//!
//! The file takes its room when the store is opened. When a write finds the disk full, the room is given to the log and the
//! store takes deletions alone, until the file can have its room back.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::{Resource, getrlimit};

use super::private;

/// Name of the file.
const RESERVE: &str = "store.reserve";
/// Less is not worth a file.
const SMALLEST: u64 = 64 * 1_024;

/// The reserve of a store.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    /// Bytes that it takes.
    size: u64,
    /// The log has them.
    released: bool,
}

impl Reserve {
    /// Takes `wanted` bytes, or less on a disk that has less; none on one that has none. A file that says that its room was
    /// given to the log stays so until [`Reserve::refill`].
    pub(super) fn take(directory: &Path, wanted: u64) -> Reserve {
        let mut reserve = Reserve {
            path: directory.join(RESERVE),
            size: wanted,
            released: false,
        };
        // A file that is larger than this process may write would end it by a signal.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if wanted > limit {
            tracing::warn!(
                limit,
                wanted,
                "no room is kept for deletions: files may not be that large (ulimit -f)"
            );
            reserve.size = 0;
            return reserve;
        }
        let length = std::fs::metadata(&reserve.path).map_or(0, |file| file.len());
        if wanted == 0 {
            if length > 0 {
                // It was switched off.
                let _ = std::fs::remove_file(&reserve.path);
            }
            return reserve;
        }
        if length == 8 {
            let said = std::fs::read(&reserve.path)
                .ok()
                .and_then(|bytes| bytes.try_into().ok());
            reserve.size = said.map_or(wanted, u64::from_le_bytes).min(wanted);
            reserve.released = true;
            reserve.released = reserve.refill().is_err();
            return reserve;
        }
        if length == wanted {
            return reserve;
        }
        while reserve.size >= SMALLEST {
            match reserve.allocate() {
                Ok(()) => return reserve,
                Err(error) if is_full(&error) => reserve.size /= 2,
                Err(error) => {
                    tracing::warn!(%error, "no room can be kept for deletions");
                    break;
                }
            }
        }
        let _ = std::fs::remove_file(&reserve.path);
        reserve.size = 0;
        reserve
    }

    fn allocate(&self) -> io::Result<()> {
        let file = private::create(&self.path)?;
        fallocate(&file, FallocateFlags::empty(), 0, self.size)?;
        file.sync_all()
    }

    /// Whether the log has the room.
    pub(super) fn is_released(&self) -> bool {
        self.released
    }

    /// Gives the room to the log. False: there is none.
    pub(super) fn release(&mut self) -> bool {
        if self.size == 0 || self.released {
            return false;
        }
        // What it had is said in the file, for the next start.
        let given = private::create(&self.path).and_then(|mut file| file.write_all(&self.size.to_le_bytes()));
        match given {
            Ok(()) => self.released = true,
            Err(error) => tracing::warn!(%error, "failed to release the room that was kept for deletions"),
        }
        self.released
    }

    /// Whether the disk has as much as the reserve takes, and some for writes.
    pub(super) fn has_room(&self) -> bool {
        const FOR_WRITES: u64 = 1 << 20;
        let free = self.path.parent().and_then(|directory| statvfs(directory).ok());
        free.is_some_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= self.size + FOR_WRITES)
    }

    /// Takes the room back.
    ///
    /// # Errors
    /// When there is not enough; the log keeps what there is.
    pub(super) fn refill(&mut self) -> io::Result<()> {
        if !self.released {
            return Ok(());
        }
        match self.allocate() {
            Ok(()) => {
                self.released = false;
                Ok(())
            }
            Err(error) => {
                let said =
                    private::create(&self.path).and_then(|mut file| file.write_all(&self.size.to_le_bytes()));
                if let Err(error) = said {
                    tracing::debug!(%error, "the reserve does not say what it had");
                }
                Err(error)
            }
        }
    }
}

/// Whether an error says that there is no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(directory: &Path) -> u64 {
        std::fs::metadata(directory.join(RESERVE)).map_or(0, |file| file.len())
    }

    #[test]
    fn it_is_taken_given_and_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::take(directory.path(), 1 << 20);
        assert_eq!(
            (length(directory.path()), reserve.is_released()),
            (1 << 20, false)
        );
        assert!(reserve.release() && !reserve.release());
        assert_eq!((length(directory.path()), reserve.is_released()), (8, true));
        reserve.refill().unwrap();
        assert_eq!(
            (length(directory.path()), reserve.is_released()),
            (1 << 20, false)
        );
        reserve.release();
        // The next start takes it back where there is room, and only then.
        let again = Reserve::take(directory.path(), 1 << 20);
        assert_eq!((length(directory.path()), again.is_released()), (1 << 20, false));
        Reserve::take(directory.path(), 0);
        assert!(!directory.path().join(RESERVE).exists());
    }
}
