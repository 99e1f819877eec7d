//! The header of 128 bytes.

/// The version of the format that this program reads and writes.
pub(crate) const VERSION: u32 = 1;
/// Bytes of a header.
pub(super) const HEADER: usize = 128;
/// What a file of numbers begins with.
pub(super) const NUMBERS: &[u8; 8] = b"SBXNUMS\n";
/// What a file of names begins with.
pub(super) const NAMES: &[u8; 8] = b"SBXNAME\n";

/// What a header holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Numbers of all blocks, or names of all pages.
    pub(super) numbers: u64,
    /// Where the index begins; its second copy follows it.
    pub(super) index_offset: u64,
    /// Bytes of one copy of the index.
    pub(super) index_bytes: u64,
    /// Bytes of the index before the table of sets.
    pub(super) directory_bytes: u64,
    /// CRC-32C of a copy of the index.
    pub(super) index_sum: u32,
    /// What distinguishes this file from others.
    pub(super) identity: u64,
    /// The identity of the base whose changed blocks these are; 0 for a base.
    pub(super) base: u64,
    /// The position in the journal up to which changes are in the file.
    pub(super) position: u64,
}

/// Why bytes cannot be read as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    Foreign,
    Version(u32),
    Damaged,
}

impl Header {
    /// The length of the file.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        let indexes = self.index_bytes.checked_mul(2)?;
        self.index_offset.checked_add(indexes)?.checked_add(HEADER as u64)
    }

    pub(super) fn encode(&self, magic: &[u8; 8]) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(magic);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.index_sum.to_le_bytes());
        let words = [
            self.numbers,
            self.index_offset,
            self.index_bytes,
            self.directory_bytes,
            self.identity,
            self.base,
            self.position,
        ];
        for (at, word) in words.into_iter().enumerate() {
            bytes[24 + at * 8..32 + at * 8].copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8], magic: &[u8; 8]) -> Result<Self, NoHeader> {
        let bytes: &[u8; HEADER] = bytes.try_into().map_err(|_| NoHeader::Foreign)?;
        if &bytes[..8] != magic {
            return Err(NoHeader::Foreign);
        }
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(24 + at * 8)) | u64::from(half(28 + at * 8)) << 32;
        let mut unsummed = *bytes;
        unsummed[12..16].fill(0);
        if crc32c::crc32c(&unsummed) != half(12) {
            return Err(NoHeader::Damaged);
        }
        // Behind the checksum: a flipped bit in the version is damage, not another version. Every version has magic, version
        // and checksum over 128 bytes.
        if half(8) != VERSION {
            return Err(NoHeader::Version(half(8)));
        }
        Ok(Self {
            index_sum: half(16),
            numbers: word(0),
            index_offset: word(1),
            index_bytes: word(2),
            directory_bytes: word(3),
            identity: word(4),
            base: word(5),
            position: word(6),
        })
    }
}
