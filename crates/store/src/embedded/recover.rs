//! Reading the log when the store opens.
//!
//! Entries are taken in the order of the log; the last one of a record counts. The end of the newest segment may
//! hold a group that a crash has torn: it was not acknowledged, and is cut off. Damage anywhere else is told and
//! nothing is opened, since what was there had been acknowledged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Sender, bounded};

use super::Shared;
use super::compact::TEMPORARY;
use super::entry::Entry;
use super::hash_index::{Change, HashIndex};
use super::segment::{FILE_HEAD, Name, Segment, Segments, Walk, sync_directory};
use super::writer::known;
use crate::error::Error;
use crate::version::Version;

fn broken(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Open(format!("{}: {error}", path.display()))
}

/// Opens the files of the log, removes those that others have replaced, and lists the rest.
pub(super) fn open_segments(directory: &Path) -> Result<Segments, Error> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(directory).map_err(|error| broken(directory, error))? {
        let file = file.map_err(|error| broken(directory, error))?;
        names.extend(file.file_name().to_str().and_then(Name::parse));
    }
    names.sort_unstable();
    let mut remove: Vec<PathBuf> = vec![directory.join(TEMPORARY)];
    let replaced = |name: &Name| names.iter().any(|other| name.is_replaced_by(*other));
    remove.extend(
        names
            .iter()
            .filter(|name| replaced(name))
            .map(|name| name.path(directory)),
    );
    let kept: Vec<Name> = names.iter().filter(|name| !replaced(name)).copied().collect();
    let segments = Segments::default();
    for (position, name) in kept.iter().enumerate() {
        let (path, slot) = (name.path(directory), segments.take_slot()?);
        match Segment::open(path.clone(), *name, slot).map_err(|error| broken(&path, error))? {
            Some(segment) => segments.add(&Arc::new(segment)),
            // Created in the moment of a crash, before anything was written to it.
            None if position + 1 == kept.len() => {
                segments.free_slot(slot);
                remove.push(path);
            }
            None => return Err(broken(&path, "not a file of the log")),
        }
    }
    for path in remove {
        match std::fs::remove_file(&path) {
            Ok(()) => tracing::info!(file = %path.display(), "removed a file that is not needed any more"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(broken(&path, error)),
        }
    }
    sync_directory(&directory.join(TEMPORARY)).map_err(|error| broken(directory, error))?;
    Ok(segments)
}

/// Changes of secondary indexes handed over together, and so many such groups on their way.
const GROUP: usize = 4_096;
const AHEAD: usize = 8;
/// Threads that build secondary indexes, at most.
const BUILDERS: usize = 3;

/// A change, and of which index.
type Task<'s> = (&'s HashIndex, Change);

/// Builds the indexes from the log; the latest version in it.
///
/// This thread reads the log and builds the primary indexes, others the secondary ones, each index in one thread:
/// of a session's record four fifths of the work are the secondary indexes'.
pub(super) fn replay(shared: &Shared) -> Result<Version, Error> {
    let list = shared.segments.list();
    let segments = list.in_order();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let mut builders: Vec<Builder<'_>> = Vec::new();
        for _ in 0..cores.saturating_sub(1).clamp(1, BUILDERS) {
            let (changes, queue) = bounded::<Vec<Task<'_>>>(AHEAD);
            let name = std::thread::Builder::new().name("store-index".to_owned());
            name.spawn_scoped(scope, move || {
                for (index, change) in queue.into_iter().flatten() {
                    index.change(change);
                }
            })
            .map_err(|error| Error::Open(format!("cannot start a thread: {error}")))?;
            builders.push(Builder {
                changes,
                group: Vec::with_capacity(GROUP),
            });
        }
        let count = builders.len();
        let mut hand_over = |index, change| {
            // Indexes of a table lie side by side.
            let place = std::ptr::from_ref::<HashIndex>(index).addr() / size_of::<HashIndex>();
            builders[place % count].push((index, change));
        };
        for (position, segment) in segments.iter().enumerate() {
            replay_segment(shared, segment, position + 1 == segments.len(), &mut hand_over)?;
        }
        builders.iter_mut().for_each(Builder::flush);
        Ok::<(), Error>(())
    })?;
    Ok(Version(
        segments.iter().map(|segment| segment.newest()).max().unwrap_or(0),
    ))
}

/// The way to a thread that builds indexes.
struct Builder<'s> {
    changes: Sender<Vec<Task<'s>>>,
    group: Vec<Task<'s>>,
}

