//! Compaction: copies what is still current out of segments that hold mostly void entries.
//!
//! A run of neighbouring segments is copied into one file, in order, which takes their place in the log:
//!
//! 1. copy the current entries, flush, and give the file its name: from here on a restart reads it instead of
//!    its sources;
//! 2. let readers find it, and let the writer thread turn the indexes over, copy by copy;
//! 3. remove the sources.
//!
//! # When a deletion may be forgotten
//!
//! An entry that deletes a record must stay as long as a void entry of that record may be in an older segment,
//! for a restart would bring it back. Each entry therefore names the oldest segment in which an earlier entry of
//! its record can be (`oldest`), and each compacted segment at which number the log stood when its compaction
//! began (`compacted_at`). All that earlier segments deleted was known then. So a deletion in segment `s` may go
//! when every other segment from `oldest` up to `s` has been compacted after the log had gone beyond `s`.
//! Segments of the same run are dealt with together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Shared;
use super::checkpoint;
use super::disk;
use super::entry::{Entry, Kind, NONE_OLDER};
use super::hash_index::Location;
use super::head::FILE_HEAD;
use super::judge::Judge;
use super::name::Name;
use super::output::Output;
use super::segment::Segment;
use super::segments::{Need, SegmentList};
use super::space::Space;
use super::walk::{Step, Walk};
use super::writer::Message;
use crate::config::EmbeddedConfig;
use crate::trouble::Damage;

/// A segment that was compacted is left alone until the log has this many newer ones, unless records in it were
/// deleted since: what it still holds are deletions that cannot go yet.
const REST: u32 = 8;
/// Copies that the writer thread turns over at a time; a millisecond of its time.
const TURN: usize = 1_000;
/// How often to look without being woken.
const LOOK: Duration = Duration::from_secs(5);
/// A file of this name is not a part of the log; the next start removes it.
pub(super) const TEMPORARY: &str = "compacting.tmp";
/// Bytes read between two looks at the time.
const CHUNK: usize = 1 << 20;

pub(super) struct Compactor {
    pub(super) shared: Arc<Shared>,
    pub(super) directory: PathBuf,
    pub(super) config: EmbeddedConfig,
    pub(super) writer: Sender<Message>,
    pub(super) stopping: Arc<AtomicBool>,
    /// Where the log ended at the last checkpoint: number of the file and its length.
    pub(super) checkpointed: (u32, u64),
    /// Files that were not read when the store was opened, because a checkpoint knows them.
    pub(super) unread: Vec<Arc<Segment>>,
}

/// Why a compaction has ended without a result.
enum Stop {
    /// The store is closing.
    Closing,
    Failed(String),
}

impl Compactor {
    /// Runs until the store closes.
    pub(super) fn run(mut self, wake: &Receiver<()>) {
        // Logged once, not every five seconds while a disk is full.
        let mut failing = false;
        while !self.stopping.load(Relaxed) {
            self.checkpoint_when_due();
            let run = choose(&self.shared.segments.list(), &self.config);
            if run.is_empty() {
                if let Some(file) = self.unread.pop() {
                    self.check(&file);
                    continue;
                }
                // Woken, or time to look again: the same.
                let _ = wake.recv_timeout(LOOK);
                continue;
            }
            match self.compact(&run) {
                Ok(()) => failing = false,
                Err(Stop::Closing) => return,
                Err(Stop::Failed(reason)) => {
                    match std::mem::replace(&mut failing, true) {
                        true => tracing::debug!(reason, "compaction failed again"),
                        false => tracing::error!(reason, "compaction failed; it will be tried again"),
                    }
                    // On a full disk the room is the writer's.
                    let _ = disk::remove_file(&self.directory.join(TEMPORARY));
                    // Damage may be the reason.
                    if let Some(file) = self.unread.pop() {
                        self.check(&file);
                    }
                    let _ = wake.recv_timeout(LOOK);
                }
            }
        }
    }

