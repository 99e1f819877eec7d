//! The mark: up to where the log is known to be on the disk.
//!
//! After a crash, bytes at the end of the log that cannot be read are either a write that was never acknowledged,
//! which may go, or acknowledged data that is damaged, which may not. The mark tells them apart: everything below
//! it was flushed before the mark was written, so it must be readable.
//!
//! The mark stands in a small file, `store.mark`, and is written after each flush and before the writes of the
//! flush are acknowledged. It is not flushed itself: a killed process leaves it with the operating system. After a
//! power failure it may be older than what was acknowledged; then the head of the next group in the log
//! ([`super::entry::Note`]), which is flushed with that group, says for all groups before it what the mark said.
//! What remains is the last group before a power failure. It is on the disk whole and is read as such; should it be
//! damaged as well, within the second until the mark is flushed in a quiet moment ([`super::writer`]), it is
//! taken for torn, and kept aside.
//!
//! The file has two slots, each in a block of its own and with a checksum, which are written in turn.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};
use crate::error::Error;

/// Name of the file.
pub(super) const MARK: &str = "store.mark";
const MAGIC: &[u8; 8] = b"sbxmark\x01";
/// A slot: magic, sequence (u64), segment (u32), nothing (u32), offset (u64), checksum of all before (u32).
const SLOT: usize = 36;
/// From one slot to the next.
const BLOCK: u64 = 4_096;

/// A place in the log. Everything before it is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// Number of the segment; 0: none was ever begun.
    pub(super) segment: u32,
    pub(super) offset: u64,
}

impl Mark {
    fn encode(self, sequence: u64) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        slot[..8].copy_from_slice(MAGIC);
        slot[8..16].copy_from_slice(&sequence.to_le_bytes());
        slot[16..20].copy_from_slice(&self.segment.to_le_bytes());
        slot[24..32].copy_from_slice(&self.offset.to_le_bytes());
        let checksum = crc32fast::hash(&slot[..32]);
        slot[32..].copy_from_slice(&checksum.to_le_bytes());
        slot
    }

    fn decode(slot: &[u8]) -> Option<(u64, Mark)> {
        let (body, checksum) = slot.first_chunk::<SLOT>()?.split_at(32);
        if &body[..8] != MAGIC || crc32fast::hash(body).to_le_bytes() != checksum {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk::<8>()?));
        let segment = u32::from_le_bytes(*body.get(16..)?.first_chunk::<4>()?);
        let offset = number(24)?;
        Some((number(8)?, Mark { segment, offset }))
    }
}

/// What the file says; `None` when there is none.
///
/// # Errors
/// When it cannot be read, or neither slot is whole.
pub(super) fn read(directory: &Path) -> Result<Option<Mark>, Error> {
    let path = directory.join(MARK);
    match std::fs::read(&path) {
        Ok(bytes) => match newest(&bytes) {
            Some((_, mark)) => Ok(Some(mark)),
            None => Err(super::files::refuse(
                &path,
                0,
                "it does not say up to where the log is on the disk",
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(super::files::failed(&path, error)),
    }
}

fn newest(bytes: &[u8]) -> Option<(u64, Mark)> {
    let slots = [bytes, bytes.get(BLOCK as usize..).unwrap_or_default()];
    let whole = slots.into_iter().filter_map(Mark::decode);
    whole.max_by_key(|(sequence, _)| *sequence)
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: Disk,
    sequence: u64,
    mark: Mark,
    /// Written since it was flushed.
    dirty: bool,
}

impl MarkFile {
    /// Writes the file so that it says `mark`, durably, in place of any that is there.
    pub(super) fn create(directory: &Path, mark: Mark) -> io::Result<MarkFile> {
        let path = directory.join(MARK);
        let temporary: PathBuf = directory.join("store.mark.tmp");
        let file = Disk::create(&temporary)?;
        file.write_all_at(&[0; 2 * BLOCK as usize], 0)?;
        let mut written = MarkFile {
            file,
            sequence: 0,
            mark,
            dirty: true,
        };
        written.settle(mark)?;
        disk::rename(&temporary, &path)?;
        disk::sync_directory(&path)?;
        Ok(written)
    }

    /// Opens the file, which is there and says something.
    pub(super) fn open(directory: &Path) -> io::Result<MarkFile> {
        let path = directory.join(MARK);
        let nothing = || io::Error::new(io::ErrorKind::InvalidData, "neither slot is whole");
        let (sequence, mark) = newest(&std::fs::read(&path)?).ok_or_else(nothing)?;
        Ok(MarkFile {
            file: Disk::open(&path, true)?,
            sequence,
            mark,
            dirty: true,
        })
    }

    /// The mark as it was written last.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Whether [`MarkFile::settle`] has something to do.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Writes the mark, not flushed.
    pub(super) fn set(&mut self, mark: Mark) -> io::Result<()> {
        let sequence = self.sequence + 1;
        self.file
            .write_all_at(&mark.encode(sequence), sequence % 2 * BLOCK)?;
        self.sequence = sequence;
        self.mark = mark;
        self.dirty = true;
        Ok(())
    }

    /// Writes the mark to both slots and flushes it.
    pub(super) fn settle(&mut self, mark: Mark) -> io::Result<()> {
        self.set(mark)?;
        self.set(mark)?;
        self.file.sync_data()?;
        self.dirty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_the_whole_slots_counts() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        let place = |offset| Mark { segment: 3, offset };
        let mut file = MarkFile::create(directory.path(), place(16)).unwrap();
        file.set(place(100)).unwrap();
        file.set(place(200)).unwrap();
        assert_eq!(read(directory.path()).unwrap(), Some(place(200)));
        let path = directory.path().join(MARK);
        let whole = std::fs::read(&path).unwrap();
        let (one, other) = (
            Mark::decode(&whole).unwrap(),
            Mark::decode(&whole[4_096..]).unwrap(),
        );
        let (newer, older) = if one.0 > other.0 {
            (0, other.1)
        } else {
            (4_096, one.1)
        };
        for bit in 0..SLOT * 8 {
            let mut damaged = whole.clone();
            damaged[newer + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(older), "bit {bit}");
        }
        std::fs::write(&path, [0; 64]).unwrap();
        let said = read(directory.path()).unwrap_err().to_string();
        assert!(said.contains("store.mark") && said.contains("byte 0"), "{said}");
    }
}
