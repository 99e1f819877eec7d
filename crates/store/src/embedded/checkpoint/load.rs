//! Reading a checkpoint.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ahash::AHashMap;
use crossbeam_channel::{Receiver, bounded};

use super::super::Shared;
use super::super::hash_index::{HashIndex, MAX_SEGMENTS};
use super::super::name::Name;
use super::super::segment::Segment;
use super::super::space::{IndexRef, Secondary};
use super::super::time_index::time_of;
use super::save::end_of;
use super::{BLOCK, CHECKPOINT, Head, LAST, LONGEST_HEAD, Listed, ListedTable, MAGIC, checksum};
use crate::record::Key;

/// What a checkpoint has made known of the files of the log.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Loaded {
    files: AHashMap<Name, Known>,
    /// Number and length of the last file at the time of the checkpoint.
    place: (u32, u64),
}

/// How much of a file need not be read.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) enum Known {
    /// All of it; its latest version.
    Whole(u64),
    /// Its entries before `offset`, if their chain is this one.
    UpTo { offset: u64, chain: u64 },
}

impl Loaded {
    pub(in crate::embedded) fn of(&self, file: &Segment) -> Option<Known> {
        self.files.get(&file.name).copied()
    }

    /// Whether a file need not be read.
    pub(in crate::embedded) fn is_whole(&self, file: &Segment) -> bool {
        matches!(self.of(file), Some(Known::Whole(_)))
    }

    /// Where the log ended at the time of the checkpoint: number of the file and its length.
    pub(in crate::embedded) fn place(&self) -> (u32, u64) {
        self.place
    }

    /// Whether the log is as it was at the time of the checkpoint.
    pub(in crate::embedded) fn is_complete(&self, shared: &Shared) -> bool {
        let list = shared.segments.list();
        let same = |file: &Segment| match self.of(file) {
            Some(Known::Whole(_)) => true,
            Some(Known::UpTo { offset, .. }) => file.length() == offset,
            None => false,
        };
        !self.files.is_empty() && list.in_order().iter().all(|file| same(file))
    }
}

/// Blocks read ahead of the threads that take them.
const AHEAD: usize = 16;
/// Records read at a time for indexes that are ordered.
const PAGE: usize = 4_096;

/// Reads the checkpoint, if there is one, into indexes that are empty.
///
/// # Errors
/// Why it cannot be used; the indexes must be made again then.
pub(in crate::embedded) fn load(directory: &Path, shared: &mut Shared) -> Result<Option<Loaded>, String> {
    let mut file = match File::open(directory.join(CHECKPOINT)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let head = read_head(&mut file)?;
    prepare(shared, &head)?;
    let shared = &*shared;
    let (loaded, slots) = judge(shared, &head)?;
    read_blocks(&mut file, shared, &slots)?;
    fill_ordered(shared, &slots)?;
    for listed in &head.files {
        let list = shared.segments.list();
        if let Some(segment) = list.in_order().iter().find(|file| file.name == listed.name()) {
            segment.add_live(listed.live);
            segment.saw_version(listed.newest);
        }
    }
    Ok(Some(loaded))
}

fn read_head(file: &mut File) -> Result<Head, String> {
    let cut = |error: io::Error| format!("its head: {error}");
    let mut begin = [0; 16];
    file.read_exact(&mut begin).map_err(cut)?;
    let number = |at: usize| {
        let bytes = begin.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    if begin[..8] != MAGIC[..] {
        return Err("another format".to_owned());
    }
    let length = usize::try_from(number(8)).unwrap_or(usize::MAX);
    if length > LONGEST_HEAD {
        return Err(format!("a head of {length} bytes"));
    }
    let mut text = vec![0; length];
    file.read_exact(&mut text).map_err(cut)?;
    if checksum(&begin[8..12], &text) != number(12) {
        return Err("the checksum of its head does not fit".to_owned());
    }
    serde_json::from_slice(&text).map_err(|error| format!("its head: {error}"))
}

/// Has the indexes hash as those of the checkpoint do.
fn prepare(shared: &mut Shared, head: &Head) -> Result<(), String> {
    if head.tables.len() > shared.spaces.len() {
        return Err("it has tables that the log has not".to_owned());
    }
    for (space, listed) in shared.spaces.iter_mut().zip(&head.tables) {
        let seeds = |position: usize| listed.indexes.get(position).and_then(|index| index.seeds);
        if let Some(seeds) = seeds(0) {
            space.primary = HashIndex::with_seeds(seeds);
        }
        for (position, index) in space.secondary.iter_mut().enumerate() {
            if let (Secondary::Hashed(hashed), Some(seeds)) = (index, seeds(position + 1)) {
                *hashed = HashIndex::with_seeds(seeds);
            }
        }
        if ListedTable::of(space) != *listed {
            return Err(format!("table {} has other indexes or hashes", space.name));
        }
    }
    Ok(())
}

/// The slots that files have now.
struct Slots {
    /// By those they had.
    now: Vec<Option<u16>>,
    /// Whether each file is still there.
    are_complete: bool,
}

/// Compares the list of files with the log.
fn judge(shared: &Shared, head: &Head) -> Result<(Loaded, Slots), String> {
    let list = shared.segments.list();
    let by_name: AHashMap<Name, _> = list.in_order().iter().map(|file| (file.name, file)).collect();
    let mut slots = Slots {
        now: vec![None; MAX_SEGMENTS],
        are_complete: true,
    };
    let mut loaded = Loaded::default();
    for (position, listed) in head.files.iter().enumerate() {
        let name = listed.name();
        let open = head.open && position + 1 == head.files.len();
        let Some(file) = by_name.get(&name) else {
            match list.in_order().iter().any(|file| name.is_replaced_by(file.name)) {
                true => {
                    slots.are_complete = false;
                    continue;
                }
                false => return Err(format!("it lists {name}, which is not there")),
            }
        };
        let known = match open {
            true if file.length() < listed.length => Err(format!("{name} is shorter than it says")),
            true => Ok(Known::UpTo {
                offset: listed.length,
                chain: listed.chain,
            }),
            false => whole(file, listed),
        }?;
        let slot = slots
            .now
            .get_mut(usize::from(listed.slot))
            .ok_or_else(|| format!("{name} has slot {}", listed.slot))?;
        if slot.replace(file.slot).is_some() {
            return Err(format!("two files have slot {}", listed.slot));
        }
        loaded.files.insert(name, known);
        loaded.place = (listed.last, listed.length);
    }
    Ok((loaded, slots))
}

fn whole(file: &Segment, listed: &Listed) -> Result<Known, String> {
    let same = file.length() == listed.length
        && end_of(file, listed.length)
            .map_err(|error| format!("{}: {error}", file.path().display()))?
            .is_some_and(|note| note.chain == listed.chain);
    match same {
        true => Ok(Known::Whole(listed.newest)),
        false => Err(format!("{} is not as it says", listed.name())),
    }
}

/// A block: of which table, index and shard, and its bytes.
struct Block {
    table: u16,
    index: u16,
    shard: u16,
    checksum: u32,
    head: [u8; 12],
    places: Vec<u8>,
}

fn read_blocks(file: &mut File, shared: &Shared, slots: &Slots) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (sender, queue) = bounded::<Block>(AHEAD);
        let takers: Vec<_> = (0..cores.clamp(1, 8))
            .map(|_| {
                let queue = queue.clone();
                scope.spawn(move || take_blocks(&queue, shared, slots))
            })
            .collect();
        // The takers end when one of them has failed and when no block is left.
        drop(queue);
        let mut count = 0u32;
        let read = loop {
            match read_block(file) {
                Err(error) => break Err(format!("after {count} blocks: {error}")),
                Ok((block, expected)) if block.table == LAST => {
                    let right = expected == count && checksum(&block.head, &[]) == block.checksum;
                    break right.then_some(()).ok_or_else(|| "blocks are missing".to_owned());
                }
                Ok((block, _)) => {
                    count += 1;
                    if sender.send(block).is_err() {
                        // Each of them says why it has ended.
                        break Ok(());
                    }
                }
            }
        };
        drop(sender);
        let taken = takers.into_iter().map(|taker| {
            let outcome = taker.join();
            outcome.unwrap_or_else(|_| Err("reading it has panicked".to_owned()))
        });
        taken.chain([read]).collect::<Result<(), String>>()
    })
}

