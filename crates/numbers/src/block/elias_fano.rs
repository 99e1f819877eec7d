//! Sparse numbers: the high bits of each in unary, the low bits as they are.
//!
//! A number's place is a bucket (its high bits) and `low_bits` bits. A cell has 64 buckets: first, from its beginning on,
//! for each bucket as many ones as it has numbers and a zero; then, from its end backwards, for each number its low bits and
//! its value. Backwards, because so neither part must know how long the other one is.

use super::cells::{self, BUCKETS};
use super::{Entry, Head};
use crate::bits::{read, select, window};

/// Bits of a [`window`] that are surely there.
const SURE: u32 = 56;

/// Size of the body in bits.
pub(super) fn bits(head: Head) -> u64 {
    u64::from(cells::list(head)) * 8 + u64::from(alone(head))
}

/// The bits of all cells.
fn alone(head: Head) -> u32 {
    head.count * (1 + entry_bits(head)) + buckets(head)
}

fn entry_bits(head: Head) -> u32 {
    u32::from(head.low_bits) + u32::from(head.value_bits)
}

fn buckets(head: Head) -> u32 {
    (1 << 16) >> head.low_bits
}

pub(super) fn find(head: Head, body: &[u8], low: u16) -> Option<u32> {
    let bucket = u32::from(low) >> head.low_bits;
    let (begin, end) = cells::bounds(head, body, bucket / BUCKETS, alone(head))?;
    let nth = bucket % BUCKETS;
    let mut at = after_zeros(body, begin, end, nth)?;
    let mut entry = (at - begin).checked_sub(nth)?;
    let wanted = u32::from(low) & ((1 << head.low_bits) - 1);
    loop {
        let ones = window(body, at).trailing_ones().min(SURE);
        for _ in 0..ones {
            let (rest, value) = read_entry(head, body, end, entry)?;
            if rest >= wanted {
                return (rest == wanted).then_some(value);
            }
            entry += 1;
        }
        if ones < SURE {
            return None;
        }
        at += SURE;
    }
}

/// Whether a number from `from` to `to` is there: the first one from `from` on decides.
pub(super) fn has_between(head: Head, body: &[u8], from: u16, to: u16) -> Option<bool> {
    let (from, to) = (u32::from(from), u32::from(to));
    let mut bucket = from >> head.low_bits;
    let last = to >> head.low_bits;
    while bucket <= last {
        let (cell, nth) = (bucket / BUCKETS, bucket % BUCKETS);
        let behind = (last + 1).min((cell + 1) * BUCKETS);
        let (begin, end) = cells::bounds(head, body, cell, alone(head))?;
        let mut at = after_zeros(body, begin, end, nth)?;
        let mut entry = (at - begin).checked_sub(nth)?;
        while bucket < behind {
            let zeros = window(body, at).trailing_zeros().min(SURE).min(behind - bucket);
            if zeros == 0 {
                let (rest, _) = read_entry(head, body, end, entry)?;
                let low = bucket << head.low_bits | rest;
                if low >= from {
                    return Some(low <= to);
                }
                entry += 1;
            }
            bucket += zeros;
            at = at.checked_add(zeros.max(1))?;
        }
    }
    Some(false)
}

/// The bit behind the `nth` zero from `begin` on; `begin` itself for none.
fn after_zeros(body: &[u8], begin: u32, end: u32, nth: u32) -> Option<u32> {
    if nth == 0 {
        return Some(begin);
    }
    let (mut at, mut left) = (begin, nth - 1);
    while at < end {
        let zeros = !window(body, at) & ((1 << SURE) - 1);
        let count = zeros.count_ones();
        if left < count {
            return Some(at + select(zeros, left) + 1);
        }
        left -= count;
        at = at.checked_add(SURE)?;
    }
    None
}

/// Low bits and value of an entry of a cell.
fn read_entry(head: Head, body: &[u8], end: u32, entry: u32) -> Option<(u32, u32)> {
    let each = entry_bits(head);
    let at = end.checked_sub(entry.checked_add(1)?.checked_mul(each)?)?;
    let bits = read(body, at, each);
    Some((bits & ((1 << head.low_bits) - 1), bits >> head.low_bits))
}

pub(super) fn entries(head: Head, body: &[u8], entries: &mut Vec<Entry>) -> Option<()> {
    for cell in 0..cells::cells(head) {
        let (begin, end) = cells::bounds(head, body, cell, alone(head))?;
        let first = cell * BUCKETS;
        let last = (first + BUCKETS).min(buckets(head));
        let (mut at, mut entry) = (begin, 0);
        for bucket in first..last {
            while window(body, at) & 1 == 1 {
                let (rest, value) = read_entry(head, body, end, entry)?;
                if entries.len() as u32 == head.count {
                    return None;
                }
                entries.push(((bucket << head.low_bits | rest) as u16, value as u16));
                entry += 1;
                at = at.checked_add(1)?;
            }
            at = at.checked_add(1)?;
        }
    }
    Some(())
}

pub(super) fn write(head: Head, entries: &[Entry], written: impl Fn(u16) -> u32, bytes: &mut Vec<u8>) {
    let mut rest = entries;
    cells::write(head, bytes, |cell, bits| {
        let first = cell * BUCKETS;
        let end = first + BUCKETS.min(buckets(head));
        let bucket = |(low, _): &Entry| u32::from(*low) >> head.low_bits;
        let own = rest.partition_point(|entry| bucket(entry) < end);
        let (own, behind) = rest.split_at(own);
        rest = behind;
        let mut open = first;
        for entry in own {
            zeros(bits, bucket(entry) - open);
            open = bucket(entry);
            bits.push(1, 1);
        }
        zeros(bits, end - open);
        for (low, value) in own.iter().rev() {
            let rest = u32::from(*low) & ((1 << head.low_bits) - 1);
            bits.push(rest | written(*value) << head.low_bits, entry_bits(head));
        }
    });
}

fn zeros(bits: &mut crate::bits::BitWriter, mut count: u32) {
    while count > 0 {
        bits.push(0, count.min(32));
        count -= count.min(32);
    }
}
