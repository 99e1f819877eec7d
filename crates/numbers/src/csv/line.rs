//! A line: what is in it, and what is wrong with it.

use std::io::{self, BufRead, Read as _};

use super::{END, Entry, FIRST_LINE, HEADER, MOST_LINE_BYTES, SUM};

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// The first line of a file that has an end.
    First,
    /// The end, with the count of numbers.
    End(u64),
    /// The checksum of the lines before.
    Sum(u32),
    Comment,
    Entry(Entry<'l>),
}

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineError {
    #[error("more than {MOST_LINE_BYTES} bytes")]
    TooLong,
    #[error("not in UTF-8")]
    NotText,
    #[error("the line has no end; the file is cut")]
    Cut,
    #[error("empty line; expected kind,number,destination")]
    Empty,
    #[error("expected kind,number,destination")]
    Fields,
    #[error("the count behind #end is not a number")]
    Count,
    #[error("the checksum behind {SUM} does not have hexadecimal digits")]
    Sum,
    #[error("a text of version `{0}`; expected `{FIRST_LINE}`")]
    Version(String),
}

/// Reads the next line into `buffer`, without its end; `None` behind the last one.
pub(super) fn read<'b>(
    input: &mut impl BufRead,
    buffer: &'b mut Vec<u8>,
) -> io::Result<Option<Result<&'b str, LineError>>> {
    buffer.clear();
    let mut input = input.take(MOST_LINE_BYTES as u64 + 1);
    input.read_until(b'\n', buffer)?;
    let ended = buffer.last() == Some(&b'\n');
    if buffer.is_empty() {
        return Ok(None);
    }
    if !ended {
        let too_long = buffer.len() > MOST_LINE_BYTES;
        return Ok(Some(Err(if too_long {
            LineError::TooLong
        } else {
            LineError::Cut
        })));
    }
    buffer.pop();
    if buffer.last() == Some(&b'\r') {
        buffer.pop();
    }
    Ok(Some(std::str::from_utf8(buffer).map_err(|_| LineError::NotText)))
}

/// Parses a line without its end.
pub(super) fn parse(line: &str) -> Result<Line<'_>, LineError> {
    if line.is_empty() {
        return Err(LineError::Empty);
    }
    if line == FIRST_LINE {
        return Ok(Line::First);
    }
    if let Some(version) = line.strip_prefix(HEADER) {
        let version = version.chars().take(20).flat_map(char::escape_debug);
        return Err(LineError::Version(version.collect()));
    }
    if let Some(count) = line.strip_prefix(END) {
        return count.parse().map(Line::End).map_err(|_| LineError::Count);
    }
    if let Some(sum) = line.strip_prefix(SUM) {
        let sum = u32::from_str_radix(sum, 16).map(Line::Sum);
        return sum.map_err(|_| LineError::Sum);
    }
    if line.starts_with('#') {
        return Ok(Line::Comment);
    }
    let (kind, rest) = line.split_once(',').ok_or(LineError::Fields)?;
    let (value, destinations) = rest.split_once(',').ok_or(LineError::Fields)?;
    Ok(Line::Entry(Entry {
        kind,
        value,
        destinations,
    }))
}
