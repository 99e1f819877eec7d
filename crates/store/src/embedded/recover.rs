//! Reading the log when the store opens.
//!
//! Entries are taken in the order of the log; the last one of a record counts. The end of the newest file may hold a
//! group that a crash has torn. It is cut off where the mark and the groups after it show that it was never
//! acknowledged, and kept aside under another name. Any other damage is reported, with file and byte, and nothing is
//! opened and nothing changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Sender, bounded};

use super::LARGEST_SEGMENT;
use super::Shared;
use super::checkpoint::{Known, Loaded};
use super::compact::TEMPORARY;
use super::disk::{self, Disk};
use super::entry::Entry;
use super::files::{failed, refuse};
use super::hash_index::{Change, HashIndex};
use super::head::{FILE_HEAD, Format};
use super::inspect::next_entry;
use super::judge::{End, Judge, Progress, end_of};
use super::mark::{MARK, Mark, MarkFile};
use super::name::Name;
use super::output::Output;
use super::segment::Segment;
use super::segments::{Need, Segments};
use super::walk::{Fault, Step, Walk};
use super::writer::known;
use crate::error::Error;
use crate::version::Version;

/// What reading a file has shown.
struct Read {
    judge: Judge,
    /// Where a write begins that was not finished, and what is wrong there.
    torn: Option<(u64, String)>,
    /// Where the next entry begins: after the end of the file, if padding is missing there.
    end: u64,
}

/// Reads a file and gives each entry to `each`. An error names what is damaged.
fn read(
    segment: &Arc<Segment>,
    newest: bool,
    mark: Option<Mark>,
    version: u64,
    mut each: impl FnMut(&Step<'_>) -> Result<(), Error>,
) -> Result<Read, Error> {
    let mut judge = Judge::new(segment, version);
    let mut walk = Walk::new(segment.clone(), FILE_HEAD);
    let reason = loop {
        let at = walk.offset();
        match walk.next() {
            Ok(Some(step)) => {
                // Whole entries in a wrong place are not what a crash leaves.
                judge
                    .see(&step)
                    .map_err(|reason| refuse(segment.path(), at, reason))?;
                each(&step)?;
            }
            Ok(None) => match judge.finish(newest) {
                Ok(()) => break None,
                Err(reason) => break Some(reason),
            },
            Err(Fault::Io(error)) => {
                return Err(failed(
                    segment.path(),
                    format!("byte {at} cannot be read: {error}"),
                ));
            }
            Err(Fault::NoEntry(reason)) => break Some(reason),
        }
    };
    let end = walk.offset();
    let place = judge.open_since(end);
    let torn = None;
    if !newest {
        return match reason {
            Some(reason) => Err(refuse(segment.path(), place, reason)),
            None => Ok(Read { judge, torn, end }),
        };
    }
    if reason.is_none() && judge.has_ended() {
        return Ok(Read { judge, torn, end });
    }
    let unread = |fault| failed(segment.path(), format!("byte {place} and what follows: {fault}"));
    match (end_of(segment, mark, place).map_err(unread)?, reason) {
        (End::Acknowledged(durable), reason) => {
            let reason = reason.unwrap_or_else(|| "the file ends here".to_owned());
            let reason = format!("{reason}, and everything before byte {durable} was acknowledged");
            Err(refuse(segment.path(), place, reason))
        }
        (_, None) => Ok(Read { judge, torn, end }),
        (End::Unknown, Some(reason)) => {
            let reason =
                format!("{reason}, and a file of an earlier release does not say what was acknowledged");
            Err(refuse(segment.path(), place, reason))
        }
        (End::Torn, Some(reason)) => Ok(Read {
            judge,
            torn: Some((place, reason)),
            end: place,
        }),
    }
}

/// How the log ends.
#[derive(Debug)]
pub(super) struct Tail {
    /// The latest version in the log.
    pub(super) latest: Version,
    /// The newest file, unless nothing may be added to it.
    pub(super) open: Option<(Arc<Segment>, Progress)>,
}

/// Changes of secondary indexes handed over together, and the groups that may be in flight.
const GROUP: usize = 4_096;
const AHEAD: usize = 8;
/// Threads that build secondary indexes, at most.
const BUILDERS: usize = 3;

/// A change, and of which index.
type Task<'s> = (&'s HashIndex, Change);

