//! Segments: the files of the log.
//!
//! A file is named `FIRST-LAST-GENERATION.log`. A new segment covers one number (`FIRST` = `LAST`, generation 0);
//! what compaction writes covers the numbers of the segments it replaces, with a higher generation. A file that
//! covers another file's numbers with a higher generation has replaced it; so the renaming that gives the new file
//! its name is the moment at which all old ones are void, and a crash leaves either.
//!
//! A file begins with [`FILE_HEAD`] bytes: magic, format, and at which segment the log stood when compaction made
//! it (0: never compacted).

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
use crate::error::Error;

/// Bytes before the first entry.
pub(super) const FILE_HEAD: u64 = 16;
const MAGIC: &[u8; 8] = b"sbxlog\x00\x01";
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
        directory.join(format!(
            "{:010}-{:010}-{:06}.log",
            self.first, self.last, self.generation
        ))
    }

    pub(super) fn parse(file: &str) -> Option<Name> {
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

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: Name,
    pub(super) slot: u16,
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
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let mut head = [0; FILE_HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&compacted_at.to_le_bytes());
        file.write_all_at(&head, 0)?;
        file.sync_all()?;
        sync_directory(&path)?;
        Ok(Segment::over(path, file, name, slot, compacted_at, FILE_HEAD))
    }

    /// Opens a file that exists; `None` when it is not a segment (its head was never written whole).
    pub(super) fn open(path: PathBuf, name: Name, slot: u16) -> io::Result<Option<Segment>> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let length = file.metadata()?.len();
        let mut head = [0; FILE_HEAD as usize];
        if length < FILE_HEAD {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        if &head[..8] != MAGIC {
            return Ok(None);
        }
        let compacted_at = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        Ok(Some(Segment::over(path, file, name, slot, compacted_at, length)))
    }

    fn over(path: PathBuf, file: File, name: Name, slot: u16, compacted_at: u32, length: u64) -> Segment {
        Segment {
            name,
            slot,
            compacted_at,
            path,
            file,
            length: AtomicU64::new(length),
            live: AtomicU64::new(0),
            newest: AtomicU64::new(0),
        }
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

    /// The next entry, its offset and its size with padding; `None` at the end.
    ///
    /// # Errors
    /// What is wrong at [`Walk::offset`].
    pub(super) fn next(&mut self) -> Result<Option<(u64, u64, Entry<'_>)>, String> {
        if self.offset >= self.end {
            return Ok(None);
        }
        self.fill(entry::HEAD)?;
        let length = entry::length(&self.buffer[self.position..self.filled])
            .filter(|length| self.offset + *length as u64 <= self.end)
            .ok_or_else(|| "no entry here".to_owned())?;
        let size = entry::padded(length);
        self.fill(length)?;
        let (start, offset) = (self.position, self.offset);
        self.position = (start + size).min(self.filled);
        self.offset += size as u64;
        let entry = Entry::decode(&self.buffer[start..start + length])?;
        Ok(Some((offset, size as u64, entry)))
    }

    /// Makes sure that `length` bytes from `offset` on are in the buffer.
    fn fill(&mut self, length: usize) -> Result<(), String> {
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
        let got = read_some(&self.segment.file, &mut self.buffer[self.filled..wanted], from)
            .map_err(|error| error.to_string())?;
        self.filled += got;
        if self.filled < length {
            return Err(format!(
                "the file ends {} bytes into an entry of {length}",
                self.filled
            ));
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
