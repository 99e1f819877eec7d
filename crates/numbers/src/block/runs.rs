//! Neighbours that share a value: the first number, the count less one, the value; found by bisection.
//!
//! A body is the count of runs (2 bytes) and the runs, each 32 bits and those of its value.

use super::{Entry, Head};
use crate::bits::{BitWriter, read};

const COUNT_BITS: u32 = 16;

/// Size of a body of `runs` in bits; `None` for more than a body can have.
pub(super) fn bits(runs: usize, value_bits: u8) -> Option<u64> {
    let runs = u16::try_from(runs).ok()?;
    Some(u64::from(COUNT_BITS) + u64::from(runs) * (32 + u64::from(value_bits)))
}

/// The runs of some entries.
pub(super) fn count(entries: &[Entry]) -> usize {
    let ends = entries.windows(2).filter(|pair| !continues(pair[0], pair[1]));
    ends.count() + usize::from(!entries.is_empty())
}

fn continues(before: Entry, next: Entry) -> bool {
    before.1 == next.1 && before.0.checked_add(1) == Some(next.0)
}

/// First number, last number (which may be above 65,535 in damaged bytes), value.
fn run(head: Head, body: &[u8], number: u32) -> (u32, u32, u32) {
    let at = COUNT_BITS + number * (32 + u32::from(head.value_bits));
    let both = read(body, at, 32);
    let first = both & 0xffff;
    (
        first,
        first + (both >> 16),
        read(body, at + 32, u32::from(head.value_bits)),
    )
}

pub(super) fn find(head: Head, body: &[u8], low: u16) -> Option<u32> {
    let low = u32::from(low);
    let (mut from, mut to) = (0, read(body, 0, COUNT_BITS));
    while from < to {
        let middle = from.midpoint(to);
        let (first, last, value) = run(head, body, middle);
        if low < first {
            to = middle;
        } else if low > last {
            from = middle + 1;
        } else {
            return Some(value);
        }
    }
    None
}

/// Whether a number from `from` to `to` is there.
pub(super) fn has_between(head: Head, body: &[u8], from: u16, to: u16) -> bool {
    let count = read(body, 0, COUNT_BITS);
    // The first run that does not end before `from`.
    let (mut first, mut behind) = (0, count);
    while first < behind {
        let middle = first.midpoint(behind);
        if run(head, body, middle).1 < u32::from(from) {
            first = middle + 1;
        } else {
            behind = middle;
        }
    }
    first < count && run(head, body, first).0 <= u32::from(to)
}

pub(super) fn entries(head: Head, body: &[u8], entries: &mut Vec<Entry>) -> Option<()> {
    for number in 0..read(body, 0, COUNT_BITS) {
        let (first, last, value) = run(head, body, number);
        if last > 0xffff || entries.len() as u32 + (last - first) >= head.count {
            return None;
        }
        entries.extend((first..=last).map(|low| (low as u16, value as u16)));
    }
    Some(())
}

pub(super) fn write(head: Head, entries: &[Entry], written: impl Fn(u16) -> u32, bytes: &mut Vec<u8>) {
    let mut bits = BitWriter::default();
    bits.push(count(entries) as u32, COUNT_BITS);
    for run in entries.chunk_by(|a, b| continues(*a, *b)) {
        // A chunk has one entry at least.
        let (first, value) = run[0];
        bits.push(u32::from(first), 16);
        bits.push(run.len() as u32 - 1, 16);
        bits.push(written(value), u32::from(head.value_bits));
    }
    bytes.extend(bits.finish());
}
