//! A file of the router's own to which changes are appended: what is acknowledged is on the disk.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use parking_lot::{Mutex, MutexGuard};

/// The file; one change at a time.
#[derive(Debug)]
pub(crate) struct Appended(Mutex<File>);

/// The right to append.
pub(crate) struct Appending<'a>(MutexGuard<'a, File>);

impl Appended {
    /// Opens the file, which is made where there is none, and hands each line to `take`. A line without its end was not
    /// acknowledged and is cut off.
    ///
    /// # Errors
    /// When it cannot be read and written, or `take` refuses a line.
    pub(crate) fn open(
        path: &Path,
        mut take: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<Self, String> {
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = options.map_err(|error| error.to_string())?;
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| error.to_string())?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text.get(..whole).unwrap_or_default().lines().enumerate() {
            take(line).map_err(|wrong| format!("line {}: {wrong}", number + 1))?;
        }
        let trim = file
            .set_len(whole as u64)
            .and_then(|()| file.seek(SeekFrom::End(0)));
        trim.map_err(|error| error.to_string())?;
        Ok(Self(Mutex::new(file)))
    }

    /// Waits until no other change is being made.
    pub(crate) fn lock(&self) -> Appending<'_> {
        Appending(self.0.lock())
    }
}

impl Appending<'_> {
    /// Writes a line to the disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is in the file then.
    pub(crate) fn append(&mut self, line: &str) -> Result<(), String> {
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
