//! Segments: the files of the log.
//!
//! A file is named `FIRST-LAST-GENERATION.log`. A new segment covers one number (`FIRST` = `LAST`, generation 0);
//! what compaction writes covers the numbers of the segments it replaces, with a higher generation. A file that
//! covers another file's numbers with a higher generation has replaced it; so the renaming that gives the new file
//! its name is the moment at which all old ones are void, and a crash leaves either.
//!
//! A file begins with a [`super::head`] and, when nothing will be added to it, ends with an entry that says so. The
//! numbers of the files follow one another without a gap, from 1 on.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use arc_swap::ArcSwap;

use super::entry::{self, Entry};
use super::hash_index::{Location, MAX_SEGMENTS};
pub(super) use super::head::FILE_HEAD;
use super::head::{Format, Head};
use super::private;
use crate::error::Error;

/// Read at once for a lookup; most entries fit.
const GUESS: usize = 1_024;
/// Read at once for a walk.
const CHUNK: usize = 256 * 1_024;

/// A name as the file system shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) last: u32,
    pub(super) first: u32,
    pub(super) generation: u32,
}

impl Name {
    pub(super) fn fresh(number: u32) -> Name {
        Name {
            first: number,
            last: number,
            generation: 0,
        }
    }

    pub(super) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }

    /// The name that a file has; `None` for what is not a file of the log.
    pub(super) fn parse(file: &str) -> Option<Name> {
        Name::numbers(file).filter(|name| name.to_string() == file)
    }

    fn numbers(file: &str) -> Option<Name> {
        let mut parts = file
            .strip_suffix(".log")?
            .splitn(3, '-')
            .map(|part| part.parse().ok());
        Some(Name {
            first: parts.next()??,
            last: parts.next()??,
            generation: parts.next()??,
        })
    }

    /// Whether this file's entries have moved to `other`.
    pub(super) fn is_replaced_by(self, other: Name) -> bool {
        other.generation > self.generation && other.first <= self.first && self.last <= other.last
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:010}-{:010}-{:06}.log",
            self.first, self.last, self.generation
        )
    }
}

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: Name,
    pub(super) slot: u16,
    pub(super) format: Format,
    /// The number of the newest segment when compaction made this one; 0: never compacted.
    pub(super) compacted_at: u32,
    path: PathBuf,
    file: File,
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
        let file = private::create(&path)?;
        file.write_all_at(&Head::encode(name, compacted_at), 0)?;
        file.sync_all()?;
        sync_directory(&path)?;
        let head = Head {
            format: Format::Two,
            compacted_at,
        };
        Ok(Segment::over(path, file, name, slot, head, FILE_HEAD))
    }

    /// Opens a file that exists, to read it and, where `write`, to go on writing it.
    pub(super) fn open(path: PathBuf, name: Name, slot: u16, write: bool) -> Result<Segment, Unopened> {
        let file = OpenOptions::new().read(true).write(write).open(&path)?;
        let length = file.metadata()?.len();
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
        let file = OpenOptions::new().read(true).open(&path)?;
        let length = file.metadata()?.len();
        let head = Head {
            format,
            // So early that no deletion is forgotten for it too soon.
            compacted_at: u32::from(name.generation > 0),
        };
        Ok(Segment::over(path, file, name, 0, head, length))
    }

    fn over(path: PathBuf, file: File, name: Name, slot: u16, head: Head, length: u64) -> Segment {
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
        self.file.set_len(length)?;
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

fn read_some(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<usize> {
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

/// Makes the creation, renaming or removal of a file durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |directory| File::open(directory)?.sync_all())
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

/// Why a walk cannot go on.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file cannot be read; what is in it is not known.
    Io(io::Error),
    /// What was read is not an entry, or not a whole one.
    NoEntry(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => write!(f, "it cannot be read: {error}"),
            Fault::NoEntry(reason) => f.write_str(reason),
        }
    }
}

/// An entry that a walk has come to.
pub(super) struct Step<'a> {
    pub(super) offset: u64,
    /// With padding.
    pub(super) size: u64,
    pub(super) entry: Entry<'a>,
    /// The entry as bytes.
    pub(super) bytes: &'a [u8],
}

/// Walks the entries of a segment in order.
pub(super) struct Walk {
    segment: Arc<Segment>,
    offset: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where in the buffer `offset` is.
    position: usize,
    filled: usize,
}

impl Walk {
    /// From `offset` to the end of what is durable now.
    pub(super) fn new(segment: Arc<Segment>, offset: u64) -> Walk {
        let end = segment.length();
        Walk {
            segment,
            offset,
            end,
            buffer: Vec::new(),
            position: 0,
            filled: 0,
        }
    }