/// Builds the indexes from the log, and cuts off a write at its end that was not finished.
///
/// This thread reads the log and builds the primary indexes, others the secondary ones, each index in one thread:
/// of a session's record four fifths of the work are the secondary indexes'.
///
/// Files that a checkpoint knows are read as far as it does not; their places are in the indexes already.
pub(super) fn replay(shared: &Shared, mark: Option<Mark>, loaded: Option<&Loaded>) -> Result<Tail, Error> {
    let list = shared.segments.list();
    let segments = list.in_order();
    let mut last = Ending::default();
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
            let after = match loaded.and_then(|loaded| loaded.of(segment)) {
                Some(Known::Whole(version)) => {
                    last = Ending {
                        version: last.version.max(version),
                        open: None,
                    };
                    continue;
                }
                Some(Known::UpTo { offset, chain }) => After::Checkpoint { offset, chain },
                None if loaded.is_some() => After::Others,
                None => After::Nothing,
            };
            let newest = position + 1 == segments.len();
            let judge = replay_segment(
                shared,
                segment,
                (newest, mark, last.version),
                after,
                &mut hand_over,
            )?;
            last = Ending {
                version: judge.version(),
                open: (!judge.has_ended()).then(|| judge.progress()),
            };
        }
        builders.iter_mut().for_each(Builder::flush);
        Ok::<(), Error>(())
    })?;
    let open = last.open.zip(segments.last()).and_then(|(progress, newest)| {
        // What compaction or an earlier release wrote is never added to.
        let ended = newest.format == Format::One || newest.name.generation > 0;
        (!ended).then(|| (newest.clone(), progress))
    });
    Ok(Tail {
        latest: Version(segments.iter().map(|segment| segment.newest()).max().unwrap_or(0)),
        open,
    })
}

/// How the files read so far end.
#[derive(Default)]
struct Ending {
    /// The last version, for the file that follows; 0 where it cannot be compared.
    version: u64,
    /// Of the last one, unless it has its end.
    open: Option<Progress>,
}

