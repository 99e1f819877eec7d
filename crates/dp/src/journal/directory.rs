//! What is kept of the servers' data: numbers and names as of an offset, and the transactions since. `current` names the files
//! that count, and is replaced as a whole.
//!
//! Nothing here is acknowledged to a server, so a transaction is not synced: what a power failure takes from the log is polled
//! again. Its lines have checksums, and the first one that is wrong ends the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use numbers::csv::{self, ImportError, Mistake};
use numbers::{DestinationSet, Key, Kind, Writer};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

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
            Ok(bytes) => serde_json::from_slice::<Current>(&bytes).map_err(|error| error.to_string()),
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
        Data::open(numbers.as_deref(), names.as_deref(), self.max_names)
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

    /// Takes the text of all subscribers as of an offset of a journal.
    ///
    /// # Errors
    /// Names the first line that is wrong; the files that counted before still do.
    pub(super) fn take(
        &mut self,
        text: &mut impl BufRead,
        journal: &str,
        offset: u64,
    ) -> Result<Position, String> {
        let generation = self.current.as_ref().map_or(0, |current| current.generation) + 1;
        let numbers = Writer::create(&self.file(generation, "num")).map_err(|error| error.to_string())?;
        let path = self.file(generation, "names");
        let names = open(&path, true).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut split = Split {
            numbers,
            names: BufWriter::with_capacity(1 << 20, names),
            counts: (0, 0),
        };
        split.read(text)?;
        let (numbers, names) = split.finish()?;
        self.turn(Current {
            generation,
            journal: journal.to_owned(),
            offset,
            has_numbers: numbers > 0,
            has_names: names > 0,
        })
    }

    /// Rewrites the data, with all transactions up to their offset, so that the log can end.
    ///
    /// # Errors
    /// When the system refuses; the files that counted before still do.
    pub(super) fn rewrite(&mut self, data: &Data, offset: u64) -> Result<Position, String> {
        let Some(current) = self.current.clone() else {
            return Err("no data are there".to_owned());
        };
        let generation = current.generation + 1;
        let written = data.map.rewrite(&self.file(generation, "num"));
        let written = written.map_err(|error| error.to_string())?;
        let path = self.file(generation, "names");
        let names = || {
            let mut output = BufWriter::with_capacity(1 << 20, open(&path, true)?);
            let count = data.names.write(&mut output)?;
            output
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()?;
            Ok::<_, io::Error>(count)
        };
        let count = names().map_err(|error| format!("{}: {error}", path.display()))?;
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

/// The text of a server, of which numbers and names go into files of their own.
struct Split {
    numbers: Writer,
    names: BufWriter<File>,
    counts: (u64, u64),
}

impl Split {
    fn read(&mut self, text: &mut impl BufRead) -> Result<(), String> {
        let mut sets = ahash::AHashMap::<Box<str>, numbers::SetId>::new();
        let mut take = |line: u64, entry: csv::Entry<'_>| -> Result<(), ImportError> {
            let wrong = |what: String| Mistake::at(line, what);
            let parsed = |text: &str| DestinationSet::parse(text).map_err(|error| wrong(error.to_string()));
            if entry.kind == "name" {
                let set = parsed(entry.destinations)?;
                self.counts.1 += 1;
                return writeln!(self.names, "name,{},{set}", entry.value).map_err(ImportError::Read);
            }
            let kind = entry.kind.parse::<Kind>();
            let key = kind.and_then(|kind| Key::new(kind, entry.value.as_bytes()));
            let key = key.map_err(|error| wrong(error.to_string()))?;
            let set = match sets.get(entry.destinations) {
                Some(set) => *set,
                None => {
                    let set = self.numbers.intern(&parsed(entry.destinations)?);
                    let set = set.map_err(|error| wrong(error.to_string()))?;
                    sets.insert(entry.destinations.into(), set);
                    set
                }
            };
            self.counts.0 += 1;
            self.numbers
                .push(key, set)
                .map_err(|error| wrong(error.to_string()))
        };
        if is_empty(text).map_err(|error| error.to_string())? {
            return Ok(());
        }
        csv::entries(text, &mut take)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn finish(self) -> Result<(u64, u64), String> {
        self.numbers.finish().map_err(|error| error.to_string())?;
        let names = self.names.into_inner().map_err(io::IntoInnerError::into_error);
        names
            .and_then(|names| names.sync_all())
            .map_err(|error| format!("names: {error}"))?;
        Ok(self.counts)
    }
}

/// Whether a text is that of a server without subscribers: comments and the end.
fn is_empty(text: &mut impl BufRead) -> io::Result<bool> {
    let begin = text.fill_buf()?;
    let mut lines = begin.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(begin.ends_with(b"\n#end,0\n") && lines.all(|line| line.starts_with(b"#")))
}