impl<'s> Builder<'s> {
    fn push(&mut self, task: Task<'s>) {
        self.group.push(task);
        if self.group.len() == GROUP {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let group = std::mem::replace(&mut self.group, Vec::with_capacity(GROUP));
        // The thread ends only after this end of the channel.
        let _ = self.changes.send(group);
    }
}

fn replay_segment<'s>(
    shared: &'s Shared,
    segment: &Arc<Segment>,
    newest: bool,
    change: &mut impl FnMut(&'s HashIndex, Change),
) -> Result<(), Error> {
    let mut walk = Walk::new(segment.clone(), FILE_HEAD);
    // Entries of a batch whose end has not been seen, and where it begins.
    let mut open: Vec<(u64, u64)> = Vec::new();
    loop {
        let place = open.first().map_or(walk.offset(), |(offset, _)| *offset);
        match walk.next() {
            Ok(Some((offset, size, entry))) => {
                check(shared, &entry).map_err(|reason| broken(segment.path(), reason))?;
                if entry.continues {
                    open.push((offset, size));
                    continue;
                }
                for (offset, size) in open.drain(..) {
                    let mut buffer = Vec::new();
                    let entry = segment.read(offset, &mut buffer).map_err(Error::Open)?;
                    apply(shared, segment, &entry, (offset, size), change)?;
                }
                apply(shared, segment, &entry, (offset, size), change)?;
            }
            Ok(None) if open.is_empty() => return Ok(()),
            Ok(None) if newest => return cut(segment, place, "an unfinished batch"),
            Ok(None) => return Err(broken(segment.path(), "ends with an unfinished batch")),
            Err(reason) if newest => return cut(segment, place, &reason),
            Err(reason) => {
                let reason = format!(
                    "damaged at byte {place}: {reason}. Restore the file, or the whole directory, from a copy"
                );
                return Err(broken(segment.path(), reason));
            }
        }
    }
}

fn apply<'s>(
    shared: &'s Shared,
    segment: &Segment,
    entry: &Entry<'_>,
    place: (u64, u64),
    change: &mut impl FnMut(&'s HashIndex, Change),
) -> Result<(), Error> {
    // `check` has seen the table.
    let space = &shared.spaces[usize::from(entry.table)];
    let old = known(shared, space, entry.key)?;
    shared.apply(entry, segment, place, old.as_ref(), change);
    Ok(())
}

fn check(shared: &Shared, entry: &Entry<'_>) -> Result<(), String> {
    if usize::from(entry.table) >= shared.spaces.len() {
        return Err(format!(
            "an entry of table number {}, which no table has",
            entry.table
        ));
    }
    if usize::from(entry.site) >= shared.sites.len() {
        return Err(format!(
            "an entry of site number {}, which no site has",
            entry.site
        ));
    }
    Ok(())
}

/// Removes the end of the newest segment: a group that was being written when the process ended.
fn cut(segment: &Segment, place: u64, reason: &str) -> Result<(), Error> {
    let bytes = segment.length().saturating_sub(place);
    tracing::warn!(file = %segment.path().display(), at = place, bytes, reason, "cut off a write that was not finished");
    segment
        .truncate(place)
        .map_err(|error| broken(segment.path(), error))
}

/// Writes a segment anew with other index keys, for a table whose list of indexes has changed. All entries stay.
pub(super) fn rewrite(
    directory: &Path,
    segments: &Segments,
    mut change: impl FnMut(&Entry<'_>, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let list = segments.list();
    for segment in list.in_order() {
        let temporary = directory.join(TEMPORARY);
        let name = Name {
            generation: segment.name.generation + 1,
            ..segment.name
        };
        let slot = segments.take_slot()?;
        let output = Segment::create(temporary.clone(), name, slot, segment.compacted_at)
            .map_err(|error| broken(&temporary, error))?;
        let mut walk = Walk::new(segment.clone(), FILE_HEAD);
        let (mut at, mut bytes) = (FILE_HEAD, Vec::new());
        // A torn end is left out here as it is when the log is read.
        while let Ok(Some((_, _, entry))) = walk.next() {
            change(&entry, &mut bytes)?;
            if bytes.len() >= 1 << 20 {
                output
                    .write(&bytes, at)
                    .map_err(|error| broken(&temporary, error))?;
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        output
            .write(&bytes, at)
            .map_err(|error| broken(&temporary, error))?;
        output.sync().map_err(|error| broken(&temporary, error))?;
        let path = name.path(directory);
        std::fs::rename(&temporary, &path).map_err(|error| broken(&path, error))?;
        sync_directory(&path).map_err(|error| broken(&path, error))?;
        let output = output.renamed(path, name);
        output.publish(at + bytes.len() as u64);
        segments.remove(segment);
        segments.add(&Arc::new(output));
        std::fs::remove_file(segment.path()).map_err(|error| broken(segment.path(), error))?;
    }
    Ok(())
}
