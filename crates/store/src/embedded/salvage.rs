//! What can be kept of a damaged store, on the operator's word.
//!
//! Each damaged file is set aside as it is, and a new one takes its place in the log with all batches of the old one
//! that can be read whole. The place of a missing file is taken by an empty one. What was lost cannot be known by its
//! content: a record whose last write is lost shows the write before it, and one whose deletion is lost is back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::catalogue::Catalogue;
use super::checkpoint::CHECKPOINT;
use super::compact::TEMPORARY;
use super::disk;
use super::entry::{ALIGN, Entry};
use super::files::{Listing, failed};
use super::head::{FILE_HEAD, Format};
use super::inspect::{self, Verified, next_entry};
use super::lock::Lock;
use super::mark::{self, MARK, Mark, MarkFile};
use super::name::Name;
use super::output::Output;
use super::private;
use super::segment::{Segment, Unopened};
use super::walk::{Fault, Step, Walk};
use crate::error::Error;

/// What was kept and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Salvaged {
    /// Folder with the files as they were found; none when nothing was damaged.
    pub aside: Option<PathBuf>,
    /// Files that were set aside.
    pub moved: Vec<String>,
    /// Entries of records that were taken from damaged files.
    pub kept: u64,
    /// What was not kept.
    pub dropped: Vec<Dropped>,
}

/// A part of the log that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The file.
    pub file: String,
    /// First byte.
    pub from: u64,
    /// After the last byte; `None` where the file ends too early or is missing, and its true length is not known.
    pub to: Option<u64>,
    /// Entries of records in it that can be read, but belong to batches that are not whole.
    pub entries: u64,
    /// Why it was not kept.
    pub reason: String,
}

/// Brings a damaged store into a state that opens. Blocks.
///
/// # Errors
/// When a process has the store open, or a file cannot be read or written; and when `store.json` is lost, without
/// which nothing says what the entries mean.
pub fn salvage(directory: &Path) -> Result<Salvaged, Error> {
    let listing = Listing::read(directory)?;
    let mark = mark::read(directory);
    if listing.is_empty() && !matches!(mark, Ok(Some(_)) | Err(_)) {
        return Err(failed(directory, "this directory holds no store"));
    }
    let _lock = Lock::take(directory)?;
    // It is of a log that will be another one.
    match disk::remove_file(&directory.join(CHECKPOINT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed(&directory.join(CHECKPOINT), error));
        }
        _ => {}
    }
    let catalogue = Catalogue::read(directory)?.ok_or_else(|| {
        let reason =
            "the file is missing; without it nothing says what the entries mean. Restore it from a copy";
        failed(&directory.join(super::catalogue::CATALOGUE), reason)
    })?;
    let mut work = Work {
        directory,
        known: (catalogue.tables.len(), catalogue.sites.len()),
        result: Salvaged::default(),
    };
    if let Some(name) = listing.overlaps().next() {
        let reason = "another file has some of its numbers; move one of the two away";
        return Err(failed(&name.path(directory), reason));
    }
    let listing = work.prefer_sources(listing)?;
    let known_mark = mark.ok().flatten();
    let mut version = 0;
    for (position, name) in listing.kept.iter().enumerate() {
        let newest = position + 1 == listing.kept.len();
        version = work.file(*name, &listing, (newest, known_mark, version))?;
    }
    for (first, last) in listing.gaps(known_mark) {
        for number in first..=last {
            work.fill(number)?;
        }
    }
    let newest = Listing::read(directory)?.kept.last().map_or(0, |name| name.last);
    if known_mark.is_none() || work.result.aside.is_some() {
        let lost = known_mark.is_none() && catalogue.has_mark();
        if lost {
            work.aside(MARK)?;
        }
        let mark = Mark {
            segment: newest,
            offset: FILE_HEAD,
        };
        MarkFile::create(directory, mark).map_err(|error| failed(&directory.join(MARK), error))?;
    }
    Ok(work.result)
}

struct Work<'a> {
    directory: &'a Path,
    /// How many tables and sites there are.
    known: (usize, usize),
    result: Salvaged,
}