    /// Writes a checkpoint when enough was written since the last one. Here, because none may be taken while a
    /// compaction runs.
    fn checkpoint_when_due(&mut self) {
        let newest = self.shared.segments.list().in_order().last().cloned();
        let Some(newest) = newest else {
            return;
        };
        let (file, length) = self.checkpointed;
        let files = u64::from(newest.name.last.saturating_sub(file));
        let written = (files * self.config.segment.bytes() + newest.length()).saturating_sub(length);
        let indexes: usize = self.shared.spaces.iter().map(Space::memory).sum();
        if written
            < self
                .config
                .checkpoint_above
                .bytes()
                .max(indexes as u64 / 2)
                .max(1)
        {
            return;
        }
        let (done, point) = bounded(1);
        if self.writer.send(Message::Checkpoint(done)).is_err() {
            return;
        }
        // Where it fails it is tried again when as much has been written.
        self.checkpointed = (newest.name.last, newest.length());
        if let Ok(Some(point)) = point.recv() {
            checkpoint::write(&self.shared, &self.directory, &point);
        }
    }

    /// Reads a file that was not read when the store was opened. Records in it that are damaged are refused when they
    /// are asked for; this is how it becomes known before.
    fn check(&self, file: &Arc<Segment>) {
        let mut pace = Pace::new(self);
        let mut judge = Judge::new(file, 0);
        let mut walk = Walk::new(file.clone(), FILE_HEAD);
        let reason = loop {
            let step = match walk.next() {
                Ok(Some(step)) => step,
                Ok(None) => break judge.finish(false).err(),
                Err(fault) => break Some(fault.to_string()),
            };
            if let Err(reason) = judge.see(&step) {
                break Some(reason);
            }
            if pace.read(step.size).is_err() {
                return;
            }
        };
        if let Some(reason) = reason {
            self.shared.counters.damaged.fetch_add(1, Relaxed);
            tracing::error!(
                file = %file.path().display(),
                byte = walk.offset(),
                reason,
                "a file of the log is damaged; `signalbox store verify` lists all damage"
            );
            self.shared.trouble.found(Damage {
                file: file.name.to_string(),
                byte: walk.offset(),
                reason,
            });
        }
    }

    fn compact(&self, run: &[Arc<Segment>]) -> Result<(), Stop> {
        let slot = self
            .shared
            .segments
            .take_slot(Need::Upkeep)
            .map_err(|error| Stop::Failed(error.to_string()))?;
        let outcome = self.compact_into(run, slot);
        if outcome.is_err()
            && !self
                .shared
                .segments
                .list()
                .in_order()
                .iter()
                .any(|other| other.slot == slot)
        {
            self.shared.segments.free_slot(slot);
        }
        outcome
    }

    fn compact_into(&self, run: &[Arc<Segment>], slot: u16) -> Result<(), Stop> {
        let newest = self
            .shared
            .segments
            .list()
            .in_order()
            .last()
            .map_or(0, |segment| segment.name.last);
        let temporary = self.directory.join(TEMPORARY);
        let output = Segment::create(temporary.clone(), Name::fresh(0), slot, newest)
            .map_err(|error| failed("create", &temporary, &error))?;
        let mut copy = Copy {
            output: Output::new(output),
            bytes: Vec::new(),
            old: Vec::new(),
        };
        let mut pace = Pace::new(self);
        let mut copied = 0;
        for segment in run {
            // What a segment keeps is known when it is copied; one that may not fit any more waits.
            if copied > 0 && copy.output.length() + segment.length() > self.config.segment.bytes() {
                break;
            }
            self.copy(segment, &run[..copied], &mut copy, &mut pace)?;
            copied += 1;
        }
        let Copy { output, old, .. } = copy;
        let run = &run[..copied];
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let generation = run
            .iter()
            .map(|segment| segment.name.generation)
            .max()
            .unwrap_or(0)
            + 1;
        let name = Name {
            first: first.name.first,
            last: last.name.last,
            generation,
        };
        let path = name.path(&self.directory);
        let output = output
            .complete(name)
            .map_err(|error| failed("write", &temporary, &error))?;
        let at = output.length();
        disk::rename(&temporary, &path).map_err(|error| failed("rename", &path, &error))?;
        disk::sync_directory(&path).map_err(|error| failed("rename", &path, &error))?;

        let output = Arc::new(output.renamed(path, name));
        self.shared.segments.add(&output);
        self.turn_over(&output, old)?;
        for segment in run {
            self.shared.segments.remove(segment);
            if let Err(error) = disk::remove_file(segment.path()) {
                // The next start removes it.
                tracing::warn!(%error, file = %segment.path().display(), "cannot remove a compacted file");
            }
        }
        let counters = &self.shared.counters;
        counters.compactions.fetch_add(1, Relaxed);
        counters.compacted_bytes.fetch_add(at, Relaxed);
        tracing::debug!(from = run.len(), bytes = at, segment = %output.path().display(), "compacted");
        Ok(())
    }

