//! Texts that programs keep: with the checksum of their lines.

use std::fmt::Display;
use std::io::{self, Write};

use super::{END, FIRST_LINE, SUM};

/// Writes a text whose end has the count of its entries and the checksum of all lines before, so that [`entries`](super::entries)
/// refuses one that is cut or that has a flipped bit.
#[derive(Debug)]
pub struct TextWriter<W> {
    output: W,
    line: Vec<u8>,
    sum: u32,
    count: u64,
}

impl TextWriter<Vec<u8>> {
    /// A text in memory, with its first line.
    #[must_use]
    pub fn in_memory() -> Self {
        let mut text = Self::begun(Vec::new());
        // A vector takes all bytes.
        let _ = text.line(FIRST_LINE);
        text
    }
}

impl<W: Write> TextWriter<W> {
    const fn begun(output: W) -> Self {
        Self {
            output,
            line: Vec::new(),
            sum: 0,
            count: 0,
        }
    }

    /// Writes the first line.
    ///
    /// # Errors
    /// Those of `output`, as of all methods.
    pub fn new(output: W) -> io::Result<Self> {
        let mut text = Self::begun(output);
        text.line(FIRST_LINE)?;
        Ok(text)
    }

    /// Writes a comment, which begins with `#`.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn comment(&mut self, comment: impl Display) -> io::Result<()> {
        self.line(comment)
    }

    /// Writes an entry: `KIND,VALUE,DESTINATIONS`.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn entry(&mut self, entry: impl Display) -> io::Result<()> {
        self.count += 1;
        self.line(entry)
    }

    /// How many entries were written.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// What was written to, such as a vector whose bytes are sent already.
    pub const fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// Writes checksum and end; nothing follows them.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn end(&mut self) -> io::Result<()> {
        writeln!(self.output, "{SUM}{:08x}\n{END}{}", self.sum, self.count)
    }

    /// What was written to.
    pub fn into_output(self) -> W {
        self.output
    }

    fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.line.clear();
        writeln!(self.line, "{text}")?;
        self.sum = crc32c::crc32c_append(self.sum, &self.line);
        self.output.write_all(&self.line)
    }
}
