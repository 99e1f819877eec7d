//! What the files of a store hold, and what is wrong with them. Nothing is changed.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::catalogue::Catalogue;
use super::entry::{self, ALIGN, Entry, HEAD};
use super::files::{self, Listing};
use super::head::FILE_HEAD;
use super::judge::{End, Judge, end_of};
use super::lock::Lock;
use super::mark::{self, MARK, Mark};
use super::name::Name;
use super::segment::{Segment, Unopened};
use super::walk::{Fault, Walk};
use crate::error::Error;
use crate::trouble::Damage;

/// What a directory of the embedded engine holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The files of the log, oldest first.
    pub files: Vec<VerifiedFile>,
    /// Everything that keeps the store from opening.
    pub damage: Vec<Damage>,
}

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedFile {
    /// Its name.
    pub file: String,
    /// Bytes it has.
    pub bytes: u64,
    /// Entries of records that can be read: writes and deletions.
    pub entries: u64,
    /// Bytes at the end of a write that was not finished and not acknowledged. The next start sets them aside.
    pub unfinished: u64,
}

impl Verified {
    fn add(&mut self, file: impl Into<String>, byte: u64, reason: impl ToString) {
        self.damage.push(Damage {
            file: file.into(),
            byte,
            reason: reason.to_string(),
        });
    }
}

/// Reads all files of a store and lists what is wrong with them. Blocks; changes nothing.
///
/// # Errors
/// When the directory cannot be read, or a process has the store open.
pub fn verify(directory: &Path) -> Result<Verified, Error> {
    let _lock = Lock::take_to_read(directory)?;
    read_all(directory)
}

/// As [`verify`], for who holds the lock.
pub(super) fn read_all(directory: &Path) -> Result<Verified, Error> {
    let listing = Listing::read(directory)?;
    let mut verified = Verified::default();
    let catalogue = match Catalogue::read(directory) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            verified.add(super::catalogue::CATALOGUE, 0, plain(&error));
            None
        }
    };
    let mark = match mark::read(directory) {
        Ok(mark) => mark,
        Err(error) => {
            verified.add(MARK, 0, plain(&error));
            None
        }
    };
    if catalogue.is_none() && verified.damage.is_empty() && mark.is_none() && listing.is_empty() {
        let reason = "this directory holds no store";
        return Err(files::failed(directory, reason));
    }
    let has = |verified: &Verified, name: &str| verified.damage.iter().any(|damage| damage.file == name);
    let written = !listing.is_empty() || mark.is_some_and(|mark| mark.segment > 0);
    if catalogue.is_none() && written && !has(&verified, super::catalogue::CATALOGUE) {
        verified.add(super::catalogue::CATALOGUE, 0, "the file is missing");
    }
    if catalogue.as_ref().is_some_and(Catalogue::has_mark) && mark.is_none() && !has(&verified, MARK) {
        verified.add(MARK, 0, "the file is missing");
    }
    for (first, last) in listing.gaps(mark) {
        for number in first..=last {
            verified.add(Name::fresh(number).to_string(), 0, "the file is missing");
        }
    }
    for name in listing.overlaps() {
        verified.add(name.to_string(), 0, "another file has some of its numbers");
    }
    let known = catalogue.map(|catalogue| (catalogue.tables.len(), catalogue.sites.len()));
    let mut version = 0;
    for (position, name) in listing.kept.iter().enumerate() {
        let newest = position + 1 == listing.kept.len();
        version = file(directory, *name, (newest, mark, version), known, &mut verified)?;
    }
    Ok(verified)
}

/// Without what is said to whom the store does not open.
fn plain(error: &Error) -> String {
    let text = error.to_string();
    let from = text.find("byte 0: ").map_or(0, |at| at + "byte 0: ".len());
    let to = text.find(". Nothing has been changed").unwrap_or(text.len());
    text.get(from..to).unwrap_or(&text).to_owned()
}

