//! The lock on a directory, so that one process at a time has its store open.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use super::files::failed;
use super::private;
use crate::error::Error;

/// Locked while a process has the store open.
pub(super) const LOCK: &str = "store.lock";

/// The lock; released when dropped.
///
/// It is released by a call, and not left to the closing of the file: a process that another thread is just starting
/// holds a copy of the descriptor, and with it the lock, until it runs its own program. The next attempt to open the
/// store would fail meanwhile.
pub(super) struct Lock(File);

impl Lock {
    /// Locks the directory for this process.
    pub(super) fn take(directory: &Path) -> Result<Lock, Error> {
        let path = directory.join(LOCK);
        let file = private::open_or_create(&path).map_err(|error| failed(&path, error))?;
        Lock::on(file, &path)
    }

    /// As [`Lock::take`], for a process that only reads: without the file, no process has ever opened the store.
    pub(super) fn take_to_read(directory: &Path) -> Result<Option<Lock>, Error> {
        let path = directory.join(LOCK);
        match File::open(&path) {
            Ok(file) => Lock::on(file, &path).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn on(file: File, path: &Path) -> Result<Lock, Error> {
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(failed(path, "another process has this store open")),
            Err(TryLockError::Error(error)) => Err(failed(path, error)),
        }
    }

    /// Releases the lock. Releasing it twice does no harm.
    pub(super) fn release(&self) {
        if let Err(error) = self.0.unlock() {
            tracing::error!(%error, "the store's directory stays locked");
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_a_dropped_lock() {
        let directory = tempfile::tempdir().unwrap();
        let lock = Lock::take(directory.path()).unwrap();
        assert!(Lock::take(directory.path()).is_err(), "it is locked");
        // What a process holds between fork and exec.
        let copy = lock.0.try_clone().unwrap();
        drop(lock);
        let again = Lock::take_to_read(directory.path()).unwrap();
        assert!(again.is_some());
        drop((again, copy));
    }
}
