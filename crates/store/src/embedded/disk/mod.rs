//! Everything the engine changes on the disk goes through here, so that a test can keep a record of it ([`tape`]) and
//! show what a power failure may leave. Outside of tests this is the operating system's own files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::private;

/// A file that is written.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    /// Where [`io::Write`] goes on.
    at: u64,
    #[cfg(test)]
    tape: Option<tape::Writer>,
}

impl Disk {
    /// Creates a file, or empties the one that is there.
    pub(super) fn create(path: &Path) -> io::Result<Disk> {
        Ok(Disk {
            file: private::create(path)?,
            at: 0,
            #[cfg(test)]
            tape: tape::created(path),
        })
    }

    /// Creates a file that must not be there yet.
    pub(super) fn create_new(path: &Path) -> io::Result<Disk> {
        Ok(Disk {
            file: private::create_new(path)?,
            at: 0,
            #[cfg(test)]
            tape: tape::created(path),
        })
    }

    /// Opens a file that is there, to read it and, where `write`, to write it.
    pub(super) fn open(path: &Path, write: bool) -> io::Result<Disk> {
        Ok(Disk {
            file: OpenOptions::new().read(true).write(write).open(path)?,
            at: 0,
            #[cfg(test)]
            tape: tape::opened(path),
        })
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buffer, at)
    }

    pub(super) fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)?;
        #[cfg(test)]
        tape::note(self.tape.as_ref(), |file| {
            tape::Step::Write(file, at, bytes.to_vec())
        });
        Ok(())
    }

    pub(super) fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        #[cfg(test)]
        tape::note(self.tape.as_ref(), |file| tape::Step::Length(file, length));
        Ok(())
    }

    /// Makes what was written durable, and the length.
    pub(super) fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        #[cfg(test)]
        tape::note(self.tape.as_ref(), tape::Step::Sync);
        Ok(())
    }

    /// As [`Disk::sync_data`], with all that is known of the file.
    pub(super) fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()?;
        #[cfg(test)]
        tape::note(self.tape.as_ref(), tape::Step::Sync);
        Ok(())
    }
}

impl io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives a file another name, in place of any that has it.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    #[cfg(test)]
    tape::renamed(from, to);
    Ok(())
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    #[cfg(test)]
    tape::removed(path);
    Ok(())
}

/// Makes the creation, renaming or removal of a file durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |directory| File::open(directory)?.sync_all())?;
    #[cfg(test)]
    tape::synced(path);
    Ok(())
}

#[cfg(test)]
pub(super) mod tape;
