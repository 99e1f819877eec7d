//! One entry of the log, as bytes.
//!
//! ```text
//!  0  u32  checksum (CRC-32) of everything after it
//!  4  u32  length of the entry, without padding
//!  8  u8   kind: 1 put, 2 delete; 3 head of a group, 4 end of the file ([`Note`])
//!  9  u8   flags: bit 0, the batch continues with the next entry; bit 1, it began before this one (format 2)
//! 10  u16  number of the table
//! 12  u32  oldest segment that may hold an earlier entry of the same record; ffffffff: none
//! 16  u64  version
//! 24       varints: age (time from creation to this write), site, length of the key, length of the index keys
//!          key, index keys, value
//! ```
//!
//! Integers are little endian. Entries begin at multiples of eight. The index keys of the record stand beside its
//! value, so that a later write removes exactly the index entries that an earlier one made, even if the codec has
//! changed in between.

use std::sync::Arc;

use crate::engine::Row;
use crate::record::IndexKeyIter;
use crate::version::Version;

/// Bytes before the varints.
pub(super) const HEAD: usize = 24;
/// Entries begin at multiples of this.
pub(super) const ALIGN: usize = 8;
/// No earlier entry of the record exists.
pub(super) const NONE_OLDER: u32 = u32::MAX;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const GROUP: u8 = 3;
const END: u8 = 4;
const CONTINUES: u8 = 1;
const FOLLOWS: u8 = 2;

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Delete,
    /// Begins what was flushed together; its value is a [`Note`].
    Group,
    /// Ends a file to which nothing will be added; its value is a [`Note`].
    End,
}

