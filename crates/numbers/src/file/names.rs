//! A file of names with their destination sets: sorted, in pages, each name as the difference from the one before it.
//!
//! Header, pages, index, and both again, as in a file of numbers. A page has 128 names; a name is the count of bytes that it shares with the
//! beginning of the one before it, the count of those in its middle that it does not share, its set (2 bytes), and these; the rest is the end of
//! the one before it. A name of another length has a 0 in place of the second count, and then that count and the length of the end. The index has for each page
//! its offset (8), its CRC-32C (4) and the position of its first name (4), then these names, then the sets. A look-up searches the
//! index by bisection and reads one page; names are compared whole.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use super::atomic::AtomicFile;
use super::base::{index, load_file};
use super::directory::{DAMAGED, SOUND};
use super::header::{HEADER, Header, NAMES};
use crate::error::Error;
use crate::memory::{Bytes, Load};
use crate::names::{MOST_NAME_BYTES, NameError};
use crate::sets::{DestinationSet, Sets};

/// Names of a page.
const PAGE: usize = 128;
/// Bytes of a page in the index.
const ENTRY: usize = 16;

/// A page whose bytes are not those that were written. Its own names are refused, all others are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page at byte {offset} is damaged; its names are refused")]
pub struct DamagedNames {
    /// Where it begins in its file.
    pub offset: u64,
}

/// Writes a file of names, which ascend; in bounded memory but for the index, about a byte a name.
#[derive(Debug)]
pub struct NameWriter {
    path: PathBuf,
    file: AtomicFile,
    sets: Sets,
    page: Vec<u8>,
    /// Names of the page.
    count: usize,
    last: Vec<u8>,
    entries: Vec<u8>,
    /// The first name of each page.
    firsts: Vec<u8>,
    offset: u64,
    names: u64,
}

impl NameWriter {
    /// Begins a file that will be at `path`, in place of one that is there.
    ///
    /// # Errors
    /// When the system refuses, or another process writes the same file.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let mut file = AtomicFile::create(path)?;
        // The header's place; it is written last.
        file.write(&[0; HEADER])?;
        Ok(Self {
            path: path.to_owned(),
            file,
            sets: Sets::default(),
            page: Vec::new(),
            count: 0,
            last: Vec::new(),
            entries: Vec::new(),
            firsts: Vec::new(),
            offset: HEADER as u64,
            names: 0,
        })
    }

    /// Adds a name with its set.
    ///
    /// # Errors
    /// When the name is not above all before it, is empty or too long, there are 65,535 other sets, or the system refuses.
    pub fn push(&mut self, name: &[u8], set: &DestinationSet) -> Result<(), Error> {
        if !(1..=MOST_NAME_BYTES).contains(&name.len()) {
            return Err(NameError::Length(name.len()).into());
        }
        if self.last.as_slice() >= name {
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let (name, before) = (text(name), text(&self.last));
            return Err(NameError::Order { name, before }.into());
        }
        let set = self.sets.intern(set)?;
        if self.count == PAGE {
            self.flush()?;
        }
        let (begin, end) = match self.count {
            0 => (0, 0),
            _ => shared(&self.last, name),
        };
        if self.count == 0 {
            self.firsts.extend_from_slice(name);
        }
        let others = name.get(begin..name.len() - end).unwrap_or_default();
        // A name has at most 255 bytes.
        let bytes = |lengths: [usize; 2]| lengths.map(|length| length as u8);
        if self.count > 0 && name.len() == self.last.len() {
            self.page.extend(bytes([begin, others.len()]));
        } else {
            self.page.extend(bytes([begin, 0]));
            self.page.extend(bytes([others.len(), end]));
        }
        self.page.extend((set.index() as u16).to_le_bytes());
        self.page.extend_from_slice(others);
        self.last.clear();
        self.last.extend_from_slice(name);
        self.count += 1;
        self.names += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Some(first) = self.first_of_page() else {
            return Ok(());
        };
        let at = u32::try_from(self.firsts.len() - first);
        let at = at.map_err(|_| Error::at(&self.path)(std::io::Error::other("too many names for a file")))?;
        self.entries.extend(self.offset.to_le_bytes());
        self.entries.extend(crc32c::crc32c(&self.page).to_le_bytes());
        self.entries.extend(at.to_le_bytes());
        self.file.write(&self.page)?;
        self.offset += self.page.len() as u64;
        self.page.clear();
        self.count = 0;
        Ok(())
    }

    /// Bytes of the first name of the page; none: the page is empty.
    fn first_of_page(&self) -> Option<usize> {
        self.page.get(2).map(|length| usize::from(*length))
    }

    /// How many names were added.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.names
    }

    /// Whether none was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.names == 0
    }

    /// Writes index and header, syncs the file and gives it its name; returns the count of names.
    ///
    /// # Errors
    /// When the system refuses; a file that was there before is as it was.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        let pages = (self.entries.len() / ENTRY) as u64;
        let mut index = pages.to_le_bytes().to_vec();
        index.append(&mut self.entries);
        index.append(&mut self.firsts);
        let directory_bytes = index.len() as u64;
        index.extend(self.sets.encode());
        let header = Header {
            numbers: self.names,
            index_offset: self.offset,
            index_bytes: index.len() as u64,
            directory_bytes,
            index_sum: crc32c::crc32c(&index),
            ..Header::default()
        };
        let header = header.encode(NAMES);
        self.file.write(&index)?;
        self.file.write(&index)?;
        self.file.write(&header)?;
        self.file.commit(&header)?;
        Ok(self.names)
    }
}

