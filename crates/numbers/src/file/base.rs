//! A file as it is read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use super::directory::{DAMAGED, Directory, SOUND, Slot};
use super::header::{HEADER, Header, NUMBERS, NoHeader, VERSION};
use crate::block::{Block, Entry};
use crate::error::{Damaged, Error};
use crate::key::Key;
use crate::memory::{Bytes, Load, prefetch};
use crate::sets::{SetId, Sets};

/// What a look-up found.
pub(crate) type Resolution = Result<Option<SetId>, Damaged>;

/// A file of numbers, immutable.
#[derive(Debug)]
pub(crate) struct Base {
    path: PathBuf,
    header: Header,
    bytes: Bytes,
    directory: Directory,
    sets: usize,
    warnings: Vec<String>,
}

impl Base {
    /// Opens a file: reads header and index, and no block.
    pub(crate) fn open(path: &Path, load: Load) -> Result<(Self, Sets), Error> {
        let mut warnings = Vec::new();
        let (header, bytes) = load_file(path, NUMBERS, load, &mut warnings)?;
        let damaged = || Error::Index {
            path: path.to_owned(),
            part: "index",
        };
        let index = index(&header, bytes.as_slice(), &mut warnings);
        let decoded = index.and_then(|(directory, sets)| {
            Some((
                Directory::decode(directory, header.index_offset)?,
                Sets::decode(sets)?,
            ))
        });
        let (directory, sets) = decoded.ok_or_else(damaged)?;
        let base = Self {
            path: path.to_owned(),
            header,
            bytes,
            directory,
            sets: sets.all().len(),
            warnings,
        };
        Ok((base, sets))
    }