impl Work<'_> {
    /// Where a compaction was interrupted and its result is damaged while all its sources are still there, the sources
    /// are taken.
    fn prefer_sources(&mut self, mut listing: Listing) -> Result<Listing, Error> {
        for name in listing.kept.clone() {
            let mut sources: Vec<Name> = listing.replaced.clone();
            sources.retain(|source| source.is_replaced_by(name));
            sources.sort_unstable();
            let mut next = name.first;
            for source in &sources {
                next = if source.first <= next {
                    source.last + 1
                } else {
                    next
                };
            }
            if next > name.last && self.is_damaged(name)? {
                self.aside(&name.to_string())?;
                disk::remove_file(&name.path(self.directory))
                    .map_err(|error| failed(&name.path(self.directory), error))?;
                listing = Listing::read(self.directory)?;
            }
        }
        Ok(listing)
    }

    fn is_damaged(&self, name: Name) -> Result<bool, Error> {
        let mut verified = Verified::default();
        inspect::file(
            self.directory,
            name,
            (false, None, 0),
            Some(self.known),
            &mut verified,
        )?;
        Ok(!verified.damage.is_empty())
    }

    /// Leaves a file as it is, or puts another in its place; the last version in it.
    fn file(
        &mut self,
        name: Name,
        listing: &Listing,
        (newest, mark, version): (bool, Option<Mark>, u64),
    ) -> Result<u64, Error> {
        let mut verified = Verified::default();
        let state = (newest, mark, version);
        let last = inspect::file(self.directory, name, state, Some(self.known), &mut verified)?;
        let Some(damage) = verified.damage.first() else {
            return Ok(last);
        };
        for source in listing
            .replaced
            .iter()
            .filter(|source| source.is_replaced_by(name))
        {
            // The next start would remove it, for a file that is damaged.
            self.aside(&source.to_string())?;
        }
        self.aside(&name.to_string())?;
        self.replace(name, version, (damage.byte, &damage.reason))
    }

    /// Writes what can be kept of a file into a new one.
    fn replace(&mut self, name: Name, version: u64, first: (u64, &str)) -> Result<u64, Error> {
        let path = name.path(self.directory);
        let segment = match Segment::open(path.clone(), name, 0, false) {
            Ok(segment) => segment,
            Err(Unopened::Io(error)) => return Err(failed(&path, error)),
            Err(Unopened::Head { .. }) => headless(&path, name)?,
        };
        let segment = Arc::new(segment);
        let next = Name {
            generation: name.generation + 1,
            ..name
        };
        let temporary = self.directory.join(TEMPORARY);
        let wrong = |error: std::io::Error| failed(&temporary, error);
        let output = Segment::create(temporary.clone(), next, 0, segment.compacted_at).map_err(wrong)?;
        let mut sift = Sift {
            segment,
            known: self.known,
            version,
            output: Output::new(output),
            batch: Vec::new(),
            began: FILE_HEAD,
            lost: false,
            dropped: Vec::new(),
        };
        sift.run()?;
        let Sift {
            output,
            version,
            mut dropped,
            ..
        } = sift;
        if dropped.is_empty() {
            // Nothing that is there was dropped: something is missing, or the head was damaged.
            let (from, to) = (first.0, (first.0 < FILE_HEAD).then_some(FILE_HEAD));
            dropped.push(Dropped {
                file: name.to_string(),
                from,
                to,
                entries: 0,
                reason: first.1.to_owned(),
            });
        }
        self.result.kept += output.records();
        self.result.dropped.append(&mut dropped);
        output.complete(next).map_err(wrong)?;
        let put = || {
            disk::rename(&temporary, &next.path(self.directory))?;
            disk::remove_file(&path)?;
            disk::sync_directory(&path)
        };
        put().map_err(|error| failed(&path, error))?;
        Ok(version)
    }

    /// Puts an empty file in the place of a missing one. Should that be found again, it can be put back.
    fn fill(&mut self, number: u32) -> Result<(), Error> {
        let name = Name::fresh(number);
        let temporary = self.directory.join(TEMPORARY);
        let fill = || {
            let empty = Segment::create(temporary.clone(), name, 0, 0)?;
            Output::new(empty).complete(name)?;
            disk::rename(&temporary, &name.path(self.directory))?;
            disk::sync_directory(&temporary)
        };
        fill().map_err(|error| failed(&name.path(self.directory), error))?;
        self.folder()?;
        self.result.dropped.push(Dropped {
            file: name.to_string(),
            from: 0,
            to: None,
            entries: 0,
            reason: "the file is missing".to_owned(),
        });
        Ok(())
    }

    /// The folder for what is set aside.
    fn folder(&mut self) -> Result<PathBuf, Error> {
        if let Some(folder) = &self.result.aside {
            return Ok(folder.clone());
        }
        for number in 1..=10_000 {
            let folder = self.directory.join(format!("store.damaged-{number}"));
            if folder.exists() {
                continue;
            }
            private::create_directory(&folder).map_err(|error| failed(&folder, error))?;
            self.result.aside = Some(folder.clone());
            return Ok(folder);
        }
        Err(failed(
            self.directory,
            "ten thousand folders store.damaged-N are there already",
        ))
    }

    /// Keeps a file in the folder as it is. It stays where it is as well, until another has taken its place.
    fn aside(&mut self, file: &str) -> Result<(), Error> {
        let (from, to) = (self.directory.join(file), self.folder()?.join(file));
        if !from.exists() || to.exists() {
            return Ok(());
        }
        // A second name for the same file; file systems without them make a copy.
        let kept = std::fs::hard_link(&from, &to).or_else(|_| {
            std::fs::copy(&from, &to)?;
            std::fs::File::open(&to)?.sync_all()
        });
        kept.and_then(|()| disk::sync_directory(&to))
            .map_err(|error| failed(&to, error))?;
        self.result.moved.push(file.to_owned());
        Ok(())
    }
}

