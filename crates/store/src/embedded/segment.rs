//! Segments: the files of the log, each under its [`Name`].
//!
//! A file begins with a [`super::head`] and, when nothing will be added to it, ends with an entry that says so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::disk::{self, Disk};
use super::entry::{self, Entry};
use super::head::{FILE_HEAD, Format, Head};
use super::name::Name;

/// Read at once for a lookup; most entries fit.
const GUESS: usize = 1_024;

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: Name,
    pub(super) slot: u16,
    pub(super) format: Format,
    /// The number of the newest segment when compaction made this one; 0: never compacted.
    pub(super) compacted_at: u32,
    path: PathBuf,
    file: Disk,
    /// Bytes that are durable; readers go no further.
    length: AtomicU64,
    /// Bytes of entries that are the current ones of their records.
    live: AtomicU64,
    /// The latest version in it.
    newest: AtomicU64,
}

impl Segment {
    /// Creates the file, durably.
    pub(super) fn create(path: PathBuf, name: Name, slot: u16, compacted_at: u32) -> io::Result<Segment> {
        let file = Disk::create(&path)?;
        file.write_all_at(&Head::encode(name, compacted_at), 0)?;
        file.sync_all()?;
        disk::sync_directory(&path)?;
        let head = Head {
            format: Format::Two,
            compacted_at,
        };
        Ok(Segment::over(path, file, name, slot, head, FILE_HEAD))
    }

    /// Opens a file that exists, to read it and, where `write`, to go on writing it.
    pub(super) fn open(path: PathBuf, name: Name, slot: u16, write: bool) -> Result<Segment, Unopened> {
        let file = Disk::open(&path, write)?;
        let length = file.length()?;
        let mut bytes = [0; FILE_HEAD as usize];
        let got = read_some(&file, &mut bytes, 0)?;
        let head = match got < bytes.len() {
            true => Err(format!("the file has {got} bytes, which is less than a head")),
            false => Head::decode(&bytes, name),
        };
        match head {
            Ok(head) => Ok(Segment::over(path, file, name, slot, head, length)),
            Err(reason) => Err(Unopened::Head { reason, length }),
        }
    }

    /// Opens a file whose head cannot be read, to take from it what can.
    pub(super) fn open_headless(path: PathBuf, name: Name, format: Format) -> io::Result<Segment> {
        let file = Disk::open(&path, false)?;
        let length = file.length()?;
        let head = Head {
            format,
            // So early that no deletion is forgotten for it too soon.
            compacted_at: u32::from(name.generation > 0),
        };
        Ok(Segment::over(path, file, name, 0, head, length))
    }

    fn over(path: PathBuf, file: Disk, name: Name, slot: u16, head: Head, length: u64) -> Segment {
        Segment {
            name,
            slot,
            format: head.format,
            compacted_at: head.compacted_at,
            path,
            file,
            length: AtomicU64::new(length),
            live: AtomicU64::new(0),
            newest: AtomicU64::new(0),
        }
    }

    /// Writes the head again, for the name that the file will have.
    pub(super) fn write_head(&self, name: Name) -> io::Result<()> {
        self.file.write_all_at(&Head::encode(name, self.compacted_at), 0)
    }

    /// The segment under its final name.
    pub(super) fn renamed(self, path: PathBuf, name: Name) -> Segment {
        Segment { path, name, ..self }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        self.length.load(Acquire)
    }

    pub(super) fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Relaxed)
    }

    pub(super) fn saw_version(&self, version: u64) {
        self.newest.fetch_max(version, Relaxed);
    }

    pub(super) fn add_live(&self, bytes: u64) {
        self.live.fetch_add(bytes, Relaxed);
    }

    pub(super) fn remove_live(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Relaxed);
    }

    /// Forgets what is known of its entries.
    pub(super) fn reset(&self) {
        self.live.store(0, Relaxed);
        self.newest.store(0, Relaxed);
    }

    /// Share of the segment that is not current.
    pub(super) fn garbage(&self) -> f64 {
        let length = self.length().saturating_sub(FILE_HEAD);
        if length == 0 {
            0.0
        } else {
            1.0 - self.live().min(length) as f64 / length as f64
        }
    }

    /// Writes after the durable bytes. [`Segment::publish`] makes readers see it.
    pub(super) fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(super) fn publish(&self, length: u64) {
        self.length.store(length, Release);
    }

    /// Cuts off what lies after `length`, durably.
    pub(super) fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)?;
        self.file.sync_all()?;
        self.publish(length);
        Ok(())
    }

    /// Reads bytes as they are; fewer at the end of the file.
    pub(super) fn read_bytes(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_some(&self.file, buffer, offset)
    }

    /// Reads the entry at `offset` into `buffer`.
    pub(super) fn read<'b>(&self, offset: u64, buffer: &'b mut Vec<u8>) -> Result<Entry<'b>, String> {
        if buffer.len() < GUESS {
            buffer.resize(GUESS, 0);
        }
        let failed = |error: io::Error| format!("{} at {offset}: {error}", self.path.display());
        let mut got = read_some(&self.file, &mut buffer[..GUESS], offset).map_err(failed)?;
        if let Some(length) = entry::length(&buffer[..got])
            && length > got
        {
            if length as u64 > self.length() {
                return Err(format!(
                    "{} at {offset}: an entry of {length} bytes",
                    self.path.display()
                ));
            }
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            let more = read_some(&self.file, &mut buffer[got..length], offset + got as u64);
            got += more.map_err(failed)?;
        }
        Entry::decode(&buffer[..got])
            .map_err(|reason| format!("{} at {offset}: {reason}", self.path.display()))
    }
}

fn read_some(file: &Disk, mut buffer: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => break,
            Ok(count) => {
                got += count;
                offset += count as u64;
                buffer = &mut buffer[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Why a file was not opened.
#[derive(Debug)]
pub(super) enum Unopened {
    Io(io::Error),
    /// Its head cannot be read, and how long the file is.
    Head {
        reason: String,
        length: u64,
    },
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Unopened {
        Unopened::Io(error)
    }
}