    /// A base without a file, a number or a set.
    pub(crate) fn empty() -> Self {
        Self {
            path: PathBuf::new(),
            header: Header::default(),
            bytes: Bytes::Empty,
            directory: Directory::default(),
            sets: 0,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn find(&self, key: Key) -> Resolution {
        match self.directory.locate(key.block()) {
            Some(place) => self.find_at(place, key),
            None => Ok(None),
        }
    }

    fn find_at(&self, place: usize, key: Key) -> Resolution {
        match self.block(place)?.find(key.low()) {
            // Only bytes that were forged with their checksum name a set that the file has not.
            Some(set) if usize::from(set) >= self.sets => Err(self.damaged(place)),
            Some(set) => Ok(Some(SetId(set))),
            None => Ok(None),
        }
    }

    /// Finds up to `N` keys at a time, each step for all of them before the next: the cache misses of one key pass while
    /// those of the others do.
    pub(crate) fn find_all<const N: usize>(&self, keys: &[Key], found: &mut impl FnMut(Resolution)) {
        for keys in keys.chunks(N) {
            let mut places = [None; N];
            for (key, place) in keys.iter().zip(&mut places) {
                *place = self.directory.locate(key.block());
                place
                    .iter()
                    .for_each(|place| prefetch(&self.directory.slots, *place));
            }
            let bytes = self.bytes.as_slice();
            for (key, place) in keys.iter().zip(places) {
                if let Some((slot, block)) = self.unchecked(place) {
                    prefetch(bytes, slot.offset as usize + block.signpost(key.low()));
                }
            }
            for (key, place) in keys.iter().zip(places) {
                if let Some((slot, block)) = self.unchecked(place) {
                    let cell = slot.offset as usize + block.cell(key.low());
                    prefetch(bytes, cell);
                    prefetch(bytes, cell + 64);
                }
            }
            for (key, place) in keys.iter().zip(places) {
                found(place.map_or(Ok(None), |place| self.find_at(place, *key)));
            }
        }
    }

    /// A block for prefetch, whatever its checksum says.
    fn unchecked(&self, place: Option<usize>) -> Option<(&Slot, Block<'_>)> {
        let slot = self.directory.slots.get(place?)?;
        Some((slot, self.view(slot)))
    }

    fn view(&self, slot: &Slot) -> Block<'_> {
        let begin = slot.offset as usize;
        let bytes = self.bytes.as_slice().get(begin..begin + slot.length as usize);
        Block {
            head: slot.head,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// A block whose checksum fits; it is computed at the first use of the block.
    fn block(&self, place: usize) -> Result<Block<'_>, Damaged> {
        let slot = &self.directory.slots[place];
        let block = self.view(slot);
        match slot.state.load(Relaxed) {
            SOUND => Ok(block),
            DAMAGED => Err(self.damaged(place)),
            // Several threads may compute it, with the same result.
            _ if crc32c::crc32c(block.bytes) == slot.sum => {
                slot.state.store(SOUND, Relaxed);
                Ok(block)
            }
            _ => Err(self.damaged(place)),
        }
    }

    fn damaged(&self, place: usize) -> Damaged {
        let slot = &self.directory.slots[place];
        slot.state.store(DAMAGED, Relaxed);
        Damaged {
            block: self.directory.blocks[place],
            offset: slot.offset,
        }
    }

    /// The blocks in ascending order, each with its number and checksum, or that it is damaged.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, u32, Result<Block<'_>, Damaged>)> {
        let places = self.directory.blocks.iter().enumerate();
        places.map(|(place, block)| (*block, self.directory.slots[place].sum, self.block(place)))
    }

    /// All entries of a block; none of one that is absent.
    pub(crate) fn entries(&self, block: u64) -> Result<Vec<Entry>, Damaged> {
        let Some(place) = self.directory.locate(block) else {
            return Ok(Vec::new());
        };
        let entries = self.block(place)?.entries();
        // Bytes that were forged with their checksum do not decode, or name sets that the file has not.
        let known = |entries: &Vec<Entry>| entries.iter().all(|(_, set)| usize::from(*set) < self.sets);
        entries.filter(known).ok_or_else(|| self.damaged(place))
    }

    /// Whether a block has a number in a range of its low bits.
    pub(crate) fn has_between(&self, block: u64, from: u16, to: u16) -> Result<bool, Damaged> {
        let Some(place) = self.directory.locate(block) else {
            return Ok(false);
        };
        let found = self.block(place)?.has_between(from, to);
        found.ok_or_else(|| self.damaged(place))
    }

    /// The block of a number, with the offset of its bytes.
    pub(crate) fn block_of(&self, block: u64) -> Option<(u64, Result<Block<'_>, Damaged>)> {
        let place = self.directory.locate(block)?;
        Some((self.directory.slots[place].offset, self.block(place)))
    }

    /// How many numbers a block has, by its head.
    pub(crate) fn count_of(&self, block: u64) -> u64 {
        let slot = self
            .directory
            .locate(block)
            .and_then(|place| self.directory.slots.get(place));
        slot.map_or(0, |slot| u64::from(slot.head.count))
    }

    /// The numbers of all its blocks, in ascending order.
    pub(crate) fn all_blocks(&self) -> &[u64] {
        &self.directory.blocks
    }

    /// The numbers of its blocks in a range, in ascending order; none of them is empty.
    pub(crate) fn blocks_between(&self, first: u64, last: u64) -> &[u64] {
        let blocks = &self.directory.blocks;
        let begin = blocks.partition_point(|block| *block < first);
        let rest = blocks.get(begin..).unwrap_or_default();
        rest.get(..rest.partition_point(|block| *block <= last))
            .unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn identity(&self) -> u64 {
        self.header.identity
    }

    /// The identity of the base that this file changes; `None` for a base.
    pub(crate) fn changes_of(&self) -> Option<u64> {
        Some(self.header.base).filter(|base| *base != 0)
    }

    pub(crate) fn position(&self) -> u64 {
        self.header.position
    }

    pub(crate) fn block_count(&self) -> usize {
        self.directory.blocks.len()
    }

    pub(crate) fn numbers(&self) -> u64 {
        self.header.numbers
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.bytes.as_slice().len() as u64
    }

    pub(crate) fn directory_memory(&self) -> usize {
        self.directory.memory()
    }

    /// Damage that costs no number: a copy of header or index.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Opens a file of the length that its header has.
pub(super) fn load_file(
    path: &Path,
    magic: &[u8; 8],
    load: Load,
    warnings: &mut Vec<String>,
) -> Result<(Header, Bytes), Error> {
    let file = File::open(path).map_err(Error::at(path))?;
    let length = file.metadata().map_err(Error::at(path))?.len();
    let header = header((path, magic), &file, length, warnings)?;
    let expected = header.file_bytes();
    if expected != Some(length) {
        return Err(Error::Length {
            path: path.to_owned(),
            found: length,
            expected: expected.unwrap_or(u64::MAX),
        });
    }
    // The file has this length, so it is a length of memory as well on machines of 64 bits.
    let bytes = Bytes::load(&file, length as usize, load).map_err(Error::at(path))?;
    Ok((header, bytes))
}

/// The header, from the beginning of the file or from its end.
fn header(
    (path, magic): (&Path, &[u8; 8]),
    file: &File,
    length: u64,
    warnings: &mut Vec<String>,
) -> Result<Header, Error> {
    let read = |offset: Option<u64>| {
        let mut bytes = [0; HEADER];
        let read = offset.map(|offset| file.read_exact_at(&mut bytes, offset));
        match read {
            Some(Ok(())) => Header::decode(&bytes, magic),
            _ => Err(NoHeader::Foreign),
        }
    };
    let (first, second) = (read(Some(0)), read(length.checked_sub(HEADER as u64)));
    match (first, second) {
        (Ok(first), Ok(second)) if first == second => Ok(first),
        (Ok(first), _) => {
            // A file that is cut is one of another length.
            warnings.push(format!("{}: the header's second copy is damaged", path.display()));
            Ok(first)
        }
        (Err(NoHeader::Version(found)), _) | (_, Err(NoHeader::Version(found))) => Err(Error::Version {
            path: path.to_owned(),
            found,
            expected: VERSION,
        }),
        (Err(_), Ok(second)) => {
            warnings.push(format!("{}: the header's first copy is damaged", path.display()));
            Ok(second)
        }
        (Err(NoHeader::Foreign), Err(NoHeader::Foreign)) => Err(Error::Foreign(path.to_owned())),
        _ => Err(Error::Index {
            path: path.to_owned(),
            part: "header",
        }),
    }
}

/// The bytes of directory and sets, from the first copy of the index whose checksum fits.
pub(super) fn index<'b>(
    header: &Header,
    bytes: &'b [u8],
    warnings: &mut Vec<String>,
) -> Option<(&'b [u8], &'b [u8])> {
    let copy = |number: u64| {
        let begin = header
            .index_offset
            .checked_add(number.checked_mul(header.index_bytes)?)?;
        let begin = usize::try_from(begin).ok()?;
        let copy = bytes.get(begin..begin.checked_add(usize::try_from(header.index_bytes).ok()?)?)?;
        (crc32c::crc32c(copy) == header.index_sum).then_some(copy)
    };
    let (first, second) = (copy(0), copy(1));
    for (copy, name) in [(first, "first"), (second, "second")] {
        if copy.is_none() {
            warnings.push(format!("the index's {name} copy is damaged"));
        }
    }
    first
        .or(second)?
        .split_at_checked(usize::try_from(header.directory_bytes).ok()?)
}
