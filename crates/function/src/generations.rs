//! Generations of log files: that which is written, and earlier ones, which give way only to new files that have room on the
//! disk.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes that the disk must have room for before earlier files give way to new ones.
const LEAST_ROOM: usize = 256 * 1024;

/// The files of a log: for each ending one that is written (`NAME.ENDING`) and earlier ones (`NAME.1.ENDING` …).
#[derive(Clone, Copy, Debug)]
pub struct Generations<'a> {
    /// Where they are.
    pub directory: &'a Path,
    /// The beginning of their names.
    pub name: &'a str,
    /// The endings of their names.
    pub endings: &'a [&'a str],
    /// Number of generations, that which is written included.
    pub files: usize,
}

impl Generations<'_> {
    /// A file of a generation: 0 is written, 1 was before it.
    #[must_use]
    pub fn path(&self, generation: usize, ending: &str) -> PathBuf {
        let name = self.name;
        self.directory.join(match generation {
            0 => format!("{name}.{ending}"),
            earlier => format!("{name}.{earlier}.{ending}"),
        })
    }

    /// Begins new files, in the order of the endings. Those that are there become earlier ones, unless the new ones cannot be
    /// created or have no room: then they stay as they are.
    ///
    /// # Errors
    /// When the new files cannot be begun.
    pub fn begin(&self) -> io::Result<Vec<File>> {
        // They name subscribers.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.directory)?;
        let new = |ending: &str| self.directory.join(format!("{}.new.{ending}", self.name));
        let begun = || {
            let files = self.endings.iter().map(|ending| create_private(&new(ending)));
            let files = files.collect::<io::Result<Vec<File>>>()?;
            files.last().map_or(Ok(()), has_room)?;
            self.rotate()?;
            for ending in self.endings {
                std::fs::rename(new(ending), self.path(0, ending))?;
            }
            Ok(files)
        };
        begun().inspect_err(|_| {
            for ending in self.endings {
                // It may not have been created.
                let _ = std::fs::remove_file(new(ending));
            }
        })
    }

    /// Makes room for new files: those that are there become earlier ones, the earliest goes.
    fn rotate(&self) -> io::Result<()> {
        for ending in self.endings {
            for generation in (1..self.files).rev() {
                let from = self.path(generation - 1, ending);
                match std::fs::rename(from, self.path(generation, ending)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Checks that the disk has room: writes zeros to a new file, and empties it.
fn has_room(mut file: &File) -> io::Result<()> {
    file.write_all(&vec![0; LEAST_ROOM])?;
    file.set_len(0)?;
    file.rewind()
}

/// Creates a file that only its owner may read, or empties the one that is there.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // The mode counts only for a file that was created.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
