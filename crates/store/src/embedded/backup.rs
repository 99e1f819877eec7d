//! A copy of a store that no process has open.

use std::path::Path;

use serde::Serialize;

use super::catalogue::CATALOGUE;
use super::disk;
use super::files::{Listing, failed};
use super::lock::Lock;
use super::mark::MARK;
use super::{inspect, private};
use crate::error::Error;

/// What [`backup`] has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedUp {
    /// Files of the log.
    pub files: usize,
    /// Of these, those that both directories share as hard links: nothing is written to them any more.
    pub linked: usize,
    /// Bytes of the log.
    pub bytes: u64,
}

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

/// A copy, on the disk.
fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let copy = || -> std::io::Result<()> {
        let mut file = private::create_new(to)?;
        std::io::copy(&mut std::fs::File::open(from)?, &mut file)?;
        file.sync_all()
    };
    copy().map_err(|error| failed(to, error))
}