/// What the indexes hold before a file is read.
#[derive(Clone, Copy)]
enum After {
    /// All entries before the file.
    Nothing,
    /// What a checkpoint knows, which is perhaps later than the file's entries.
    Others,
    /// All before this place in the file, if the chain of its entries there is this.
    Checkpoint { offset: u64, chain: u64 },
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
    (newest, mark, version): (bool, Option<Mark>, u64),
    after: After,
    change: &mut impl FnMut(&'s HashIndex, Change),
) -> Result<Judge, Error> {
    // Entries of a batch whose end has not been seen.
    let mut open: Vec<(u64, u64)> = Vec::new();
    let mut before = Progress::default();
    let later_only = matches!(after, After::Others);
    let Read { mut judge, torn, end } = read(segment, newest, mark, version, |step| {
        if let After::Checkpoint { offset, .. } = after
            && step.offset < offset
        {
            before.add(step.entry.is_of_a_record(), step.bytes);
            return Ok(());
        }
        if !step.entry.is_of_a_record() {
            return Ok(());
        }
        check(shared, &step.entry).map_err(|reason| refuse(segment.path(), step.offset, reason))?;
        if step.entry.continues {
            open.push((step.offset, step.size));
            return Ok(());
        }
        for (offset, size) in open.drain(..) {
            let mut buffer = Vec::new();
            let entry = segment.read(offset, &mut buffer).map_err(Error::Open)?;
            apply(shared, segment, &entry, (offset, size), later_only, change)?;
        }
        apply(
            shared,
            segment,
            &step.entry,
            (step.offset, step.size),
            later_only,
            change,
        )
    })?;
    if let After::Checkpoint { offset, chain } = after
        && (before.chain != chain || torn.as_ref().is_some_and(|(place, _)| *place < offset) || end < offset)
    {
        return Err(failed(segment.path(), "it is not the file of the checkpoint"));
    }
    if newest && end > segment.length() {
        // Entries begin at multiples of eight.
        segment
            .truncate(end)
            .map_err(|error| failed(segment.path(), error))?;
    }
    if let Some((place, reason)) = torn {
        cut(segment, place, &reason)?;
        if judge.is_open() {
            // The entries of the batch that was cut off are not there any more.
            judge = read(segment, newest, mark, version, |_| Ok(()))?.judge;
        }
    }
    Ok(judge)
}

fn apply<'s>(
    shared: &'s Shared,
    segment: &Segment,
    entry: &Entry<'_>,
    place: (u64, u64),
    later_only: bool,
    change: &mut impl FnMut(&'s HashIndex, Change),
) -> Result<(), Error> {
    // `check` has seen the table.
    let space = &shared.spaces[usize::from(entry.table)];
    let old = known(shared, space, entry.key)?;
    if later_only && old.as_ref().is_some_and(|old| old.version >= entry.version) {
        segment.saw_version(entry.version.0);
        return Ok(());
    }
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

/// Cuts off the end of the newest file: a group that was being written when the process ended. What was there is kept
/// in a file beside it.
fn cut(segment: &Arc<Segment>, place: u64, reason: &str) -> Result<(), Error> {
    let bytes = segment.length().saturating_sub(place);
    let kept = keep_aside(segment, place).map_err(|error| {
        failed(
            segment.path(),
            format!("what follows byte {place} cannot be kept aside: {error}"),
        )
    })?;
    tracing::warn!(
        file = %segment.path().display(),
        at = place,
        bytes,
        entries = entries_after(segment, place),
        reason,
        kept = kept.as_ref().map(|path| path.display().to_string()),
        "cut off a write that was not finished and not acknowledged"
    );
    segment
        .truncate(place)
        .map_err(|error| failed(segment.path(), error))
}

/// Copies the end of a file into one beside it; none where there is nothing but zeros.
fn keep_aside(segment: &Segment, place: u64) -> std::io::Result<Option<PathBuf>> {
    // A group and the batch that did not fit it: at most some megabytes.
    let mut bytes = vec![0; usize::try_from(segment.length().saturating_sub(place)).unwrap_or(usize::MAX)];
    let got = segment.read_bytes(&mut bytes, place)?;
    bytes.truncate(got);
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    for number in 1..=1_000 {
        let path = segment.path().with_extension(format!("log.cut-{place}-{number}"));
        match Disk::create_new(&path) {
            Ok(mut file) => {
                file.write_all(&bytes)?;
                file.sync_all()?;
                disk::sync_directory(&path)?;
                return Ok(Some(path));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("a thousand such files are there already"))
}

/// Entries of records after a place that can be read.
fn entries_after(segment: &Arc<Segment>, place: u64) -> u64 {
    let mut walk = Walk::new(segment.clone(), place);
    let mut count = 0;
    loop {
        let unreadable = match walk.next() {
            Ok(Some(step)) => {
                count += u64::from(step.entry.is_of_a_record());
                false
            }
            Err(Fault::NoEntry(_)) => true,
            Ok(None) | Err(Fault::Io(_)) => return count,
        };
        if unreadable && !next_entry(&mut walk, segment).unwrap_or(false) {
            return count;
        }
    }
}

/// Writes all files of the log again with other index keys, for a table whose list of indexes has changed. All
/// entries of records stay. Nothing is written before all files have been read; then `begin` is called.
pub(super) fn rewrite(
    directory: &Path,
    segments: &Segments,
    mark: Option<Mark>,
    begin: impl FnOnce() -> Result<(), Error>,
    mut change: impl FnMut(&Entry<'_>, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let list = segments.list();
    let files = list.in_order();
    let mut version = 0;
    for (position, segment) in files.iter().enumerate() {
        let newest = position + 1 == files.len();
        let Read { judge, torn, .. } = read(segment, newest, mark, version, |_| Ok(()))?;
        version = judge.version();
        if let Some((place, reason)) = torn {
            cut(segment, place, &reason)?;
        }
    }
    // What is written now has a mark. Where the files of an earlier release have none, a crash in the middle must not
    // leave files of this one without: the next start would miss it.
    if mark.is_none() && !files.is_empty() {
        MarkFile::create(directory, Mark::default()).map_err(|error| failed(&directory.join(MARK), error))?;
    }
    begin()?;
    for segment in files {
        rewrite_one(directory, segments, segment, &mut change)?;
    }
    Ok(())
}

fn rewrite_one(
    directory: &Path,
    segments: &Segments,
    segment: &Arc<Segment>,
    change: &mut impl FnMut(&Entry<'_>, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let temporary = directory.join(TEMPORARY);
    let name = Name {
        generation: segment.name.generation + 1,
        ..segment.name
    };
    let slot = segments.take_slot(Need::Upkeep)?;
    let output = Segment::create(temporary.clone(), name, slot, segment.compacted_at)
        .map_err(|error| failed(&temporary, error))?;
    let mut output = Output::new(output);
    let mut walk = Walk::new(segment.clone(), FILE_HEAD);
    let mut follows = false;
    let mut bytes = Vec::new();
    loop {
        let at = walk.offset();
        let next = walk.next().map_err(|fault| refuse(segment.path(), at, fault))?;
        let Some(step) = next else { break };
        if !step.entry.is_of_a_record() {
            continue;
        }
        bytes.clear();
        change(
            &Entry {
                follows,
                ..step.entry
            },
            &mut bytes,
        )?;
        follows = step.entry.continues;
        if output.length() + bytes.len() as u64 > LARGEST_SEGMENT.bytes() {
            let reason = format!("with its new index keys it becomes larger than {LARGEST_SEGMENT}");
            return Err(failed(segment.path(), reason));
        }
        output.append(&bytes).map_err(|error| failed(&temporary, error))?;
    }
    let path = name.path(directory);
    let output = output.complete(name).map_err(|error| failed(&temporary, error))?;
    disk::rename(&temporary, &path).map_err(|error| failed(&path, error))?;
    disk::sync_directory(&path).map_err(|error| failed(&path, error))?;
    let output = output.renamed(path, name);
    segments.remove(segment);
    segments.add(&Arc::new(output));
    disk::remove_file(segment.path()).map_err(|error| failed(segment.path(), error))
}
