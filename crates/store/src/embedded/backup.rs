//! A copy of a store that no process has open, and a store made of a copy again.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::catalogue::CATALOGUE;
use super::checkpoint::CHECKPOINT;
use super::disk;
use super::files::{Listing, failed};
use super::lock::{LOCK, Lock};
use super::mark::MARK;
use super::{inspect, private};
use crate::copies::BackedUp;
use crate::error::Error;

/// Copies the store of a directory into another one, which is created. Complete files of the log are linked where both
/// are on one file system, so that this takes seconds.
///
/// # Errors
/// When a process has the store open, when it is damaged, when the other directory is not empty, or cannot be written.
pub fn backup(directory: &Path, to: &Path) -> Result<BackedUp, Error> {
    // A directory that is not a store must not get a lock.
    if !directory.join(CATALOGUE).exists() {
        return Err(failed(directory, "this directory holds no store"));
    }
    if let Some(damage) = inspect::verify(directory)?.damage.first() {
        return Err(failed(
            &directory.join(&damage.file),
            format!(
                "damaged at byte {}: {}; nothing was copied",
                damage.byte, damage.reason
            ),
        ));
    }
    let _lock = Lock::take(directory)?;
    private::create_directory(to).map_err(|error| failed(to, error))?;
    let mut there = std::fs::read_dir(to).map_err(|error| failed(to, error))?;
    if there.next().is_some() {
        return Err(failed(to, "the directory for the copy is not empty"));
    }
    private::tighten(to, |_| true).map_err(|error| failed(to, error))?;
    let mut made = BackedUp::default();
    let listing = Listing::read(directory)?;
    for (position, name) in listing.kept.iter().enumerate() {
        let from = name.path(directory);
        let newest = position + 1 == listing.kept.len();
        let copy = name.path(to);
        if !newest && std::fs::hard_link(&from, &copy).is_ok() {
            made.linked += 1;
        } else {
            copy_file(&from, &copy)?;
        }
        made.files += 1;
        made.bytes += std::fs::metadata(&from)
            .map_err(|error| failed(&from, error))?
            .len();
    }
    for name in [CATALOGUE, MARK] {
        copy_file(&directory.join(name), &to.join(name))?;
    }
    disk::sync_directory(&to.join(CATALOGUE)).map_err(|error| failed(to, error))?;
    Ok(made)
}

/// What [`restore`] has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Files of the log.
    pub files: usize,
    /// Bytes of the log.
    pub bytes: u64,
    /// Where the store that was in the directory is now.
    pub aside: Option<PathBuf>,
}

/// Puts a copy in the place of the store of a directory, which is created if it is absent. A store that is there is set aside in
/// a folder of the directory; what else is there stays. The copy stays as it is, and shares no file with the store. Root restores
/// into the directory of any user, who then owns the files.
///
/// # Errors
/// When the copy is damaged, when a process has either store open, when the files cannot be written.
pub fn restore(from: &Path, directory: &Path) -> Result<Restored, Error> {
    if !from.join(CATALOGUE).exists() {
        return Err(failed(from, "this directory holds no store"));
    }
    if let Some(damage) = inspect::verify(from)?.damage.first() {
        let reason = format!(
            "damaged at byte {}: {}; nothing was restored",
            damage.byte, damage.reason
        );
        return Err(failed(&from.join(&damage.file), reason));
    }
    private::create_directory_for_owner(directory).map_err(|error| failed(directory, error))?;
    let same = |path: &Path| path.canonicalize().map_err(|error| failed(path, error));
    if same(from)? == same(directory)? {
        return Err(failed(directory, "this is the copy itself"));
    }
    let _lock = Lock::take(directory)?;
    private::give_to_owner_of(directory, &directory.join(LOCK)).map_err(|error| failed(directory, error))?;
    let mut made = Restored {
        aside: set_aside(directory)?,
        ..Restored::default()
    };
    let listing = Listing::read(from)?;
    // The catalogue last: without it no process takes what is there for a store.
    let names = listing.kept.iter().map(ToString::to_string);
    for name in names.chain([MARK.to_owned(), CATALOGUE.to_owned()]) {
        let (source, copy) = (from.join(&name), directory.join(&name));
        // The first format had no mark.
        if name == MARK && !source.exists() {
            continue;
        }
        copy_file(&source, &copy)?;
        private::give_to_owner_of(directory, &copy).map_err(|error| failed(&copy, error))?;
    }
    for name in &listing.kept {
        let path = name.path(directory);
        made.files += 1;
        made.bytes += std::fs::metadata(&path)
            .map_err(|error| failed(&path, error))?
            .len();
    }
    disk::sync_directory(&directory.join(CATALOGUE)).map_err(|error| failed(directory, error))?;
    Ok(made)
}

/// Moves the files of a store into a folder of its directory; none: there are none.
fn set_aside(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let listing = Listing::read(directory)?;
    let logs = listing
        .kept
        .iter()
        .chain(&listing.replaced)
        .map(ToString::to_string);
    // The catalogue first, for the same reason.
    let own = [CATALOGUE, MARK, CHECKPOINT].map(str::to_owned);
    let names: Vec<String> = own.into_iter().chain(logs).collect();
    let names: Vec<&String> = names
        .iter()
        .filter(|name| directory.join(name).exists())
        .collect();
    if names.is_empty() {
        return Ok(None);
    }
    let mut folders = (1..10_000).map(|number| directory.join(format!("store.replaced-{number}")));
    let folder = folders.find(|folder| !folder.exists()).ok_or_else(|| {
        failed(
            directory,
            "ten thousand folders store.replaced-N are there already",
        )
    })?;
    private::create_directory(&folder).map_err(|error| failed(&folder, error))?;
    private::give_to_owner_of(directory, &folder).map_err(|error| failed(&folder, error))?;
    for name in names {
        disk::rename(&directory.join(name), &folder.join(name)).map_err(|error| failed(&folder, error))?;
    }
    disk::sync_directory(&folder).map_err(|error| failed(&folder, error))?;
    Ok(Some(folder))
}

/// A copy, on the disk.
fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let copy = || -> std::io::Result<()> {
        let mut file = private::create_new(to)?;
        std::io::copy(&mut std::fs::File::open(from)?, &mut file)?;
        file.sync_all()
    };
    copy().map_err(|error| failed(to, error))
}
