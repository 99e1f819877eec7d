//! How records and index entries lie in the engine's key-value spaces.
//!
//! A table has two spaces. `<table>.rows`: primary key → envelope. `<table>.keys`: index entries of all indexes,
//! each beginning with the index's number:
//!
//! | entry | key | value |
//! |---|---|---|
//! | of a unique index | `number` `index key` | primary key |
//! | of another index | `number` `index key, escaped` `00 00` `primary key` | nothing |
//! | by modification | `ff` `version, big endian` `primary key` | nothing |
//!
//! Escaping writes `00` as `00 ff`, so that `00 00` ends a key and order is kept.
//!
//! The envelope repeats the index keys of the record, so that a later write removes exactly the entries that an
//! earlier one made, even if the codec has changed in between.

use std::sync::Arc;

use crate::engine::Row;
use crate::record::IndexKeyIter;
use crate::schema::Index;
use crate::version::Version;

const FORMAT: u8 = 1;
/// The number under which entries by modification are kept; above any index's.
const MODIFIED: u8 = 0xff;

/// A row's envelope, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) version: Version,
    pub(crate) created: u64,
    pub(crate) site: u16,
    pub(crate) keys: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.keys.len() + self.value.len());
        out.push(FORMAT);
        out.extend_from_slice(&self.version.0.to_le_bytes());
        // Most records are never changed: one byte instead of eight.
        put_varint(&mut out, self.version.micros().saturating_sub(self.created));
        put_varint(&mut out, u64::from(self.site));
        put_varint(&mut out, self.keys.len() as u64);
        out.extend_from_slice(self.keys);
        out.extend_from_slice(self.value);
        out
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Envelope<'a>, String> {
        let Some((&FORMAT, rest)) = bytes.split_first() else {
            return Err(format!(
                "expected a row of format {FORMAT}, found {:?}",
                bytes.first()
            ));
        };
        let cut = || "the row is cut short".to_owned();
        let (version, rest) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        let version = Version(u64::from_le_bytes(*version));
        let (age, rest) = take_varint(rest).ok_or_else(cut)?;
        let (site, rest) = take_varint(rest).ok_or_else(cut)?;
        let (length, rest) = take_varint(rest).ok_or_else(cut)?;
        let length = usize::try_from(length).map_err(|_| cut())?;
        let (keys, value) = rest.split_at_checked(length).ok_or_else(cut)?;
        Ok(Envelope {
            version,
            created: version.micros().saturating_sub(age),
            site: u16::try_from(site).map_err(|_| format!("site number {site} is too large"))?,
            keys,
            value,
        })
    }

    pub(crate) fn index_keys(&self) -> IndexKeyIter<'a> {
        IndexKeyIter::over(self.keys)
    }

    pub(crate) fn row(&self, key: &[u8], site: Arc<str>) -> Row {
        Row {
            key: key.to_vec(),
            version: self.version,
            created: self.created,
            site,
            value: self.value.to_vec(),
        }
    }
}

/// Key of an entry in a unique index.
pub(crate) fn unique_entry(index: Index, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + key.len());
    out.push(index.0);
    out.extend_from_slice(key);
    out
}

/// What all entries under `key` of an index that is not unique begin with.
pub(crate) fn entry_prefix(index: Index, key: &[u8], room: usize) -> Vec<u8> {
    let mut out = escaped(index, key, room + 2);
    out.extend_from_slice(&[0, 0]);
    out
}

/// Key of an entry in an index that is not unique.
pub(crate) fn entry(index: Index, key: &[u8], primary: &[u8]) -> Vec<u8> {
    let mut out = entry_prefix(index, key, primary.len());
    out.extend_from_slice(primary);
    out
}

/// Where entries of an index that is not unique begin that have `key` or a greater one.
pub(crate) fn entry_bound(index: Index, key: &[u8]) -> Vec<u8> {
    escaped(index, key, 0)
}

/// Key of an entry by modification.
pub(crate) fn modified_entry(version: Version, primary: &[u8]) -> Vec<u8> {
    let mut out = modified_bound(&version.0.to_be_bytes());
    out.extend_from_slice(primary);
    out
}

/// Where entries by modification begin that have this version (big endian) or a later one.
pub(crate) fn modified_bound(version: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    out.push(MODIFIED);
    out.extend_from_slice(version);
    out
}

/// First key after all entries of the index, or of modification.
pub(crate) fn end_of(number: Option<Index>) -> Option<Vec<u8>> {
    // Nothing lies after the entries by modification.
    number.map(|index| vec![index.0 + 1])
}

/// Index key and primary key of an entry in an index that is not unique.
pub(crate) fn split_entry(entry: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = entry.get(1..)?;
    let mut key = Vec::with_capacity(rest.len());
    loop {
        match rest {
            [0, 0, primary @ ..] => return Some((key, primary)),
            [0, 0xff, tail @ ..] => {
                key.push(0);
                rest = tail;
            }
            [byte, tail @ ..] => {
                key.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

/// Version (big endian) and primary key of an entry by modification.
pub(crate) fn split_modified(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    entry.get(1..)?.split_at_checked(8)
}

fn escaped(index: Index, key: &[u8], room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + key.len() + room);
    out.push(index.0);
    for &byte in key {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lower seven bits, with the mark that more follow.
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (position, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * position as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[position + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn envelopes_come_back(version: u64, age in 0u64..1 << 40, site: u16, keys: Vec<u8>, value: Vec<u8>) {
            let version = Version(version);
            let created = version.micros().saturating_sub(age);
            let envelope = Envelope { version, created, site, keys: &keys, value: &value };
            let bytes = envelope.encode();
            prop_assert_eq!(Envelope::decode(&bytes).unwrap(), envelope);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = Envelope::decode(&bytes);
            let _ = split_entry(&bytes);
            let _ = split_modified(&bytes);
        }

        #[test]
        fn entries_split_and_keep_the_order(a: Vec<u8>, b: Vec<u8>, primary: Vec<u8>) {
            let (left, right) = (entry(Index(1), &a, &primary), entry(Index(1), &b, &primary));
            prop_assert_eq!(split_entry(&left), Some((a.clone(), primary.as_slice())));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.starts_with(&entry_prefix(Index(1), &b, 0)), a == b);
            prop_assert_eq!(left >= entry_bound(Index(1), &b), a >= b);
        }
    }
}
