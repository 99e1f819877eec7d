//! Small files of a function's own that only its owner may read: identities, keys.

use std::fs;
use std::io;
use std::path::Path;

/// Returns what a file has; `None` where there is none.
///
/// # Errors
/// When the file cannot be read; the text names it.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::read(path) {
        Ok(der) => Ok(Some(der)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(path)(error)),
    }
}

/// Makes a text of an error, which names the file.
pub fn fault(path: &Path) -> impl FnOnce(io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// Returns the content of a file that only its owner may read; where there is none, `make` makes it.
///
/// The file has its whole content from its first moment: of several processes that make it at once all return what the
/// fastest has written, and a crash leaves no part of it.
///
/// # Errors
/// When the file, or its directory, can be neither read nor made; the text names it.
pub fn read_or_create(
    path: &Path,
    make: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    if let Some(bytes) = read(path)? {
        return Ok(bytes);
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    create_private(directory).map_err(fault(directory))?;
    publish_private(directory, path, &make()?).map_err(fault(path))?;
    fs::read(path).map_err(fault(path))
}

/// Creates a directory into which only its owner may look.
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Writes a file that only its owner may read, under another name first. A file that is there stays.
fn publish_private(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // No other process, nor one that crashed, has used this name.
    let temporary = directory.join(format!(".{}.new", uuid::Uuid::new_v4()));
    let linked = write_private(&temporary, bytes).and_then(|()| fs::hard_link(&temporary, path));
    let removed = fs::remove_file(&temporary);
    match linked {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    removed?;
    fs::File::open(directory)?.sync_all()
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