/// Opens a file whose head cannot be read. Only files of format 2 have entries that speak of the log.
fn headless(path: &Path, name: Name) -> Result<Segment, Error> {
    let open =
        |format| Segment::open_headless(path.to_owned(), name, format).map_err(|error| failed(path, error));
    let segment = Arc::new(open(Format::Two)?);
    let mut walk = Walk::new(segment.clone(), FILE_HEAD);
    loop {
        let unreadable = match walk.next() {
            Ok(Some(step)) if step.entry.is_of_a_record() => false,
            Ok(Some(_)) => return open(Format::Two),
            Ok(None) => return open(Format::One),
            Err(_) => true,
        };
        if unreadable && !next_entry(&mut walk, &segment)? {
            return open(Format::One);
        }
    }
}

/// Takes whole batches from a file.
struct Sift {
    segment: Arc<Segment>,
    known: (usize, usize),
    version: u64,
    output: Output,
    /// Entries of the batch whose end has not been seen.
    batch: Vec<Vec<u8>>,
    /// Where it began.
    began: u64,
    /// Format 1: whether the next entry may belong to a batch whose beginning is missing.
    lost: bool,
    dropped: Vec<Dropped>,
}

impl Sift {
    fn run(&mut self) -> Result<(), Error> {
        let segment = self.segment.clone();
        let mut walk = Walk::new(segment.clone(), FILE_HEAD);
        loop {
            let at = walk.offset();
            if self.batch.is_empty() {
                self.began = at;
            }
            match walk.next() {
                Ok(Some(step)) if !step.entry.is_of_a_record() => {
                    self.end_of_batch_is_missing(at);
                    self.lost = false;
                }
                Ok(Some(step)) => self.see(&step)?,
                Ok(None) => {
                    self.end_of_batch_is_missing(at);
                    return Ok(());
                }
                Err(Fault::Io(error)) => {
                    return Err(failed(
                        segment.path(),
                        format!("byte {at} cannot be read: {error}"),
                    ));
                }
                Err(Fault::NoEntry(reason)) => {
                    next_entry(&mut walk, &segment)?;
                    self.give_up(walk.offset(), 0, &reason);
                    self.lost = true;
                }
            }
        }
    }

    fn see(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let (entry, end) = (&step.entry, step.offset + step.size);
        let compacted = self.segment.compacted_at != 0;
        let follows = match self.segment.format {
            Format::Two => entry.follows,
            // It does not say: after damage the next batch that certainly begins is the one after this.
            Format::One => !self.batch.is_empty() || self.lost && !compacted,
        };
        self.lost = follows && self.batch.is_empty() && entry.continues;
        if !follows {
            self.end_of_batch_is_missing(step.offset);
            self.began = step.offset;
        }
        let version = entry.version.0;
        let reason = if follows && self.batch.is_empty() {
            "the beginning of its batch is missing"
        } else if version < self.version || version == self.version && !follows && !compacted {
            "an earlier write follows a later one"
        } else if usize::from(entry.table) >= self.known.0 || usize::from(entry.site) >= self.known.1 {
            "an entry of an unknown table or site"
        } else {
            self.version = version;
            let mut bytes = Vec::with_capacity(step.bytes.len() + ALIGN);
            Entry { follows, ..*entry }.encode(&mut bytes);
            self.batch.push(bytes);
            return if entry.continues { Ok(()) } else { self.keep() };
        };
        self.give_up(end, 1, reason);
        self.lost = entry.continues;
        Ok(())
    }

    fn end_of_batch_is_missing(&mut self, at: u64) {
        if !self.batch.is_empty() {
            self.give_up(at, 0, "the end of a batch is missing");
        }
    }

    fn keep(&mut self) -> Result<(), Error> {
        for entry in self.batch.drain(..) {
            self.output
                .append(&entry)
                .map_err(|error| failed(self.output.segment().path(), error))?;
        }
        Ok(())
    }

    /// Drops what was read of a batch, and what follows up to `to` with this many more entries.
    fn give_up(&mut self, to: u64, more: u64, reason: &str) {
        let entries = self.batch.len() as u64 + more;
        let from = std::mem::replace(&mut self.began, to);
        self.batch.clear();
        match self.dropped.last_mut() {
            Some(last) if last.to == Some(from) => {
                last.to = Some(to);
                last.entries += entries;
            }
            _ => self.dropped.push(Dropped {
                file: self.segment.name.to_string(),
                from,
                to: Some(to),
                entries,
                reason: reason.to_owned(),
            }),
        }
    }
}
