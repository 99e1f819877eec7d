//! A file, written from beginning to end.

use std::path::Path;

use super::atomic::AtomicFile;
use super::directory::{ENTRY, Slot};
use super::header::{HEADER, Header, NUMBERS};
use crate::block::{Entry, OwnedBlock};
use crate::error::Error;
use crate::key::Key;
use crate::sets::{DestinationSet, SetId, Sets};

/// What a finished file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Numbers.
    pub numbers: u64,
    /// Blocks.
    pub blocks: u64,
    /// Destination sets.
    pub sets: usize,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a file of numbers that arrive in ascending order. It holds one block and 32 bytes for each block that is written;
/// the file is there when [`Self::finish`] returns, and not before.
///
/// ```
/// # fn main() -> Result<(), numbers::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("subscribers.num");
/// use numbers::{DestinationSet, Key, Kind, Load, Map, Writer};
/// let mut writer = Writer::create(&path)?;
/// let hss = writer.intern(&DestinationSet::parse("hss1.example,pcrf=pcrf7.example")?)?;
/// writer.push(Key::new(Kind::Imsi, b"001010000000001").unwrap(), hss)?;
/// writer.finish()?;
///
/// let map = Map::open(&path, None, Load::Mapped)?;
/// let found = map.find(Key::new(Kind::Imsi, b"001010000000001").unwrap())?;
/// assert_eq!(map.set(found.unwrap()).unwrap().destination("pcrf"), Some("pcrf7.example"));
/// assert_eq!(map.find(Key::new(Kind::Imsi, b"001010000000002").unwrap())?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    file: AtomicFile,
    sets: Sets,
    /// The block that is being filled.
    block: u64,
    entries: Vec<Entry>,
    last: Option<Key>,
    index: Vec<u8>,
    offset: u64,
    numbers: u64,
}

impl Writer {
    /// Begins a file that will be at `path`, in place of one that is there.
    ///
    /// # Errors
    /// When the system refuses, or another process writes the same file.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::with_sets(path, Sets::default())
    }

    pub(crate) fn with_sets(path: &Path, sets: Sets) -> Result<Self, Error> {
        let mut file = AtomicFile::create(path)?;
        // The header's place; it is written last.
        file.write(&[0; HEADER])?;
        Ok(Self {
            file,
            sets,
            block: 0,
            entries: Vec::new(),
            last: None,
            index: Vec::new(),
            offset: HEADER as u64,
            numbers: 0,
        })
    }

    /// The identity of a destination set in this file.
    ///
    /// # Errors
    /// When there are 65,535 others.
    pub fn intern(&mut self, set: &DestinationSet) -> Result<SetId, Error> {
        Ok(self.sets.intern(set)?)
    }

    /// Adds a number, whose set [`Self::intern`] has returned.
    ///
    /// # Errors
    /// When the key is not above all before it, or the system refuses.
    pub fn push(&mut self, key: Key, set: SetId) -> Result<(), Error> {
        match self.last {
            Some(before) if before == key => return Err(Error::Twice(key)),
            Some(before) if before > key => return Err(Error::Order { key, before }),
            _ => {}
        }
        self.last = Some(key);
        if key.block() != self.block {
            self.flush()?;
            self.block = key.block();
        }
        self.entries.push((key.low(), set.0));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let encoded = OwnedBlock::encode(&self.entries);
        self.entries.clear();
        self.push_block(self.block, &encoded)
    }

    /// Adds a block as it is, above all before it.
    pub(crate) fn push_block(&mut self, block: u64, encoded: &OwnedBlock) -> Result<(), Error> {
        let sum = crc32c::crc32c(&encoded.bytes);
        self.push_bytes(block, encoded.head, &encoded.bytes, sum)
    }

    pub(crate) fn push_bytes(
        &mut self,
        block: u64,
        head: crate::block::Head,
        bytes: &[u8],
        sum: u32,
    ) -> Result<(), Error> {
        // A block has 65,536 numbers of 6 bytes at most.
        let length = bytes.len() as u32;
        self.index
            .extend(Slot::encode(block, self.offset, head, length, sum));
        self.file.write(bytes)?;
        let filling = bytes.len().next_multiple_of(8) - bytes.len();
        self.file.write(&[0; 8][..filling])?;
        self.offset += (bytes.len() + filling) as u64;
        self.numbers += u64::from(head.count);
        Ok(())
    }

    /// Writes index and header, syncs the file and gives it its name.
    ///
    /// # Errors
    /// When the system refuses; a file that was there before is as it was.
    pub fn finish(self) -> Result<Written, Error> {
        self.finish_as(0, 0)
    }

    /// As [`Self::finish`], of a state that has the changes up to a position of the journal.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_at(self, position: u64) -> Result<Written, Error> {
        self.finish_as(0, position)
    }

    /// As [`Self::finish`], for the changed blocks of a base, up to a position of the journal.
    pub(crate) fn finish_as(mut self, base: u64, position: u64) -> Result<Written, Error> {
        self.flush()?;
        let blocks = (self.index.len() / ENTRY) as u64;
        let directory_bytes = self.index.len() as u64;
        self.index.extend(self.sets.encode());
        let index_sum = crc32c::crc32c(&self.index);
        let mut header = Header {
            numbers: self.numbers,
            index_offset: self.offset,
            index_bytes: self.index.len() as u64,
            directory_bytes,
            index_sum,
            // The index has the checksum of each block.
            identity: u64::from(index_sum) << 32 | (self.numbers ^ self.offset ^ position) & 0xffff_ffff,
            base,
            position,
        };
        // 0 is the identity of no file.
        header.identity = header.identity.max(1);
        self.file.write(&self.index)?;
        self.file.write(&self.index)?;
        let encoded = header.encode(NUMBERS);
        self.file.write(&encoded)?;
        self.file.commit(&encoded)?;
        Ok(Written {
            numbers: self.numbers,
            blocks,
            sets: self.sets.all().len(),
            bytes: self.offset + 2 * header.index_bytes + HEADER as u64,
        })
    }
}
