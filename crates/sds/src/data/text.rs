//! Records as text, made while they are sent.

use std::io::Write as _;

use bytes::Bytes;
use numbers::Damaged;
use numbers::csv::FIRST_LINE;

use super::Snapshot;
use crate::subject::NAME;

/// Bytes from which on a piece is sent.
const PIECE: usize = 64 * 1_024;

/// The text of all records of one offset: numbers in ascending order, then names, then `#end,COUNT`. The lines `#journal` and
/// `#offset` are comments to other readers.
pub(crate) struct Text {
    snapshot: Snapshot,
    /// Made before the first record.
    begin: Option<String>,
    part: Part,
    count: u64,
}

enum Part {
    Numbers,
    /// The last name that was written.
    Names(Option<String>),
    Damaged(Damaged),
    Ended,
}

impl Text {
    pub(crate) fn new(snapshot: Snapshot, journal: &str) -> Self {
        let begin = format!("{FIRST_LINE}\n#journal,{journal}\n#offset,{}\n", snapshot.offset);
        Self {
            snapshot,
            begin: Some(begin),
            part: Part::Numbers,
            count: 0,
        }
    }

    /// The next piece; none behind the last one.
    ///
    /// # Errors
    /// When a block is damaged: the text ends here, and its reader finds no `#end`.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Damaged> {
        let mut out = self.begin.take().unwrap_or_default().into_bytes();
        while out.len() < PIECE {
            match &self.part {
                Part::Numbers => self.numbers(&mut out),
                Part::Names(_) => self.names(&mut out),
                // What is before it goes first.
                Part::Damaged(_) if !out.is_empty() => break,
                Part::Damaged(damaged) => {
                    let damaged = *damaged;
                    self.part = Part::Ended;
                    return Err(damaged);
                }
                Part::Ended => break,
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }

    fn numbers(&mut self, out: &mut Vec<u8>) {
        while out.len() < PIECE {
            match self.snapshot.numbers.next() {
                Some(Ok((key, set))) => {
                    self.count += 1;
                    // A vector takes all bytes.
                    let _ = writeln!(out, "{key},{set}");
                }
                Some(Err(damaged)) => {
                    self.part = Part::Damaged(damaged);
                    return;
                }
                None => {
                    self.part = Part::Names(None);
                    return;
                }
            }
        }
    }

    fn names(&mut self, out: &mut Vec<u8>) {
        let Part::Names(last) = &mut self.part else { return };
        let mut written = None;
        for (name, set) in self.snapshot.names.above(last.as_deref()) {
            self.count += 1;
            let _ = writeln!(out, "{NAME},{name},{set}");
            if out.len() >= PIECE {
                written = Some(name.to_owned());
                break;
            }
        }
        if written.is_some() {
            *last = written;
            return;
        }
        let _ = writeln!(out, "#end,{}", self.count);
        self.part = Part::Ended;
    }
}