/// An entry, borrowed from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) kind: Kind,
    /// The next entry belongs to the same batch.
    pub(super) continues: bool,
    /// The entry before belongs to the same batch. Not said in files of format 1.
    pub(super) follows: bool,
    pub(super) table: u16,
    pub(super) oldest: u32,
    pub(super) version: Version,
    pub(super) created: u64,
    pub(super) site: u16,
    pub(super) key: &'a [u8],
    pub(super) keys: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Appends the entry and its padding; the number of bytes appended.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        out.push(match self.kind {
            Kind::Put => PUT,
            Kind::Delete => DELETE,
            Kind::Group => GROUP,
            Kind::End => END,
        });
        out.push(if self.continues { CONTINUES } else { 0 } | if self.follows { FOLLOWS } else { 0 });
        out.extend_from_slice(&self.table.to_le_bytes());
        out.extend_from_slice(&self.oldest.to_le_bytes());
        out.extend_from_slice(&self.version.0.to_le_bytes());
        // Most records are never changed: one byte instead of eight.
        put_varint(out, self.version.micros().saturating_sub(self.created));
        put_varint(out, u64::from(self.site));
        put_varint(out, self.key.len() as u64);
        put_varint(out, self.keys.len() as u64);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.keys);
        out.extend_from_slice(self.value);
        let length = out.len() - start;
        // Batches are bounded far below 4 GiB (`Config::validate`).
        out[start + 4..start + 8].copy_from_slice(&(length as u32).to_le_bytes());
        let checksum = crc32fast::hash(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        out.resize(start + padded(length), 0);
        out.len() - start
    }

    /// The entry at the beginning of `bytes`.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Entry<'a>, String> {
        let length = length(bytes).ok_or_else(|| "no entry here".to_owned())?;
        let entry = bytes
            .get(..length)
            .ok_or_else(|| format!("an entry of {length} bytes, {} are there", bytes.len()))?;
        if crc32fast::hash(&entry[4..]).to_le_bytes() != entry[..4] {
            return Err("the checksum does not fit".to_owned());
        }
        Entry::parse(entry)
    }

    /// As [`Entry::decode`], for bytes of known good origin: the checksum is not looked at.
    pub(super) fn parse(entry: &'a [u8]) -> Result<Entry<'a>, String> {
        let cut = || "the entry is cut short".to_owned();
        let length = length(entry).ok_or_else(cut)?;
        let (head, rest) = entry
            .get(..length)
            .ok_or_else(cut)?
            .split_first_chunk::<HEAD>()
            .ok_or_else(cut)?;
        let kind = match head[8] {
            PUT => Kind::Put,
            DELETE => Kind::Delete,
            GROUP => Kind::Group,
            END => Kind::End,
            other => return Err(format!("unknown kind {other}")),
        };
        let version = Version(u64::from_le_bytes([
            head[16], head[17], head[18], head[19], head[20], head[21], head[22], head[23],
        ]));
        let (age, rest) = take_varint(rest).ok_or_else(cut)?;
        let (site, rest) = take_varint(rest).ok_or_else(cut)?;
        let (key_length, rest) = take_varint(rest).ok_or_else(cut)?;
        let (keys_length, rest) = take_varint(rest).ok_or_else(cut)?;
        let (key, rest) = split(rest, key_length).ok_or_else(cut)?;
        let (keys, value) = split(rest, keys_length).ok_or_else(cut)?;
        Ok(Entry {
            kind,
            continues: head[9] & CONTINUES != 0,
            follows: head[9] & FOLLOWS != 0,
            table: u16::from_le_bytes([head[10], head[11]]),
            oldest: u32::from_le_bytes([head[12], head[13], head[14], head[15]]),
            version,
            created: version.micros().saturating_sub(age),
            site: u16::try_from(site).map_err(|_| format!("site number {site} is too large"))?,
            key,
            keys,
            value,
        })
    }

    /// Bytes it takes in the log, with padding.
    pub(super) fn size(&self) -> u64 {
        let age = self.version.micros().saturating_sub(self.created);
        let lengths = [
            age,
            u64::from(self.site),
            self.key.len() as u64,
            self.keys.len() as u64,
        ];
        let varints: usize = lengths.into_iter().map(varint_size).sum();
        padded(HEAD + varints + self.key.len() + self.keys.len() + self.value.len()) as u64
    }

    /// Whether it writes or deletes a record; the others speak of the log itself.
    pub(super) fn is_of_a_record(&self) -> bool {
        matches!(self.kind, Kind::Put | Kind::Delete)
    }

    pub(super) fn index_keys(&self) -> IndexKeyIter<'a> {
        IndexKeyIter::over(self.keys)
    }

    pub(super) fn row(&self, site: Arc<str>) -> Row {
        Row {
            key: self.key.to_vec(),
            version: self.version,
            created: self.created,
            site,
            value: self.value.to_vec(),
        }
    }
}

/// What the head of a group and the end of a file say of themselves and of all entries before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Number of the file (the last, where it covers several).
    pub(super) number: u32,
    /// Where the entry stands in it.
    pub(super) at: u64,
    /// Head of a group: up to where the file was on the disk when the group was written.
    /// End of a file: how many entries of records it has.
    pub(super) figure: u64,
    /// [`chain`] of all entries before it in the file.
    pub(super) chain: u64,
}

/// Bytes of the entry of a [`Note`].
pub(super) const NOTE: usize = 56;
const NOTE_VALUE: usize = 28;

impl Note {
    /// Appends it as an entry of this kind.
    pub(super) fn encode(&self, kind: Kind, out: &mut Vec<u8>) -> usize {
        let mut value = [0; NOTE_VALUE];
        value[..4].copy_from_slice(&self.number.to_le_bytes());
        value[4..12].copy_from_slice(&self.at.to_le_bytes());
        value[12..20].copy_from_slice(&self.figure.to_le_bytes());
        value[20..].copy_from_slice(&self.chain.to_le_bytes());
        let entry = Entry {
            kind,
            continues: false,
            follows: false,
            table: 0,
            oldest: NONE_OLDER,
            version: Version(0),
            created: 0,
            site: 0,
            key: &[],
            keys: &[],
            value: &value,
        };
        entry.encode(out)
    }

