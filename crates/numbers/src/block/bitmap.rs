//! Dense numbers: a bit for each, then the values of those that are there, in cells of 512 numbers.

use super::cells;
use super::{Entry, Head};
use crate::bits::{read, window};

/// Numbers of a cell.
pub(super) const SPAN: u32 = 512;
/// Cells of a block.
pub(super) const CELLS: u32 = (1 << 16) / SPAN;

/// Size of the body in bits.
pub(super) fn bits(head: Head) -> u64 {
    let values = u64::from(head.count) * u64::from(head.value_bits);
    u64::from(cells::list(head)) * 8 + (1 << 16) + values
}

pub(super) fn find(head: Head, body: &[u8], low: u16) -> Option<u32> {
    let (begin, end) = cells::bounds(head, body, cells::cell_of(head, low), 0)?;
    // A cell that ends before its bits do is none, and the sums below stay in range.
    if begin.checked_add(SPAN)? > end {
        return None;
    }
    let bit = u32::from(low) % SPAN;
    if window(body, begin + bit) & 1 == 0 {
        return None;
    }
    let mut before = 0;
    let mut at = 0;
    while at < bit {
        let step = (bit - at).min(56);
        before += (window(body, begin + at) & ((1 << step) - 1)).count_ones();
        at += step;
    }
    let value = (begin + SPAN).checked_add(before * u32::from(head.value_bits))?;
    (value <= end).then(|| read(body, value, u32::from(head.value_bits)))
}

/// Whether a number from `from` to `to` is there.
pub(super) fn has_between(head: Head, body: &[u8], from: u16, to: u16) -> Option<bool> {
    let (from, to) = (u32::from(from), u32::from(to));
    for cell in from / SPAN..=to / SPAN {
        let (begin, end) = cells::bounds(head, body, cell, 0)?;
        if begin.checked_add(SPAN)? > end {
            return None;
        }
        let mut bit = from.max(cell * SPAN) % SPAN;
        let last = to.min(cell * SPAN + SPAN - 1) % SPAN;
        while bit <= last {
            let step = (last + 1 - bit).min(56);
            if window(body, begin + bit) & ((1 << step) - 1) != 0 {
                return Some(true);
            }
            bit += step;
        }
    }
    Some(false)
}

pub(super) fn entries(head: Head, body: &[u8], entries: &mut Vec<Entry>) -> Option<()> {
    for cell in 0..CELLS {
        let (begin, end) = cells::bounds(head, body, cell, 0)?;
        if begin.checked_add(SPAN)? > end {
            return None;
        }
        let mut value = begin + SPAN;
        for bit in 0..SPAN {
            if window(body, begin + bit) & 1 == 1 {
                if entries.len() as u32 == head.count {
                    return None;
                }
                let written = read(body, value, u32::from(head.value_bits));
                entries.push(((cell * SPAN + bit) as u16, written as u16));
                value = value.checked_add(u32::from(head.value_bits))?;
            }
        }
    }
    Some(())
}

pub(super) fn write(head: Head, entries: &[Entry], written: impl Fn(u16) -> u32, bytes: &mut Vec<u8>) {
    let mut rest = entries;
    cells::write(head, bytes, |cell, bits| {
        let end = (cell + 1) * SPAN;
        let own = rest.partition_point(|(low, _)| u32::from(*low) < end);
        let (own, behind) = rest.split_at(own);
        rest = behind;
        let mut words = [0_u32; SPAN as usize / 32];
        for (low, _) in own {
            let bit = u32::from(*low) % SPAN;
            words[bit as usize / 32] |= 1 << (bit % 32);
        }
        words.iter().for_each(|word| bits.push(*word, 32));
        own.iter()
            .for_each(|(_, value)| bits.push(written(*value), u32::from(head.value_bits)));
    });
}
