//! Names (IMPIs, IMPUs, NAIs, External Identifiers) in memory: exact, each with the position of a destination set.
//!
//! A name lies in the bucket of its hash, behind its length and its value; a look-up reads the directory, then the few names of
//! one bucket, and compares them whole. A name takes three bytes and one of the directory besides its own. The hash is keyed
//! at random, so that a chosen set of names does not meet in one bucket.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Most bytes of a name: those of a NAI are 253 (RFC 7542 §2.2), and a length is one byte.
pub const MOST_NAME_BYTES: usize = 255;
/// Names of a bucket on average.
const BUCKET: usize = 8;
/// Length and value before a name.
const HEAD: usize = 3;

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty or longer than [`MOST_NAME_BYTES`].
    #[error("the name has {0} bytes; expected 1 to {MOST_NAME_BYTES}")]
    Length(usize),
    /// Names of a file ascend.
    #[error("{name} follows {before}; expected each name once, in ascending order")]
    Order {
        /// The name that comes too late, or again.
        name: String,
        /// The one before it.
        before: String,
    },
    /// It is there twice.
    #[error("{name} is there twice; first on line {first}")]
    Twice {
        /// The name.
        name: String,
        /// The line of the second.
        line: u64,
        /// The line of the first.
        first: u64,
    },
}

/// Names that are being collected, in any order.
#[derive(Debug, Default)]
pub struct NamesBuilder {
    hasher: RandomState,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    /// Of its bytes in the text of all.
    start: usize,
    line: u64,
    value: u16,
    length: u8,
}

impl Entry {
    fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        // The builder has put the bytes there.
        bytes
            .get(self.start..self.start + usize::from(self.length))
            .unwrap_or_default()
    }
}

impl NamesBuilder {
    /// Adds a name of a line, with its value.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn add(&mut self, name: &[u8], value: u16, line: u64) -> Result<(), NameError> {
        let length = u8::try_from(name.len()).ok().filter(|length| *length > 0);
        let length = length.ok_or(NameError::Length(name.len()))?;
        self.entries.push(Entry {
            hash: self.hasher.hash_one(name),
            start: self.bytes.len(),
            line,
            value,
            length,
        });
        self.bytes.extend_from_slice(name);
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Builds the table.
    ///
    /// # Errors
    /// When a name is there twice, with both lines.
    pub fn finish(mut self) -> Result<Names, NameError> {
        let bytes = &self.bytes;
        // Buckets follow one another in the order of hashes, and the same name lies side by side.
        self.entries.sort_unstable_by(|one, other| {
            let names = || one.name(bytes).cmp(other.name(bytes));
            one.hash
                .cmp(&other.hash)
                .then_with(names)
                .then(one.line.cmp(&other.line))
        });
        for pair in self.entries.windows(2) {
            if let [one, other] = pair
                && one.hash == other.hash
                && one.name(bytes) == other.name(bytes)
            {
                return Err(NameError::Twice {
                    name: String::from_utf8_lossy(one.name(bytes)).into_owned(),
                    line: other.line,
                    first: one.line,
                });
            }
        }
        let buckets = self.entries.len().div_ceil(BUCKET);
        let mut data = Vec::with_capacity(bytes.len() + HEAD * self.entries.len());
        let mut directory = Vec::with_capacity(buckets + 1);
        for entry in &self.entries {
            let bucket = bucket_of(entry.hash, buckets);
            while directory.len() <= bucket {
                directory.push(data.len() as u64);
            }
            data.push(entry.length);
            data.extend_from_slice(&entry.value.to_le_bytes());
            data.extend_from_slice(entry.name(bytes));
        }
        directory.resize(buckets + 1, data.len() as u64);
        Ok(Names {
            hasher: self.hasher,
            count: self.entries.len(),
            directory: directory.into_boxed_slice(),
            data: data.into_boxed_slice(),
        })
    }
}

/// The bucket of a hash, in the order of hashes.
fn bucket_of(hash: u64, buckets: usize) -> usize {
    // Below `buckets`, as the upper half of a product with it.
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// Names with their values.
#[derive(Default)]
pub struct Names {
    hasher: RandomState,
    count: usize,
    /// Where each bucket begins, and the last one ends.
    directory: Box<[u64]>,
    data: Box<[u8]>,
}

impl Names {
    /// The value of a name, compared byte by byte; `None` when it is unknown.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<u16> {
        if self.count == 0 || name.len() > MOST_NAME_BYTES {
            return None;
        }
        let bucket = bucket_of(self.hasher.hash_one(name), self.directory.len() - 1);
        let (start, end) = (self.directory.get(bucket)?, self.directory.get(bucket + 1)?);
        let mut bucket = entries(self.data.get(*start as usize..*end as usize)?);
        bucket.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// All names with their values, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u16)> {
        entries(&self.data)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The memory that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.len() + size_of_val(&*self.directory)
    }
}

/// The names that follow one another in bytes of a table.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], u16)> {
    std::iter::from_fn(move || {
        let [length, low, high, behind @ ..] = rest else {
            return None;
        };
        let (name, next) = behind.split_at_checked(usize::from(*length))?;
        rest = next;
        Some((name, u16::from_le_bytes([*low, *high])))
    })
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({} in {} bytes)", self.count, self.bytes())
    }
}