    /// What an entry says, if it is one of these.
    pub(super) fn of(entry: &Entry<'_>) -> Option<Note> {
        let value: &[u8; NOTE_VALUE] = entry.value.try_into().ok()?;
        let number = |at: usize| Some(u64::from_le_bytes(*value.get(at..)?.first_chunk::<8>()?));
        let note = Note {
            number: u32::from_le_bytes(*value.first_chunk::<4>()?),
            at: number(4)?,
            figure: number(12)?,
            chain: number(20)?,
        };
        (!entry.is_of_a_record()).then_some(note)
    }

    /// The head of a group at the beginning of `bytes`, if there is one.
    pub(super) fn group_at(bytes: &[u8]) -> Option<Note> {
        let bytes = bytes.get(..NOTE)?;
        if bytes[8] != GROUP {
            return None;
        }
        Note::of(&Entry::decode(bytes).ok()?)
    }
}

/// A number that stands for all entries of a file up to one, in their order: that of those before it, and the bytes
/// of the entry. It notices what the checksum of each entry cannot: entries that are missing, doubled or displaced.
pub(super) fn chain(before: u64, entry: &[u8]) -> u64 {
    let checksum = entry
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes));
    (before.rotate_left(23) ^ u64::from(checksum)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Length of the entry that begins here, without padding; `None` where no entry can begin.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk::<4>()?);
    usize::try_from(length).ok().filter(|length| *length > HEAD)
}

/// As [`length`], for bytes of which it is not known that an entry begins: most that are none are found out.
pub(super) fn plausible_length(bytes: &[u8]) -> Option<usize> {
    let (kind, flags) = (*bytes.get(8)?, *bytes.get(9)?);
    let known = (PUT..=END).contains(&kind) && flags <= CONTINUES | FOLLOWS;
    length(bytes).filter(|_| known)
}

/// `length` rounded up to the next multiple of [`ALIGN`].
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGN)
}

fn split(bytes: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(at).ok()?)
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lower seven bits, with the mark that more follow.
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_size(value: u64) -> usize {
    (64 - value.leading_zeros() as usize).div_ceil(7).max(1)
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
        fn entries_come_back(
            delete: bool, continues: bool, follows: bool, table: u16, oldest: u32, version: u64, age in 0u64..1 << 40,
            site: u16, key: Vec<u8>, keys: Vec<u8>, value: Vec<u8>,
        ) {
            let version = Version(version);
            let entry = Entry {
                kind: if delete { Kind::Delete } else { Kind::Put },
                continues, follows, table, oldest, version,
                created: version.micros().saturating_sub(age),
                site, key: &key, keys: &keys, value: &value,
            };
            let mut bytes = vec![7; 3];
            let size = entry.encode(&mut bytes);
            prop_assert_eq!(size % ALIGN, 0);
            prop_assert_eq!(size as u64, entry.size());
            prop_assert_eq!(bytes.len(), 3 + size);
            prop_assert_eq!(Entry::decode(&bytes[3..]).unwrap(), entry);
            // One changed bit is noticed, in the padding it does not matter.
            let used = length(&bytes[3..]).unwrap();
            bytes[3 + used / 2] ^= 0x10;
            prop_assert!(Entry::decode(&bytes[3..]).is_err());
        }

        #[test]
        fn notes_come_back(number: u32, at: u64, figure: u64, chain: u64) {
            let note = Note { number, at, figure, chain };
            let mut bytes = Vec::new();
            prop_assert_eq!(note.encode(Kind::Group, &mut bytes), NOTE);
            prop_assert_eq!(Note::group_at(&bytes), Some(note));
            bytes.clear();
            prop_assert_eq!(note.encode(Kind::End, &mut bytes), NOTE);
            prop_assert_eq!(Note::group_at(&bytes), None);
            prop_assert_eq!(Note::of(&Entry::decode(&bytes).unwrap()), Some(note));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = Entry::decode(&bytes);
            let _ = Entry::parse(&bytes);
        }
    }
}
