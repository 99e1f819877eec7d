//! Complete files of the log, written from one end to the other: by compaction, for other index keys, by salvage.

use super::entry::{Kind, Note};
use super::head::FILE_HEAD;
use super::judge::Progress;
use super::name::Name;
use super::segment::Segment;

/// A complete file being written.
pub(super) struct Output {
    segment: Segment,
    buffer: Vec<u8>,
    /// Bytes in the file.
    at: u64,
    progress: Progress,
}

/// Bytes written at once.
const WRITE: usize = 1 << 20;

impl Output {
    pub(super) fn new(segment: Segment) -> Output {
        Output {
            segment,
            buffer: Vec::with_capacity(WRITE + 4_096),
            at: FILE_HEAD,
            progress: Progress::default(),
        }
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Bytes it has so far.
    pub(super) fn length(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    pub(super) fn records(&self) -> u64 {
        self.progress.records
    }

    /// Appends the entry of a record, given as bytes with padding.
    pub(super) fn append(&mut self, entry: &[u8]) -> std::io::Result<()> {
        self.progress.add(true, entry);
        self.buffer.extend_from_slice(entry);
        if self.buffer.len() < WRITE {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.segment.write(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file, which will have this name, and flushes it.
    pub(super) fn complete(mut self, name: Name) -> std::io::Result<Segment> {
        let end = Note {
            number: name.last,
            at: self.length(),
            figure: self.progress.records,
            chain: self.progress.chain,
        };
        end.encode(Kind::End, &mut self.buffer);
        self.flush()?;
        self.segment.write_head(name)?;
        self.segment.sync()?;
        self.segment.publish(self.at);
        Ok(self.segment)
    }
}
