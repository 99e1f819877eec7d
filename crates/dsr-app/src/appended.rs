//! A file of the router's own to which changes are appended: what is acknowledged is on the disk.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// How long a file may be locked by another process before it is refused.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// What files hold, by their paths: each is open once in a process, so that a reload loses no change that comes meanwhile.
#[derive(Debug)]
pub struct OpenOnce<T>(Mutex<BTreeMap<PathBuf, Weak<T>>>);

impl<T> Default for OpenOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> OpenOnce<T> {
    /// No file.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What the file holds; `open` reads it unless it is open already.
    ///
    /// # Errors
    /// That of `open`, with the path.
    pub fn get(&self, path: &Path, open: impl FnOnce() -> Result<T, String>) -> Result<Arc<T>, String> {
        let mut all = self.0.lock();
        let name = one_name(path);
        if let Some(known) = all.get(&name).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let new = open().map_err(|wrong| format!("{}: {wrong}", path.display()))?;
        let new = Arc::new(new);
        all.retain(|_, one| one.strong_count() > 0);
        // A link may lead to a file that is there only now.
        all.insert(one_name(path), Arc::downgrade(&new));
        Ok(new)
    }
}

/// The file; one change at a time.
#[derive(Debug)]
pub struct Appended(Mutex<File>);

/// The right to append.
#[derive(Debug)]
pub struct Appending<'a>(MutexGuard<'a, File>);

impl Appended {
    /// Opens the file, which is made where there is none, and hands each line to `take`. A line without its end was not
    /// acknowledged and is cut off. The file is locked (flock(2)) as long as it is open.
    ///
    /// # Errors
    /// When it cannot be read and written, another process has it, or `take` refuses a line.
    pub fn open(path: &Path, mut take: impl FnMut(&str) -> Result<(), String>) -> Result<Self, String> {
        refuse_other(path)?;
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = options.map_err(|error| error.to_string())?;
        lock(&file)?;
        // A new file is there after a power failure as well.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        // The line that was being written may end within a letter: it is cut before the others are read as text.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        bytes.truncate(whole);
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = std::str::from_utf8(line).map_err(|_| "not in UTF-8".to_owned());
            let taken = line.and_then(|line| take(line.lines().next().unwrap_or_default()));
            taken.map_err(|wrong| format!("line {}: {wrong}", number + 1))?;
        }
        let trim = file
            .set_len(whole as u64)
            .and_then(|()| file.seek(SeekFrom::End(0)));
        trim.map_err(|error| error.to_string())?;
        Ok(Self(Mutex::new(file)))
    }

    /// Waits until no other change is being made.
    pub fn lock(&self) -> Appending<'_> {
        Appending(self.0.lock())
    }
}

impl Appending<'_> {
    /// Writes a line to the disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is in the file then.
    pub fn append(&mut self, line: &str) -> Result<(), String> {
        let file = &mut *self.0;
        let end = file.stream_position().map_err(|error| error.to_string())?;
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| {
            // What was written of it goes, so that the next line is whole.
            let _ = file.set_len(end);
            let _ = file.seek(SeekFrom::Start(end));
            format!("the change cannot be written: {error}")
        })
    }
}

/// Refuses what is there and is not a regular file: the opening of a FIFO would wait for its writer.
///
/// # Errors
/// Says so.
pub fn refuse_other(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(data) if !data.is_file() => Err("is not a regular file".to_owned()),
        _ => Ok(()),
    }
}

/// The one name of a file, however its path is spelled: of one that is not there yet as far as its directory is.
#[must_use]
pub fn one_name(path: &Path) -> PathBuf {
    if let Ok(known) = path.canonicalize() {
        return known;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Refuses one more change where there are `most`, for whose number there is a setting.
///
/// # Errors
/// What an operator does then; `into` are the files that have what stays.
pub fn has_room(changes: usize, most: usize, into: &str) -> Result<(), String> {
    match changes < most {
        true => Ok(()),
        false => Err(format!(
            "there are maxChanges ({most}) changes; put them into the {into}"
        )),
    }
}

/// Locks a file. Its lock is also that of a child which another thread starts, from its fork to its exec: that passes.
fn lock(file: &File) -> Result<(), String> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err("another process has it open; give each router a file of its own".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_router() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changes.csv");
        let open = || Appended::open(&path, |_| Ok(()));
        let first = open().unwrap();
        first.lock().append("a\n").unwrap();
        // What another holds at the moment of a write must not be cut off either.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"half")
            .unwrap();
        assert!(open().unwrap_err().contains("another process"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nhalf");
        drop(first);
        open().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
    }

    #[test]
    fn a_last_line_that_ends_within_a_letter_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changes.csv");
        std::fs::write(&path, b"a\r\nz\xc3\xbc\nhalf \xc3").unwrap();
        let mut lines = Vec::new();
        let mut take = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        Appended::open(&path, &mut take).unwrap();
        assert_eq!(lines, ["a", "zü"]);
        assert_eq!(std::fs::read(&path).unwrap(), "a\r\nzü\n".as_bytes());
        std::fs::write(&path, b"a\n\xc3\nb\n").unwrap();
        let wrong = Appended::open(&path, |_| Ok(())).unwrap_err();
        assert_eq!(wrong, "line 2: not in UTF-8");
        let wrong = Appended::open(folder.path(), |_| Ok(())).unwrap_err();
        assert_eq!(wrong, "is not a regular file");
    }

    #[test]
    fn a_file_is_one_however_its_path_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let all = OpenOnce::<u8>::new();
        let path = folder.path().join("changes.csv");
        let make = || {
            std::fs::write(&path, "").unwrap();
            Ok(1)
        };
        let first = all.get(&path, make).unwrap();
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for other in [folder.path().join("./changes.csv"), link] {
            assert!(Arc::ptr_eq(&first, &all.get(&other, || Ok(2)).unwrap()));
        }
    }

    #[test]
    fn a_reload_takes_what_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let all = OpenOnce::<u8>::new();
        let first = all.get(folder.path(), || Ok(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &all.get(folder.path(), || Ok(2)).unwrap()));
        drop(first);
        assert_eq!(*all.get(folder.path(), || Ok(3)).unwrap(), 3);
        let wrong = all.get(Path::new("/none"), || Err("why".to_owned()));
        assert_eq!(wrong.unwrap_err(), "/none: why");
    }
}
