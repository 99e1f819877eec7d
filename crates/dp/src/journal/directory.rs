//! What is kept of the servers' data: numbers and names as of an offset, and the transactions since. `current` names the files
//! that count, and is replaced as a whole.
//!
//! Nothing here is acknowledged to a server, so a transaction is not synced: what a power failure takes from the log is polled
//! again. Its lines have checksums, and the first one that is wrong ends the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use numbers::{NameWriter, Writer};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::taking::Taking;
use super::transaction::Transaction;
use crate::data::Data;

const CURRENT: &str = "current";
const LOCK: &str = "lock";

/// The files that count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Current {
    /// The beginning of their names.
    generation: u64,
    /// The identity of the journal.
    pub(super) journal: String,
    /// The offset of numbers and names.
    offset: u64,
    has_numbers: bool,
    has_names: bool,
    /// CRC-32C of the others.
    #[serde(default)]
    sum: Option<u32>,
}

impl Current {
    /// With the checksum that it should have.
    fn summed(mut self) -> Self {
        self.sum = None;
        // Strings and numbers always have a form in JSON.
        let text = serde_json::to_vec(&self).unwrap_or_default();
        self.sum = Some(crc32c::crc32c(&text));
        self
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let current: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if current.sum.is_some() && current != current.clone().summed() {
            return Err(format!(
                "{CURRENT}: the checksum is another one; the file is damaged"
            ));
        }
        Ok(current)
    }
}

/// The directory, which one process has open.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    max_names: usize,
    current: Option<Current>,
    log: Option<File>,
    log_bytes: u64,
    _lock: File,
}

/// Data with the identity of their journal and their offset in it.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) data: Data,
    pub(super) journal: String,
    pub(super) offset: u64,
}