    /// Has the indexes point to the copies instead of their originals, which were at the places `old`.
    fn turn_over(&self, output: &Arc<Segment>, old: Vec<Location>) -> Result<(), Stop> {
        let mut walk = Walk::new(output.clone(), FILE_HEAD);
        let mut old = old.into_iter();
        loop {
            let mut turn = Vec::with_capacity(TURN);
            while turn.len() < TURN {
                let next = walk
                    .next()
                    .map_err(|reason| Stop::Failed(format!("{}: {reason}", output.path().display())))?;
                let Some(Step {
                    offset, size, entry, ..
                }) = next
                else {
                    break;
                };
                if entry.kind == Kind::Put
                    && let Some(space) = self.shared.spaces.get(usize::from(entry.table))
                    && let Some(old) = old.next()
                {
                    turn.push(space.plan_move(&entry, old, Location::new(output.slot, offset), size));
                }
            }
            if turn.is_empty() {
                return Ok(());
            }
            let (done, turned) = bounded(1);
            self.writer
                .send(Message::Moves(turn, done))
                .map_err(|_| Stop::Closing)?;
            turned.recv().map_err(|_| Stop::Closing)?;
        }
    }

    /// Copies what is current of one segment, after those `before` it in the run.
    fn copy(
        &self,
        segment: &Arc<Segment>,
        before: &[Arc<Segment>],
        copy: &mut Copy,
        pace: &mut Pace<'_>,
    ) -> Result<(), Stop> {
        let horizon = horizon(&self.shared.segments.list(), segment, before);
        let mut walk = Walk::new(segment.clone(), FILE_HEAD);
        loop {
            let next = walk
                .next()
                .map_err(|reason| Stop::Failed(format!("{}: {reason}", segment.path().display())))?;
            let Some(Step {
                offset, size, entry, ..
            }) = next
            else {
                return Ok(());
            };
            if !entry.is_of_a_record() {
                pace.read(size)?;
                continue;
            }
            let Some(space) = self.shared.spaces.get(usize::from(entry.table)) else {
                return Err(Stop::Failed(format!("an entry of unknown table {}", entry.table)));
            };
            // Whether an older segment may hold an entry of the same record.
            let older = entry.oldest != NONE_OLDER && entry.oldest <= horizon;
            let oldest = if older { entry.oldest } else { NONE_OLDER };
            let here = Location::new(segment.slot, offset);
            match entry.kind {
                Kind::Put => {
                    let hash = space.primary.hash(entry.key);
                    if space.primary.contains(hash, here) {
                        copy.append(&Entry {
                            continues: false,
                            follows: false,
                            oldest,
                            ..entry
                        })?;
                        copy.old.push(here);
                    }
                }
                Kind::Delete if older => {
                    copy.append(&Entry {
                        continues: false,
                        follows: false,
                        oldest,
                        ..entry
                    })?;
                }
                Kind::Delete | Kind::Group | Kind::End => {}
            }
            pace.read(size)?;
        }
    }
}

