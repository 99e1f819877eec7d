//! A file that is there as a whole or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file under another name, `NAME.new`, until [`Self::commit`] syncs and renames it. Dropped before that, it is removed;
/// one that a crash has left is overwritten by the next.
#[derive(Debug)]
pub(super) struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    committed: bool,
}

impl AtomicFile {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        // Numbers of subscribers: for their owner alone.
        let mut options = fs::OpenOptions::new();
        let options = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let file = options.open(&temporary).map_err(Error::at(&temporary))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(Error::at(&temporary)(error)),
        }
        file.set_len(0).map_err(Error::at(&temporary))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            file: BufWriter::with_capacity(1 << 20, file),
            committed: false,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::at(&self.temporary))
    }

    /// Overwrites the beginning, syncs the file, renames it and syncs its folder.
    pub(super) fn commit(mut self, beginning: &[u8]) -> Result<(), Error> {
        let written = self.finish(beginning);
        written.map_err(Error::at(&self.temporary))?;
        self.committed = true;
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(Error::at(folder))
    }

    fn finish(&mut self, beginning: &[u8]) -> io::Result<()> {
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(beginning)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
