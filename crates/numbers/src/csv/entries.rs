//! The entries of a text, whatever their kinds.

use std::io::BufRead;

use super::error::{ImportError, Mistake};
use super::line::{self, Line};

/// A line `kind,value,destinations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'l> {
    /// Of the value.
    pub kind: &'l str,
    /// A number, a name, or what else the kind takes.
    pub value: &'l str,
    /// The text of the destinations, as [`DestinationSet`](crate::DestinationSet) parses it.
    pub destinations: &'l str,
}

/// Hands each entry to `take`, with its line; comments, and the first line and the end of a file that has them, are
/// understood here. Returns the count of lines and that of entries.
///
/// # Errors
/// Names the first line that is wrong or that `take` refuses; also where the text is cut, is of another version, has another checksum
/// than it says, or has no entry though it does not end with `#end,0`.
pub fn entries(
    input: &mut impl BufRead,
    mut take: impl FnMut(u64, Entry<'_>) -> Result<(), ImportError>,
) -> Result<(u64, u64), ImportError> {
    let mut buffer = Vec::new();
    let (mut number, mut count, mut has_end, mut ended, mut sum) = (0, 0, false, false, 0);
    while let Some(text) = line::read(input, &mut buffer).map_err(ImportError::Read)? {
        number += 1;
        let text = text.map_err(|error| Mistake::at(number, error))?;
        let parsed = line::parse(text).map_err(|error| Mistake::at(number, error))?;
        if ended {
            return Err(Mistake::at(number, "a line behind the end"));
        }
        match parsed {
            Line::First if number == 1 => has_end = true,
            Line::Sum(expected) if has_end && expected != sum => {
                let mistake = "the lines before have another checksum; the file is damaged, or was changed by hand: then leave \
                               out this line";
                return Err(Mistake::at(number, mistake));
            }
            Line::First | Line::Comment | Line::Sum(_) => {}
            Line::End(expected) if expected == count => ended = true,
            Line::End(expected) => {
                return Err(Mistake::at(
                    number,
                    format!("{count} numbers before, expected {expected}; lines are lost"),
                ));
            }
            Line::Entry(entry) => {
                count += 1;
                take(number, entry)?;
            }
        }
        if has_end {
            sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, text.as_bytes()), b"\n");
        }
    }
    if has_end && !ended {
        let mistake = format!("expected #end,COUNT behind {count} numbers; the file is cut");
        return Err(Mistake::at(number + 1, mistake));
    }
    if count == 0 && !ended {
        return Err(Mistake::at(number + 1, "no number in the whole input"));
    }
    Ok((number, count))
}