/// The file being written, and where its records were.
struct Copy {
    output: Output,
    bytes: Vec<u8>,
    old: Vec<Location>,
}

impl Copy {
    fn append(&mut self, entry: &Entry<'_>) -> Result<(), Stop> {
        self.bytes.clear();
        entry.encode(&mut self.bytes);
        self.output.segment().saw_version(entry.version.0);
        self.output
            .append(&self.bytes)
            .map_err(|error| failed("write", self.output.segment().path(), &error))
    }
}

/// Holds compaction back to its rate.
struct Pace<'a> {
    compactor: &'a Compactor,
    begun: Instant,
    read: u64,
    checked: u64,
    urgent: bool,
}

impl Pace<'_> {
    fn new(compactor: &Compactor) -> Pace<'_> {
        let list = compactor.shared.segments.list();
        let (length, live) = list.in_order().iter().fold((0, 0), |(length, live), segment| {
            (length + segment.length(), live + segment.live())
        });
        let urgent =
            (length - live.min(length)) as f64 > length as f64 * compactor.config.compact_at.fraction();
        Pace {
            compactor,
            begun: Instant::now(),
            read: 0,
            checked: 0,
            urgent,
        }
    }

    fn read(&mut self, bytes: u64) -> Result<(), Stop> {
        self.read += bytes;
        if self.read - self.checked < CHUNK as u64 {
            return Ok(());
        }
        self.checked = self.read;
        if self.compactor.stopping.load(Relaxed) {
            return Err(Stop::Closing);
        }
        if !self.urgent {
            let due = self.read as f64 / self.compactor.config.compaction_rate.bytes() as f64;
            let due = Duration::from_secs_f64(due);
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
        Ok(())
    }
}

/// The newest segment before `segment` in which a void entry can hide of a record that `segment` deletes: one that
/// was not compacted since, and is not in the same run. 0: none.
fn horizon(list: &SegmentList, segment: &Segment, run: &[Arc<Segment>]) -> u32 {
    let others = list.in_order().iter().filter(|other| {
        other.name.last < segment.name.last
            && other.compacted_at <= segment.name.last
            && !run.iter().any(|inside| inside.slot == other.slot)
    });
    others.map(|other| other.name.last).max().unwrap_or(0)
}

/// The neighbouring segments to compact next; none when nothing is worth it.
fn choose(list: &SegmentList, config: &EmbeddedConfig) -> Vec<Arc<Segment>> {
    let Some((active, sealed)) = list.in_order().split_last() else {
        return Vec::new();
    };
    let rested =
        |segment: &Segment| segment.compacted_at == 0 || active.name.last >= segment.compacted_at + REST;
    let void = |segment: &Segment| segment.garbage() >= config.compact_at.fraction();
    let small = |segment: &Segment| segment.length() <= config.segment.bytes() / 8;
    let worth = |position: usize| {
        let segment = &sealed[position];
        let neighbours = sealed
            .get(position + 1)
            .is_some_and(|next| small(segment) && small(next) && rested(next));
        rested(segment) && (void(segment) || neighbours)
    };
    let Some(start) = (0..sealed.len()).find(|position| worth(*position)) else {
        return Vec::new();
    };
    let mut run = vec![sealed[start].clone()];
    let mut bytes = kept(&sealed[start]);
    for next in &sealed[start + 1..] {
        bytes += kept(next);
        if bytes > config.segment.bytes() || !(void(next) || small(next)) {
            break;
        }
        run.push(next.clone());
    }
    run
}

/// Bytes that a compaction may keep of a segment at most: what is current, and deletions, which are void but
/// perhaps must stay.
fn kept(segment: &Segment) -> u64 {
    segment.live() + (segment.length() - segment.live().min(segment.length())) / 4
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Stop {
    Stop::Failed(format!("cannot {what} {}: {error}", path.display()))
}