/// Bytes that a name shares with the beginning and with the end of the one before it, none of them twice.
fn shared(before: &[u8], name: &[u8]) -> (usize, usize) {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let begin = before.iter().zip(name).take_while(same).count();
    let most = before.len().min(name.len()) - begin;
    let ends = before.iter().rev().zip(name.iter().rev()).take(most);
    (begin, ends.take_while(same).count())
}

/// A file of names, immutable.
pub struct NameFile {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    /// Where the index begins whose checksum fits.
    index: usize,
    states: Box<[AtomicU8]>,
    sets: Vec<Arc<DestinationSet>>,
    warnings: Vec<String>,
}

impl NameFile {
    /// Opens a file: reads header and index, and no page.
    ///
    /// # Errors
    /// When the file is of another kind or version, cut, or damaged in both copies of its header or index.
    pub fn open(path: &Path, load: Load) -> Result<Self, Error> {
        let mut warnings = Vec::new();
        let (header, bytes) = load_file(path, NAMES, load, &mut warnings)?;
        let damaged = || Error::Index {
            path: path.to_owned(),
            part: "index",
        };
        let all = bytes.as_slice();
        let (directory, sets) = index(&header, all, &mut warnings).ok_or_else(damaged)?;
        let pages = pages_of(directory, header.index_offset).ok_or_else(damaged)?;
        let sets = Sets::decode(sets).ok_or_else(damaged)?;
        // A part of the file.
        let index = directory.as_ptr().addr() - all.as_ptr().addr();
        Ok(Self {
            path: path.to_owned(),
            header,
            index,
            states: (0..pages).map(|_| AtomicU8::default()).collect(),
            sets: sets.all().to_vec(),
            bytes,
            warnings,
        })
    }

