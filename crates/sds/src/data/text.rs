//! Records as text, made while they are sent.

use std::fmt::Display;

use bytes::Bytes;
use numbers::csv::TextWriter;
use numbers::{Damaged, DestinationSet, Key};

use super::{Data, Snapshot};
use crate::subject::NAME;

/// Bytes from which on a piece is sent.
const PIECE: usize = 64 * 1_024;

/// The text of all records of one offset: numbers in ascending order, then names, then `#end,COUNT`. The lines `#journal` and
/// `#offset` are comments to other readers.
pub(crate) struct Text {
    snapshot: Snapshot,
    lines: Lines,
    part: Part,
}

/// Where a part of the text of all records begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// With the first number, or behind this one.
    Number(Option<Key>),
    /// With the first name, or behind this one.
    Name(Option<Box<str>>),
}

/// A part of the text of all records: up to `most` of them, as they are now; and their offset. Where more may follow, the comment
/// `#next,KIND,VALUE` says where the next part begins.
///
/// # Errors
/// When a block is damaged.
pub(crate) fn part(
    data: &Data,
    journal: &str,
    behind: Behind,
    most: usize,
) -> Result<(Vec<u8>, u64), Damaged> {
    let (mut lines, offset, next) = match behind {
        Behind::Number(after) => {
            let (offset, numbers) = data.numbers(after, most);
            let (mut lines, mut last) = (Lines::new(journal, offset), None);
            for record in numbers.take(most) {
                let (key, set) = record?;
                lines.entry(key, &set);
                last = Some(key);
            }
            // Names follow the last number.
            let last = last.filter(|_| lines.0.count() == most as u64);
            let next = last.map_or_else(|| format!("{NAME},"), |key| key.to_string());
            (lines, offset, Some(next))
        }
        Behind::Name(after) => {
            let (offset, names) = data.names();
            let (mut lines, mut last) = (Lines::new(journal, offset), None);
            for (name, set) in names.above(after.as_deref()).take(most) {
                lines.entry(format_args!("{NAME},{name}"), set);
                last = Some(name);
            }
            let last = last.filter(|_| lines.0.count() == most as u64);
            let next = last.map(|name| format!("{NAME},{name}"));
            (lines, offset, next)
        }
    };
    if let Some(next) = next {
        lines.comment(format_args!("#next,{next}"));
    }
    lines.end();
    Ok((lines.0.into_output(), offset))
}

/// Lines in a vector, which takes all bytes: its errors do not happen.
struct Lines(TextWriter<Vec<u8>>);

impl Lines {
    fn new(journal: &str, offset: u64) -> Self {
        let mut lines = Self(TextWriter::in_memory());
        lines.comment(format_args!("#journal,{journal}"));
        lines.comment(format_args!("#offset,{offset}"));
        lines
    }

    fn comment(&mut self, comment: impl Display) {
        let _ = self.0.comment(comment);
    }

    fn entry(&mut self, subject: impl Display, set: &DestinationSet) {
        let _ = self.0.entry(format_args!("{subject},{set}"));
    }

    fn end(&mut self) {
        let _ = self.0.end();
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        self.0.output_mut()
    }
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
        Self {
            lines: Lines::new(journal, snapshot.offset),
            snapshot,
            part: Part::Numbers,
        }
    }

    /// The next piece; none behind the last one.
    ///
    /// # Errors
    /// When a block is damaged: the text ends here, and its reader finds no `#end`.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Damaged> {
        while self.lines.bytes().len() < PIECE {
            match &self.part {
                Part::Numbers => self.numbers(),
                Part::Names(_) => self.names(),
                // What is before it goes first.
                Part::Damaged(_) if !self.lines.bytes().is_empty() => break,
                Part::Damaged(damaged) => {
                    let damaged = *damaged;
                    self.part = Part::Ended;
                    return Err(damaged);
                }
                Part::Ended => break,
            }
        }
        let piece = std::mem::take(self.lines.bytes());
        Ok((!piece.is_empty()).then(|| piece.into()))
    }

    fn numbers(&mut self) {
        while self.lines.bytes().len() < PIECE {
            match self.snapshot.numbers.next() {
                Some(Ok((key, set))) => self.lines.entry(key, &set),
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

    fn names(&mut self) {
        let Part::Names(last) = &mut self.part else { return };
        let mut written = None;
        for (name, set) in self.snapshot.names.above(last.as_deref()) {
            self.lines.entry(format_args!("{NAME},{name}"), set);
            if self.lines.bytes().len() >= PIECE {
                written = Some(name.to_owned());
                break;
            }
        }
        if written.is_some() {
            *last = written;
            return;
        }
        self.lines.end();
        self.part = Part::Ended;
    }
}
