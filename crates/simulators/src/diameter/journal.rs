//! The request numbers that OCSs have counted, in a file that outlives them: a record of twelve octets each, written before the
//! answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Octets of a record.
const LENGTH: usize = 12;
/// Records that are read at once.
const AT_ONCE: usize = 4096;

/// A request number that an OCS has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the session.
    pub session: u32,
    /// CC-Request-Number.
    pub number: u32,
    /// The OCS, by its number within the process.
    pub node: u16,
    /// Whether the request had the T flag.
    pub is_again: bool,
}

/// A file of entries. Each write reaches the kernel, so that none is lost when the process is killed.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    /// An empty one.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    /// Adds an entry; whether it is written.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        let mut record = [0; LENGTH];
        record[..4].copy_from_slice(&entry.session.to_be_bytes());
        record[4..8].copy_from_slice(&entry.number.to_be_bytes());
        record[8..10].copy_from_slice(&entry.node.to_be_bytes());
        record[11] = u8::from(entry.is_again);
        self.0.write_all(&record).is_ok()
    }
}

/// Has `take` take each entry of a file, in the order in which they were counted.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path, mut take: impl FnMut(Entry)) -> io::Result<()> {
    let file = File::open(path)?;
    let mut buffer = Vec::with_capacity(LENGTH * AT_ONCE);
    loop {
        buffer.clear();
        let length = (&file).take((LENGTH * AT_ONCE) as u64).read_to_end(&mut buffer)?;
        for record in buffer.chunks_exact(LENGTH) {
            if let &[a, b, c, d, e, f, g, h, i, j, _, again] = record {
                take(Entry {
                    session: u32::from_be_bytes([a, b, c, d]),
                    number: u32::from_be_bytes([e, f, g, h]),
                    node: u16::from_be_bytes([i, j]),
                    is_again: again != 0,
                });
            }
        }
        if length < LENGTH * AT_ONCE {
            return Ok(());
        }
    }
}
