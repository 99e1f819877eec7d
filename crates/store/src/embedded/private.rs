//! Files and directories that only their owner may read: what is stored is subscribers' data.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;
/// Rights of others than the owner.
const OTHERS: u32 = 0o077;

/// Creates a file, or empties the one that is there.
pub(super) fn create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().create(true).truncate(true))
}

/// Creates a file that must not be there yet.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().create_new(true))
}

/// Opens a file, or creates it.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().create(true).truncate(false))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A symbolic link would have a file elsewhere narrowed, or written (CWE-59).
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = options
        .read(true)
        .write(true)
        .mode(FILE)
        .custom_flags(flags)
        .open(path);
    let file =
        file.map_err(
            |error| match error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
                true => io::Error::other("a symbolic link, which a store does not follow"),
                false => error,
            },
        )?;
    // The mode counts only for a file that was created, and less the umask.
    if file.metadata()?.mode() & 0o777 != FILE
        && let Err(error) = file.set_permissions(Permissions::from_mode(FILE))
    {
        // Somebody else's file, which we may write all the same.
        tracing::warn!(path = %path.display(), %error, "others than the owner may read this");
    }
    Ok(file)
}

/// Creates a directory with all above it; those it creates are the owner's alone. One that is there must be this user's, or
/// root's as a volume for a group is: its owner could replace any file in it.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)?;
    let (owner, own) = (
        std::fs::metadata(path)?.uid(),
        rustix::process::geteuid().as_raw(),
    );
    if owner == own || owner == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the directory belongs to user {owner}, this process is user {own}: give it a directory of its own (chown)"
        ),
    ))
}

/// Creates a directory with all above it as [`create_directory`] does. Root may use that of any user, and gives those that it
/// creates to the owner of the one above, whose process could not open them otherwise.
pub(super) fn create_directory_for_owner(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return create_directory(path);
    }
    if path.is_dir() {
        return Ok(());
    }
    let above = match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    };
    create_directory_for_owner(above)?;
    DirBuilder::new().mode(DIRECTORY).create(path)?;
    give_to_owner_of(above, path)
}

/// Gives a file that root has made in the directory of another user to that user, whose process could not open it otherwise.
pub(super) fn give_to_owner_of(directory: &Path, path: &Path) -> io::Result<()> {
    let (wanted, has) = (std::fs::metadata(directory)?, path.symlink_metadata()?);
    if wanted.uid() == has.uid() || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // That user could have put a symbolic link in its place, which must not be followed (CWE-59).
    std::os::unix::fs::lchown(path, Some(wanted.uid()), Some(wanted.gid()))
}

/// Takes rights of others from a directory and the files in it, as earlier releases left them; says so where that
/// cannot be done. A directory that also holds what is not the store's stays as it is, for others may need it.
pub(super) fn tighten(directory: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut foreign = None;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(&is_ours) {
            narrow(&entry.path());
        } else {
            foreign = Some(entry.path());
        }
    }
    match foreign {
        None => narrow(directory),
        Some(foreign) if mode(directory)? & OTHERS != 0 => tracing::warn!(
            directory = %directory.display(),
            foreign = %foreign.display(),
            "others may look into the directory of the store; it stays as it is because it holds more than the store"
        ),
        Some(_) => {}
    }
    Ok(())
}

fn narrow(path: &Path) {
    let narrowed = mode(path).and_then(|mode| match mode & OTHERS {
        0 => Ok(false),
        _ => std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700)).map(|()| true),
    });
    match narrowed {
        Ok(false) => {}
        Ok(true) => tracing::info!(path = %path.display(), "took rights of others than the owner away"),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "others than the owner may read this");
        }
    }
}

fn mode(path: &Path) -> io::Result<u32> {
    Ok(std::fs::metadata(path)?.mode() & 0o777)
}