fn read_block(file: &mut File) -> io::Result<(Block, u32)> {
    let mut head = [0; BLOCK];
    file.read_exact(&mut head)?;
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let count = number(8);
    let of_places = if half(0) == LAST { 0 } else { u64::from(count) * 8 };
    let mut places = Vec::new();
    // Read as far as the file goes: a wrong count must not take memory.
    file.take(of_places).read_to_end(&mut places)?;
    if places.len() as u64 != of_places {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let block = Block {
        table: half(0),
        index: half(2),
        shard: half(4),
        checksum: number(12),
        head: *head.first_chunk().unwrap_or(&[0; 12]),
        places,
    };
    Ok((block, count))
}

fn take_blocks(queue: &Receiver<Block>, shared: &Shared, slots: &Slots) -> Result<(), String> {
    for block in queue {
        if checksum(&block.head, &block.places) != block.checksum {
            return Err("the checksum of a block does not fit".to_owned());
        }
        let space = shared.spaces.get(usize::from(block.table));
        let index = space.and_then(|space| space.index(usize::from(block.index)));
        let restored = index.is_some_and(|index| match index {
            IndexRef::ByTime(_) if !slots.are_complete => true,
            index => index
                .sharded()
                .restore(usize::from(block.shard), &block.places, &slots.now),
        });
        if !restored {
            return Err("a block is of no index".to_owned());
        }
    }
    Ok(())
}

/// Fills indexes that the checkpoint does not have from the records of their tables.
fn fill_ordered(shared: &Shared, slots: &Slots) -> Result<(), String> {
    let ordered = |index: &Secondary| match index {
        Secondary::Hashed(_) => false,
        Secondary::ByTime(_) => !slots.are_complete,
        Secondary::Ordered(_) => true,
    };
    for space in shared
        .spaces
        .iter()
        .filter(|space| space.secondary.iter().any(ordered))
    {
        let (mut after, mut buffer) = (None, Vec::new());
        loop {
            let (places, next) = space.primary.walk(after, PAGE);
            let list = shared.segments.list();
            for (_, location) in &places {
                let segment = list
                    .at(*location)
                    .ok_or_else(|| format!("table {}: a place in no file", space.name))?;
                let entry = segment.read(location.offset(), &mut buffer)?;
                for (index, key) in entry.index_keys() {
                    match space.secondary.get(usize::from(index.0)) {
                        Some(Secondary::Ordered(ordered)) => {
                            let pair = (Key::from_slice(key), Key::from_slice(entry.key));
                            ordered.write().insert(pair);
                        }
                        Some(Secondary::ByTime(by_time)) => {
                            by_time.insert((time_of(key), space.primary.hash(entry.key)));
                        }
                        Some(Secondary::Hashed(_)) | None => {}
                    }
                }
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(())
}
