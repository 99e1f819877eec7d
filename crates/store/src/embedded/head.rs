//! The head of a file of the log.
//!
//! ```text
//!  0  8 bytes  magic, the last byte is the format: 1 or 2
//!  8  u32      at which segment the log stood when compaction made the file; 0: never compacted
//! 12  u32      format 2: checksum (CRC-32) of the bytes before it and of the numbers in the file's name
//! ```
//!
//! The checksum covers the name, so that a file under the name of another is noticed. Files of format 1, which
//! earlier releases wrote, are read; only files of format 2 are written.

use super::name::Name;

/// Bytes before the first entry.
pub(super) const FILE_HEAD: u64 = 16;
const SIZE: usize = FILE_HEAD as usize;
const MAGIC: &[u8; 7] = b"sbxlog\x00";

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Of earlier releases: entries and nothing else, so that a missing end cannot be noticed.
    One = 1,
    /// Groups have a head and complete files an end.
    Two = 2,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) format: Format,
    pub(super) compacted_at: u32,
}

impl Head {
    /// The bytes of a head of format 2.
    pub(super) fn encode(name: Name, compacted_at: u32) -> [u8; SIZE] {
        let mut head = [0; SIZE];
        head[..7].copy_from_slice(MAGIC);
        head[7] = Format::Two as u8;
        head[8..12].copy_from_slice(&compacted_at.to_le_bytes());
        let checksum = checksum(&head, name);
        head[12..].copy_from_slice(&checksum);
        head
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(super) fn decode(head: &[u8; SIZE], name: Name) -> Result<Head, String> {
        if &head[..7] != MAGIC {
            return Err("the head is not that of a file of the log".to_owned());
        }
        let compacted_at = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let format = match head[7] {
            1 => Format::One,
            2 if head[12..] == checksum(head, name) => Format::Two,
            2 => return Err("the checksum of the head does not fit".to_owned()),
            other => {
                return Err(format!(
                    "the head names format {other}, this program reads 1 and 2"
                ));
            }
        };
        Ok(Head { format, compacted_at })
    }
}

fn checksum(head: &[u8; SIZE], name: Name) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..12]);
    for number in [name.first, name.last, name.generation] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_bit_and_each_other_name_is_noticed() {
        let name = Name::fresh(7);
        let head = Head::encode(name, 3);
        let expected = Head {
            format: Format::Two,
            compacted_at: 3,
        };
        assert_eq!(Head::decode(&head, name), Ok(expected));
        for bit in 0..SIZE * 8 {
            let mut damaged = head;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&damaged, name).is_err(), "bit {bit}");
        }
        assert!(Head::decode(&head, Name::fresh(8)).is_err());
    }
}