    /// The destination set of a name, compared byte by byte; `None` when it is unknown.
    ///
    /// # Errors
    /// When the page that may have it is damaged.
    pub fn find(&self, name: &[u8]) -> Result<Option<&Arc<DestinationSet>>, DamagedNames> {
        let (mut low, mut high) = (0, self.states.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.first(middle) <= name {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let Some(page) = low.checked_sub(1) else {
            return Ok(None);
        };
        let mut found = Ok(None);
        self.each_of(page, |one, set| match one.cmp(name) {
            Ordering::Less => true,
            Ordering::Equal => {
                found = Ok(Some(set));
                false
            }
            Ordering::Greater => false,
        })?;
        found
    }

    /// Calls `each` for every name with its set, in ascending order.
    ///
    /// # Errors
    /// Those of `each`; a damaged page as one of them.
    pub fn for_each<E: From<DamagedNames>>(
        &self,
        mut each: impl FnMut(&[u8], &Arc<DestinationSet>) -> Result<(), E>,
    ) -> Result<(), E> {
        for page in 0..self.states.len() {
            let mut outcome = Ok(());
            self.each_of(page, |name, set| {
                outcome = each(name, set);
                outcome.is_ok()
            })?;
            outcome?;
        }
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.numbers as usize
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.header.numbers == 0
    }

    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.as_slice().len()
    }

    /// Damage that costs no name: a copy of header or index.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The index entry of a page: where it begins, its checksum, where its first name is.
    fn entry(&self, page: usize) -> (u64, u32, usize) {
        let begin = self.index + size_of::<u64>() + page * ENTRY;
        let entry = self.bytes.as_slice().get(begin..begin + ENTRY);
        // The entries of all pages were checked when the file was opened.
        entry.map_or((0, 0, 0), decoded)
    }

    /// The first name of a page.
    fn first(&self, page: usize) -> &[u8] {
        let firsts = self.index + size_of::<u64>() + self.states.len() * ENTRY;
        let end = match page + 1 < self.states.len() {
            true => firsts + self.entry(page + 1).2,
            false => self.index + self.header.directory_bytes as usize,
        };
        let name = self.bytes.as_slice().get(firsts + self.entry(page).2..end);
        name.unwrap_or_default()
    }

    /// Calls `each` for the names of a page until it is false. The checksum is computed at the first use of the page.
    fn each_of<'f>(
        &'f self,
        page: usize,
        mut each: impl FnMut(&[u8], &'f Arc<DestinationSet>) -> bool,
    ) -> Result<(), DamagedNames> {
        let (offset, sum, _) = self.entry(page);
        let damaged = || {
            if let Some(state) = self.states.get(page) {
                state.store(DAMAGED, Relaxed);
            }
            DamagedNames { offset }
        };
        let end = match page + 1 < self.states.len() {
            true => self.entry(page + 1).0,
            false => self.header.index_offset,
        };
        let bytes = self.bytes.as_slice().get(offset as usize..end as usize);
        let bytes = bytes.ok_or_else(damaged)?;
        let state = self.states.get(page).ok_or_else(damaged)?;
        match state.load(Relaxed) {
            SOUND => {}
            DAMAGED => return Err(damaged()),
            // Several threads may compute it, with the same result.
            _ if crc32c::crc32c(bytes) == sum => state.store(SOUND, Relaxed),
            _ => return Err(damaged()),
        }
        // Only bytes that were forged with their checksum do not decode.
        self.decode(bytes, &mut each).ok_or_else(damaged)
    }

    fn decode<'f>(
        &'f self,
        mut rest: &[u8],
        each: &mut impl FnMut(&[u8], &'f Arc<DestinationSet>) -> bool,
    ) -> Option<()> {
        let (mut name, mut length) = ([0; MOST_NAME_BYTES], 0_usize);
        while let [begin, others, behind @ ..] = rest {
            let begin = usize::from(*begin);
            let (others, end, behind) = match (others, behind) {
                (0, [others, end, behind @ ..]) => (usize::from(*others), usize::from(*end), behind),
                (0, _) => return None,
                (others, behind) => {
                    let others = usize::from(*others);
                    (others, length.checked_sub(begin + others)?, behind)
                }
            };
            let ([low, high], behind) = behind.split_first_chunk::<2>()?;
            let (new, next) = behind.split_at_checked(others)?;
            let whole = begin + others + end;
            if begin > length || end > length || whole > MOST_NAME_BYTES {
                return None;
            }
            name.copy_within(length - end..length, begin + others);
            name.get_mut(begin..begin + others)?.copy_from_slice(new);
            length = whole;
            let set = self.sets.get(usize::from(u16::from_le_bytes([*low, *high])))?;
            if !each(name.get(..length)?, set) {
                return Some(());
            }
            rest = next;
        }
        rest.is_empty().then_some(())
    }
}

impl fmt::Debug for NameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "NameFile({}: {} in {} bytes)",
            self.path.display(),
            self.len(),
            self.bytes()
        )
    }
}

fn decoded(entry: &[u8]) -> (u64, u32, usize) {
    let word = |from: usize, bytes: usize| {
        let part = entry.get(from..from + bytes).unwrap_or_default();
        part.iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    (word(0, 8), word(8, 4) as u32, word(12, 4) as usize)
}

/// How many pages a directory has, all of which lie before `end` and ascend; `None` where it is none.
fn pages_of(directory: &[u8], end: u64) -> Option<usize> {
    let (count, rest) = directory.split_first_chunk::<8>()?;
    let pages = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (entries, firsts) = rest.split_at_checked(pages.checked_mul(ENTRY)?)?;
    let (mut offset, mut first) = (HEADER as u64, 0);
    for entry in entries.chunks_exact(ENTRY) {
        let (at, _, name) = decoded(entry);
        if at < offset || at > end || name < first || name > firsts.len() {
            return None;
        }
        (offset, first) = (at, name);
    }
    Some(pages)
}
