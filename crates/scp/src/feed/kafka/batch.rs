//! A batch of records as brokers keep it: `RecordBatch` of magic 2, the only one that Kafka 4 takes.

use std::io::Write;

use flate2::write::GzEncoder;
use lz4_flex::frame::FrameEncoder;

use crate::config::Compression;
use crate::feed::pump::Record;

/// Bytes from the start of a batch to the first that its checksum covers: offset, length, epoch, magic, checksum.
const BEFORE_CHECKED: usize = 8 + 4 + 4 + 1 + 4;
/// Bytes of the batch that its length does not count: offset and length.
const UNCOUNTED: usize = 8 + 4;
/// No transaction and no idempotence: no producer id, epoch or sequence.
const NO_PRODUCER: [u8; 8 + 2 + 4] = [0xff; 14];

/// Appends the batch of these records, of which there must be one at least.
///
/// # Errors
/// When it is longer than the protocol can say.
pub(super) fn append(
    out: &mut Vec<u8>,
    records: &[Record],
    compression: Compression,
) -> Result<(), std::io::Error> {
    let millis = |record: &Record| record.at.div_euclid(1_000_000);
    let first = records.first().map_or(0, millis);
    let last = records.iter().map(millis).max().unwrap_or(first);
    let count = i32::try_from(records.len()).map_err(std::io::Error::other)?;
    let start = out.len();
    // The broker gives the offset; the length and the checksum follow when they are known.
    out.extend_from_slice(&[0; UNCOUNTED]);
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out.push(2);
    out.extend_from_slice(&[0; 4]);
    let attributes: i16 = match compression {
        Compression::None => 0,
        Compression::Gzip => 1,
        Compression::Lz4 => 3,
    };
    out.extend_from_slice(&attributes.to_be_bytes());
    out.extend_from_slice(&(count - 1).to_be_bytes());
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&NO_PRODUCER);
    out.extend_from_slice(&count.to_be_bytes());
    match compression {
        Compression::None => append_records(out, records, first),
        Compression::Gzip => {
            let mut plain = Vec::new();
            append_records(&mut plain, records, first);
            let mut encoder = GzEncoder::new(&mut *out, flate2::Compression::fast());
            encoder.write_all(&plain)?;
            encoder.finish()?;
        }
        Compression::Lz4 => {
            let mut plain = Vec::new();
            append_records(&mut plain, records, first);
            let mut encoder = FrameEncoder::new(&mut *out);
            encoder.write_all(&plain)?;
            encoder.finish()?;
        }
    }
    let length = i32::try_from(out.len() - start - UNCOUNTED).map_err(std::io::Error::other)?;
    out[start + 8..start + UNCOUNTED].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&out[start + BEFORE_CHECKED..]);
    out[start + BEFORE_CHECKED - 4..start + BEFORE_CHECKED].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

fn append_records(out: &mut Vec<u8>, records: &[Record], first: i64) {
    let size: usize = records
        .iter()
        .map(|one| one.key.len() + one.value.len() + 32)
        .sum();
    out.reserve(size);
    for (position, record) in records.iter().enumerate() {
        let delta = record.at.div_euclid(1_000_000) - first;
        let (key, value) = (record.key.len() as i64, record.value.len() as i64);
        let position = position as i64;
        // Attributes and the count of headers take a byte each.
        let length = 2
            + varint_size(delta)
            + varint_size(position)
            + varint_size(key)
            + record.key.len()
            + varint_size(value)
            + record.value.len();
        varint(out, length as i64);
        out.push(0);
        varint(out, delta);
        varint(out, position);
        varint(out, key);
        out.extend_from_slice(&record.key);
        varint(out, value);
        out.extend_from_slice(&record.value);
        varint(out, 0);
    }
}

/// A signed number, zigzag, seven bits a byte.
fn varint(out: &mut Vec<u8>, value: i64) {
    let mut left = zigzag(value);
    while left >= 0x80 {
        out.push((left as u8 & 0x7f) | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn varint_size(value: i64) -> usize {
    let bits = 64 - zigzag(value).leading_zeros() as usize;
    bits.div_ceil(7).max(1)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_protocol_has_them() {
        for (value, expected) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (64, &[0x80, 0x01]),
            (-65, &[0x81, 0x01]),
            (300, &[0xd8, 0x04]),
        ] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out, expected, "{value}");
            assert_eq!(varint_size(value), out.len());
        }
        for value in [i64::MAX, i64::MIN, 1 << 20, -(1 << 27)] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(varint_size(value), out.len(), "{value}");
        }
    }

    /// The batch of one record, byte by byte after the description of the format
    /// (https://kafka.apache.org/documentation/#recordbatch).
    #[test]
    fn a_batch_is_as_the_format_is_described() {
        let record = Record {
            key: b"k".to_vec(),
            value: b"value".to_vec(),
            at: 1_700_000_000_000_999_999,
        };
        let mut out = Vec::new();
        append(&mut out, std::slice::from_ref(&record), Compression::None).unwrap();
        let record_bytes = [&[24_u8, 0, 0, 0, 2][..], b"k", &[10], b"value", &[0]].concat();
        assert_eq!(out.len(), 61 + record_bytes.len());
        assert_eq!(out[..8], [0; 8]);
        assert_eq!(out[8..12], ((out.len() - 12) as i32).to_be_bytes());
        assert_eq!(out[12..17], [0xff, 0xff, 0xff, 0xff, 2]);
        assert_eq!(out[17..21], crc32c::crc32c(&out[21..]).to_be_bytes());
        assert_eq!(out[21..27], [0; 6]);
        let millis = 1_700_000_000_000_i64.to_be_bytes();
        assert_eq!(out[27..43], [millis, millis].concat());
        assert_eq!(out[43..57], [0xff; 14]);
        assert_eq!(out[57..61], [0, 0, 0, 1]);
        assert_eq!(out[61..], record_bytes);
    }
}
