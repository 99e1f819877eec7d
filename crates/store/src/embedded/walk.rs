//! The entries of a segment, one after the other.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::entry::{self, Entry};
use super::segment::Segment;

/// Read at once.
const CHUNK: usize = 256 * 1_024;

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
        let got = self
            .segment
            .read_bytes(&mut self.buffer[self.filled..wanted], from)
            .map_err(Fault::Io)?;
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