/// Reads one file; the last version in it.
pub(super) fn file(
    directory: &Path,
    name: Name,
    (newest, mark, version): (bool, Option<Mark>, u64),
    known: Option<(usize, usize)>,
    verified: &mut Verified,
) -> Result<u64, Error> {
    let path = name.path(directory);
    let segment = match Segment::open(path.clone(), name, 0, false) {
        Ok(segment) => Arc::new(segment),
        Err(Unopened::Io(error)) => return Err(files::failed(&path, error)),
        Err(Unopened::Head { reason, length }) => {
            if !(newest && files::is_unborn(name, length, mark)) {
                verified.add(name.to_string(), 0, reason);
            }
            verified.files.push(VerifiedFile {
                file: name.to_string(),
                bytes: length,
                entries: 0,
                unfinished: 0,
            });
            return Ok(version);
        }
    };
    let mut found = VerifiedFile {
        file: name.to_string(),
        bytes: segment.length(),
        entries: 0,
        unfinished: 0,
    };
    let mut judge = Judge::new(&segment, version);
    let mut walk = Walk::new(segment.clone(), FILE_HEAD);
    // Whether what is read follows what was read before it: after damage nothing can be said of the order.
    let mut ordered = true;
    loop {
        let at = walk.offset();
        let reason = match walk.next() {
            Ok(Some(step)) => {
                found.entries += u64::from(step.entry.is_of_a_record());
                let place = known.is_some_and(|(tables, sites)| {
                    step.entry.is_of_a_record()
                        && (usize::from(step.entry.table) >= tables || usize::from(step.entry.site) >= sites)
                });
                match judge.see(&step) {
                    Err(reason) if ordered => {
                        ordered = false;
                        verified.add(name.to_string(), at, reason);
                    }
                    _ if place => verified.add(name.to_string(), at, "an entry of an unknown table or site"),
                    _ => {}
                }
                continue;
            }
            Ok(None) if !ordered => break,
            Ok(None) => match (judge.finish(newest), judge.has_ended()) {
                (Ok(()), true) => break,
                (Ok(()), false) if !newest => break,
                (Ok(()), false) => None,
                (Err(reason), _) => Some(reason),
            },
            Err(Fault::Io(error)) => return Err(files::failed(&path, format!("byte {at}: {error}"))),
            Err(Fault::NoEntry(reason)) => Some(reason),
        };
        let place = judge.open_since(at);
        let end = match newest && ordered {
            true => end_of(&segment, mark, place).map_err(|fault| files::failed(&path, fault))?,
            false => End::Unknown,
        };
        match (end, reason) {
            (End::Torn | End::Unknown, None) => break,
            (End::Torn, Some(_)) => {
                found.unfinished = segment.length().saturating_sub(place);
                break;
            }
            (End::Acknowledged(durable), reason) => {
                let reason = reason.unwrap_or_else(|| "the file ends here".to_owned());
                let reason = format!("{reason}, and everything before byte {durable} was acknowledged");
                verified.add(name.to_string(), place, reason);
            }
            (End::Unknown, Some(reason)) => verified.add(name.to_string(), place, reason),
        }
        ordered = false;
        if !next_entry(&mut walk, &segment)? {
            break;
        }
    }
    verified.files.push(found);
    Ok(if ordered { judge.version() } else { version })
}

/// Goes to the next place at which an entry can be read, after the one at which none can; false when there is none.
pub(super) fn next_entry(walk: &mut Walk, segment: &Segment) -> Result<bool, Error> {
    const CHUNK: usize = 256 * 1_024;
    let unread = |at: u64, error: &std::io::Error| {
        files::failed(segment.path(), format!("byte {at} cannot be read: {error}"))
    };
    let mut at = (walk.offset() + 1).next_multiple_of(ALIGN as u64);
    let (mut buffer, mut entry) = (vec![0; CHUNK + HEAD], Vec::new());
    while at < segment.length() {
        let got = segment
            .read_bytes(&mut buffer, at)
            .map_err(|error| unread(at, &error))?;
        for place in (0..got.min(CHUNK)).step_by(ALIGN) {
            let left = usize::try_from(segment.length() - at).unwrap_or(usize::MAX) - place;
            let head = buffer.get(place..got).unwrap_or_default();
            let Some(length) = entry::plausible_length(head).filter(|length| *length <= left) else {
                continue;
            };
            let offset = at + place as u64;
            entry.resize(length, 0);
            let got = segment
                .read_bytes(&mut entry, offset)
                .map_err(|error| unread(offset, &error))?;
            if Entry::decode(entry.get(..got).unwrap_or_default()).is_ok() {
                walk.go_to(offset);
                return Ok(true);
            }
        }
        at += CHUNK as u64;
    }
    walk.go_to(segment.length());
    Ok(false)
}