    /// Where the next entry begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at `offset`.
    pub(super) fn go_to(&mut self, offset: u64) {
        self.offset = offset;
        (self.position, self.filled) = (0, 0);
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// What is wrong at [`Walk::offset`], which stays there.
    pub(super) fn next(&mut self) -> Result<Option<Step<'_>>, Fault> {
        if self.offset >= self.end {
            return Ok(None);
        }
        self.fill(entry::HEAD)?;
        let length = entry::length(&self.buffer[self.position..self.filled])
            .filter(|length| self.offset + *length as u64 <= self.end)
            .ok_or_else(|| Fault::NoEntry("no entry here".to_owned()))?;
        let size = entry::padded(length);
        self.fill(length)?;
        let (start, offset) = (self.position, self.offset);
        let bytes = &self.buffer[start..start + length];
        let entry = Entry::decode(bytes).map_err(Fault::NoEntry)?;
        self.position = (start + size).min(self.filled);
        self.offset += size as u64;
        Ok(Some(Step {
            offset,
            size: size as u64,
            entry,
            bytes,
        }))
    }

    /// Makes sure that `length` bytes from `offset` on are in the buffer.
    fn fill(&mut self, length: usize) -> Result<(), Fault> {
        if self.filled - self.position >= length {
            return Ok(());
        }
        self.buffer.copy_within(self.position..self.filled, 0);
        self.filled -= self.position;
        self.position = 0;
        let wanted = length.max(CHUNK);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let from = self.offset + self.filled as u64;
        let got =
            read_some(&self.segment.file, &mut self.buffer[self.filled..wanted], from).map_err(Fault::Io)?;
        self.filled += got;
        if self.filled < length {
            return Err(Fault::NoEntry(format!(
                "the file ends {} bytes into an entry of {length}",
                self.filled
            )));
        }
        Ok(())
    }
}

/// The segments that exist, by slot and in the order of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentList {
    by_slot: Vec<Option<Arc<Segment>>>,
    in_order: Vec<Arc<Segment>>,
}

impl SegmentList {
    /// Oldest first; the last is the one being written.
    pub(super) fn in_order(&self) -> &[Arc<Segment>] {
        &self.in_order
    }

    /// As [`SegmentList::in_order`], without copies whose originals are still there.
    pub(super) fn originals(&self) -> Vec<&Arc<Segment>> {
        let is_copy = |segment: &Segment| {
            self.in_order
                .iter()
                .any(|other| other.name.is_replaced_by(segment.name))
        };
        self.in_order.iter().filter(|segment| !is_copy(segment)).collect()
    }

    pub(super) fn at(&self, location: Location) -> Option<&Arc<Segment>> {
        self.by_slot.get(location.slot())?.as_ref()
    }

    fn add(&mut self, segment: Arc<Segment>) {
        let slot = usize::from(segment.slot);
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        self.by_slot[slot] = Some(segment.clone());
        let position = self.in_order.partition_point(|other| other.name < segment.name);
        self.in_order.insert(position, segment);
    }

    fn remove(&mut self, segment: &Segment) {
        self.by_slot[usize::from(segment.slot)] = None;
        self.in_order.retain(|other| other.slot != segment.slot);
    }
}

/// The list of segments, which readers see without a lock.
#[derive(Debug, Default)]
pub(super) struct Segments {
    list: ArcSwap<SegmentList>,
    /// The slot given out last; slots go round, so that a removed segment's slot rests as long as possible.
    cursor: parking_lot::Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    used: Vec<bool>,
    last: usize,
}

impl Segments {
    pub(super) fn list(&self) -> arc_swap::Guard<Arc<SegmentList>> {
        self.list.load()
    }

    /// A slot that no segment has.
    pub(super) fn take_slot(&self) -> Result<u16, Error> {
        let mut slots = self.cursor.lock();
        slots.used.resize(MAX_SEGMENTS, false);
        let free = (1..=MAX_SEGMENTS)
            .map(|step| (slots.last + step) % MAX_SEGMENTS)
            .find(|slot| !slots.used[*slot]);
        let Some(slot) = free else {
            return Err(Error::Engine(format!(
                "the log has {MAX_SEGMENTS} segments, no more are possible"
            )));
        };
        slots.used[slot] = true;
        slots.last = slot;
        // Below MAX_SEGMENTS, which is 4,096.
        Ok(slot as u16)
    }

    pub(super) fn free_slot(&self, slot: u16) {
        if let Some(used) = self.cursor.lock().used.get_mut(usize::from(slot)) {
            *used = false;
        }
    }

    pub(super) fn add(&self, segment: &Arc<Segment>) {
        self.list.rcu(|list| {
            let mut list = SegmentList::clone(list);
            list.add(segment.clone());
            list
        });
    }

    pub(super) fn remove(&self, segment: &Segment) {
        self.list.rcu(|list| {
            let mut list = SegmentList::clone(list);
            list.remove(segment);
            list
        });
        self.free_slot(segment.slot);
    }
}
