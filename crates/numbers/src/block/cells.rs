//! Cells of a body: parts of which each has numbers and values together, and the list of where they begin.
//!
//! The list is 4 bytes a cell, the bit at which it begins, and at its end the bit at which the last one ends. A body of one
//! cell has no list.

use super::{Form, Head, bitmap};
use crate::bits::BitWriter;

/// Buckets of an Elias-Fano cell.
pub(super) const BUCKETS: u32 = 64;

/// Cells of a body.
pub(super) fn cells(head: Head) -> u32 {
    match head.form {
        Form::EliasFano => ((1 << 16) >> head.low_bits).max(BUCKETS) / BUCKETS,
        Form::Bitmap => bitmap::CELLS,
        Form::Runs => 1,
    }
}

/// Bytes of the list.
pub(super) fn list(head: Head) -> u32 {
    match cells(head) {
        1 => 0,
        cells => (cells + 1) * 4,
    }
}

/// The cell of a number.
pub(super) fn cell_of(head: Head, low: u16) -> u32 {
    match head.form {
        Form::EliasFano => (u32::from(low) >> head.low_bits) / BUCKETS,
        Form::Bitmap => u32::from(low) / bitmap::SPAN,
        Form::Runs => 0,
    }
}

/// The bits, from the body's start, at which a cell begins and ends; `alone` is the length of one without a list.
pub(super) fn bounds(head: Head, body: &[u8], cell: u32, alone: u32) -> Option<(u32, u32)> {
    if list(head) == 0 {
        return Some((0, alone));
    }
    let at = cell as usize * 4;
    let pair = body.get(at..at + 8)?;
    let word = |at: usize| u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
    Some((word(0), word(4)))
}

/// Where the list has the cell of `low`, in bytes of the body.
pub(super) fn signpost(head: Head, low: u16) -> usize {
    match list(head) {
        0 => 0,
        _ => cell_of(head, low) as usize * 4,
    }
}

/// Where the cell of `low` begins, in bytes of the body.
pub(super) fn start(head: Head, body: &[u8], low: u16) -> usize {
    bounds(head, body, cell_of(head, low), 0).map_or(0, |(begin, _)| begin as usize / 8)
}

/// Writes a body cell by cell: `cell` writes one.
pub(super) fn write(head: Head, bytes: &mut Vec<u8>, mut cell: impl FnMut(u32, &mut BitWriter)) {
    let before = list(head);
    let mut bits = BitWriter::default();
    for number in 0..cells(head) {
        if before > 0 {
            bytes.extend((before * 8 + bits.bits()).to_le_bytes());
        }
        cell(number, &mut bits);
    }
    if before > 0 {
        bytes.extend((before * 8 + bits.bits()).to_le_bytes());
    }
    bytes.extend(bits.finish());
}