impl Directory {
    /// Opens a directory, which is made where there is none, and the data in it. Data that cannot be used are taken again from a
    /// server: the log has the reason.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(super) fn open(path: &Path, max_names: usize) -> Result<(Self, Option<Position>), String> {
        let wrong = |error: io::Error| format!("directory: {}: {error}", path.display());
        // Numbers of subscribers: for their owner alone, as all files in it.
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(wrong)?;
        let lock = open(&path.join(LOCK), false).map_err(wrong)?;
        lock.try_lock()
            .map_err(|_| format!("directory: {}: another process uses it", path.display()))?;
        let mut directory = Self {
            path: path.to_owned(),
            max_names,
            current: None,
            log: None,
            log_bytes: 0,
            _lock: lock,
        };
        let current = match fs::read(path.join(CURRENT)) {
            Ok(bytes) => Current::parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((directory, None)),
            Err(error) => return Err(wrong(error)),
        };
        let position = current.and_then(|current| {
            let data = directory.data(&current)?;
            directory.adopt(current, data)
        });
        let position = position.inspect_err(|error| {
            tracing::error!(directory = %path.display(), %error, "data cannot be used; they are taken again from a server");
        });
        Ok((directory, position.ok()))
    }

    fn file(&self, generation: u64, ending: &str) -> PathBuf {
        self.path.join(format!("{generation}.{ending}"))
    }

    /// Opens the files of numbers and names.
    fn data(&self, current: &Current) -> Result<Data, String> {
        let generation = current.generation;
        let numbers = current.has_numbers.then(|| self.file(generation, "num"));
        let names = current.has_names.then(|| self.file(generation, "names"));
        Data::kept(numbers.as_deref(), names.as_deref(), self.max_names)
    }

    /// Puts the transactions of the log into effect.
    fn adopt(&mut self, current: Current, data: Data) -> Result<Position, String> {
        let (log, offset) = self.replay(&data, &current)?;
        self.log_bytes = log.metadata().map_or(0, |data| data.len());
        self.log = Some(log);
        let journal = current.journal.clone();
        self.current = Some(current);
        Ok(Position {
            data,
            journal,
            offset,
        })
    }

    /// Puts the transactions of the log into effect, up to the first line that is not whole; returns the log at its end, and
    /// the offset.
    fn replay(&self, data: &Data, current: &Current) -> Result<(File, u64), String> {
        let file = open(&self.file(current.generation, "log"), false);
        let mut file = file.map_err(|error| format!("log: {error}"))?;
        let (mut offset, mut length) = (current.offset, 0);
        let mut input = BufReader::with_capacity(1 << 20, &file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line);
            let read = read.map_err(|error| format!("log: {error}"))?;
            let Some(transaction) = sound(&line).filter(|one| Some(one.offset) == offset.checked_add(1))
            else {
                break;
            };
            let Transaction {
                offset: next,
                numbers,
                names,
            } = transaction;
            data.change(&numbers, names, next, self.max_names)?;
            offset = next;
            length += read as u64;
        }
        if file.metadata().is_ok_and(|data| data.len() > length) {
            tracing::warn!(
                offset,
                "the log ends within a line or is damaged; what follows is polled again"
            );
        }
        file.set_len(length)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(|error| format!("log: {error}"))?;
        Ok((file, offset))
    }

    /// Appends lines of the journal.
    ///
    /// # Errors
    /// When they cannot be written: they are not in the log then, or the log ends within them.
    pub(super) fn append(&mut self, lines: &[&[u8]]) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Err(io::Error::other("no log is open"));
        };
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(format!("{:08x} ", crc32c::crc32c(line)).as_bytes());
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        log.write_all(&text)?;
        self.log_bytes += text.len() as u64;
        Ok(())
    }

    /// Bytes of the log.
    pub(super) const fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Begins to take all subscribers; the files that count do not change before the end.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(super) fn begin(&self) -> Result<Taking, String> {
        let generation = self.next_generation();
        let numbers = Writer::create(&self.file(generation, "num")).map_err(|error| error.to_string())?;
        let names = NameWriter::create(&self.file(generation, "names")).map_err(|error| error.to_string())?;
        Ok(Taking::new(numbers, names, self.max_names))
    }

    /// Has all subscribers that were taken count.
    ///
    /// # Errors
    /// When they cannot be used; the files that counted before still do.
    pub(super) fn complete(&mut self, taking: Taking) -> Result<Position, String> {
        let generation = self.next_generation();
        let taken = taking.finish()?;
        self.turn(Current {
            generation,
            journal: taken.journal,
            offset: taken.offset,
            has_numbers: taken.numbers > 0,
            has_names: taken.names > 0,
            sum: None,
        })
    }

    fn next_generation(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.generation) + 1
    }

    /// Rewrites the data, with all transactions up to their offset, so that the log can end.
    ///
    /// # Errors
    /// When the system refuses; the files that counted before still do.
    pub(super) fn rewrite(&mut self, data: &Data, offset: u64) -> Result<Position, String> {
        let Some(current) = self.current.clone() else {
            return Err("no data are there".to_owned());
        };
        let generation = self.next_generation();
        let written = data.map.rewrite(&self.file(generation, "num"));
        let written = written.map_err(|error| error.to_string())?;
        let count = NameWriter::create(&self.file(generation, "names"))
            .map_err(|error| error.to_string())
            .and_then(|mut names| {
                data.names.write(&mut names)?;
                names.finish().map_err(|error| error.to_string())
            })?;
        self.turn(Current {
            generation,
            offset,
            has_numbers: written.numbers > 0,
            has_names: count > 0,
            ..current
        })
    }

    /// Has other files count, and removes those before them.
    fn turn(&mut self, current: Current) -> Result<Position, String> {
        // Data that are refused do not count after a restart either.
        let data = self.data(&current)?;
        let log = self.file(current.generation, "log");
        let current = current.summed();
        let text = serde_json::to_vec(&current).map_err(|error| error.to_string())?;
        let publish = || {
            // One that a crash has left beside files that never counted.
            open(&log, true)?.sync_all()?;
            let mut file = NamedTempFile::new_in(&self.path)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            File::open(&self.path)?.sync_all()?;
            file.persist(self.path.join(CURRENT))
                .map_err(|error| error.error)?;
            File::open(&self.path)?.sync_all()
        };
        publish().map_err(|error| format!("{}: {error}", self.path.display()))?;
        let generation = current.generation;
        let position = self.adopt(current, data)?;
        self.remove_others(generation);
        Ok(position)
    }

    fn remove_others(&self, generation: u64) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let parts = name.to_str().and_then(|name| name.split_once('.'));
            let of = parts.and_then(|(number, _)| number.parse::<u64>().ok());
            if of.is_some_and(|of| of != generation)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::warn!(file = %entry.path().display(), %error, "file of earlier data not removed");
            }
        }
    }
}

/// Opens a file to read and write, and creates it for its owner alone; `empty`: without what it has.
fn open(path: &Path, empty: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).mode(0o600);
    options.truncate(empty).open(path)
}

/// The transaction of a line of the log; none: the line is not whole.
fn sound(line: &[u8]) -> Option<Transaction> {
    let (sum, text) = line.strip_suffix(b"\n")?.split_at_checked(8)?;
    let text = text.strip_prefix(b" ")?;
    let sum = std::str::from_utf8(sum).ok()?;
    if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(text) {
        return None;
    }
    Transaction::parse(text).ok()
}
