//! Whether a directory takes writes: looked at while a store is in trouble, since no write is accepted then.

use std::io::{self, Write as _};
use std::path::Path;

use super::private;

/// Name of the file, which is removed at once.
const PROBE: &str = "store.probe";
/// Bytes written. Fewer would find room where the next group does not.
const BYTES: usize = 1 << 20;

/// Writes, flushes and removes a file.
pub(super) fn write(directory: &Path) -> io::Result<()> {
    let path = directory.join(PROBE);
    let written = private::create(&path).and_then(|mut file| {
        file.write_all(&vec![0; BYTES])?;
        file.sync_all()
    });
    // One that is left takes its room from the log.
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}
