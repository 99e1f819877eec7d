//! A copy of a store that no process has open, and a store made of a copy again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::catalogue::{CATALOGUE, Catalogue, CatalogueTable};
use super::checkpoint::CHECKPOINT;
use super::disk;
use super::files::{Listing, failed};
use super::lock::{LOCK, Lock};
use super::mark::MARK;
use super::running::has_room;
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

/// Where a copy is until all of it is on the disk.
const INCOMPLETE: &str = "store.incomplete";

/// Puts a copy in the place of the store of a directory, which is created if it is absent. A store that is there is set aside in
/// a folder of the directory, when all of the copy is on the disk; what else is there stays. The copy stays as it is, and shares no
/// file with the store. Root restores into the directory of any user, who then owns the files.
///
/// # Errors
/// When the copy is damaged or of another function, when a process has the store open, when the disk has no room, when the
/// files cannot be written.
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
    refuse_other_function(from, directory)?;
    let incomplete = directory.join(INCOMPLETE);
    if let Err(error) = std::fs::remove_dir_all(&incomplete)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(failed(&incomplete, error));
    }
    let (names, mut made) = match fill(from, directory, &incomplete) {
        Ok(filled) => filled,
        Err(error) => {
            // What is left of it goes with the next attempt.
            let _ = std::fs::remove_dir_all(&incomplete);
            return Err(error);
        }
    };
    made.aside = set_aside(directory)?;
    for name in names {
        disk::rename(&incomplete.join(&name), &directory.join(&name))
            .map_err(|error| not_in_place(&made, &incomplete, error))?;
    }
    disk::sync_directory(&directory.join(CATALOGUE)).map_err(|error| failed(directory, error))?;
    std::fs::remove_dir(&incomplete).map_err(|error| failed(&incomplete, error))?;
    Ok(made)
}

/// What is said when the store was set aside and the copy could not take its place.
fn not_in_place(made: &Restored, incomplete: &Path, error: std::io::Error) -> Error {
    let aside = match &made.aside {
        Some(folder) => format!("; the store that was there is in {}", folder.display()),
        None => String::new(),
    };
    failed(incomplete, format!("{error}{aside}"))
}

/// Refuses a copy that cannot be of the function whose store is there: each has tables that the other lacks. Releases only add
/// tables, and a table has the same name in two functions.
fn refuse_other_function(from: &Path, directory: &Path) -> Result<(), Error> {
    // One that cannot be read is a reason to restore.
    let (Ok(Some(copy)), Ok(Some(there))) = (Catalogue::read(from), Catalogue::read(directory)) else {
        return Ok(());
    };
    let lacks = |of: &Catalogue, all: &Catalogue| {
        let is_absent = |one: &&CatalogueTable| !all.tables.iter().any(|other| other.name == one.name);
        of.tables.iter().find(is_absent).map(|table| table.name.clone())
    };
    match (lacks(&copy, &there), lacks(&there, &copy)) {
        (Some(first), Some(second)) => Err(failed(
            from,
            format!(
                "of another function than {}: it has a table {first} and lacks {second}; nothing was restored. Name the directory of its own function, or an empty one",
                directory.display()
            ),
        )),
        _ => Ok(()),
    }
}

/// Copies the files of a store into a new folder of a directory, and gives them to its owner; returns their names.
fn fill(from: &Path, directory: &Path, incomplete: &Path) -> Result<(Vec<String>, Restored), Error> {
    let mut made = Restored::default();
    let listing = Listing::read(from)?;
    for name in &listing.kept {
        let path = name.path(from);
        made.files += 1;
        made.bytes += std::fs::metadata(&path)
            .map_err(|error| failed(&path, error))?
            .len();
    }
    has_room(directory, made.bytes).map_err(|error| failed(directory, error))?;
    std::fs::create_dir(incomplete).map_err(|error| failed(incomplete, error))?;
    // The catalogue last: without it no process takes what is there for a store.
    let names = listing.kept.iter().map(ToString::to_string);
    let names = names.chain([MARK.to_owned(), CATALOGUE.to_owned()]);
    // The first format had no mark.
    let names: Vec<String> = names.filter(|name| from.join(name).exists()).collect();
    for name in &names {
        let copy = incomplete.join(name);
        copy_file(&from.join(name), &copy)?;
        private::give_to_owner_of(directory, &copy).map_err(|error| failed(&copy, error))?;
    }
    Ok((names, made))
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
