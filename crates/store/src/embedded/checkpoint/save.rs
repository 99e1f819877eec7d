//! Writing a checkpoint.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::super::Shared;
use super::super::disk::{self, Disk};
use super::super::entry::{Entry, Kind, NOTE, Note};
use super::super::head::FILE_HEAD;
use super::super::judge::Progress;
use super::super::segment::Segment;
use super::{CHECKPOINT, Head, LAST, Listed, ListedTable, MAGIC, Sharded, TEMPORARY, checksum};

/// The moment of which a checkpoint is, in the writer's thread between two groups.
pub(in crate::embedded) struct Point {
    /// With length, live bytes and latest version at that moment.
    files: Vec<(Arc<Segment>, u64, u64, u64)>,
    /// Of the last file, where that is being written.
    open: Option<Progress>,
}

impl Point {
    /// Now. From here on the indexes keep what a change makes different, until [`write`] has it. `None` where
    /// compaction has stopped in the middle: then a restart must read what it has written.
    pub(in crate::embedded) fn take(shared: &Shared, open: Option<Progress>) -> Option<Point> {
        let list = shared.segments.list();
        let files = list.in_order();
        if list.originals().len() != files.len() {
            return None;
        }
        indexes(shared).for_each(|(_, _, index)| index.begin_capture());
        let figures = |file: &Arc<Segment>| (file.clone(), file.length(), file.live(), file.newest());
        Some(Point {
            files: files.iter().map(figures).collect(),
            open,
        })
    }

    /// The files that the checkpoint vouches for. One of an earlier release has no chain.
    fn listed(&self) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::with_capacity(self.files.len());
        for (position, (file, length, live, newest)) in self.files.iter().enumerate() {
            let open = self.open.filter(|_| position + 1 == self.files.len());
            let chain = match open {
                Some(progress) => Some(progress.chain),
                None => end_of(file, *length)?.map(|note| note.chain),
            };
            listed.extend(chain.map(|chain| Listed {
                first: file.name.first,
                last: file.name.last,
                generation: file.name.generation,
                slot: file.slot,
                length: *length,
                live: *live,
                newest: *newest,
                chain,
            }));
        }
        Ok(listed)
    }
}

/// What the end of a complete file says; `None`: it has none.
pub(super) fn end_of(file: &Segment, length: u64) -> io::Result<Option<Note>> {
    let Some(at) = length.checked_sub(NOTE as u64).filter(|at| *at >= FILE_HEAD) else {
        return Ok(None);
    };
    let mut bytes = [0; NOTE];
    let got = file.read_bytes(&mut bytes, at)?;
    let entry = bytes.get(..got).and_then(|bytes| Entry::decode(bytes).ok());
    let end = entry
        .filter(|entry| entry.kind == Kind::End)
        .and_then(|entry| Note::of(&entry));
    Ok(end.filter(|note| (note.number, note.at) == (file.name.last, at)))
}

/// All indexes that a checkpoint has, with the numbers of their tables and their own.
fn indexes(shared: &Shared) -> impl Iterator<Item = (u16, u16, &dyn Sharded)> {
    shared.spaces.iter().flat_map(|space| {
        // A table has fewer indexes than 256.
        space
            .sharded()
            .map(|(number, index)| (space.number, number as u16, index))
    })
}

/// Writes the checkpoint of a moment in place of the one before, durably. Without it the next start takes longer, and
/// nothing else.
pub(in crate::embedded) fn write(shared: &Shared, directory: &Path, point: &Point) {
    let begun = Instant::now();
    match save(shared, directory, point) {
        Ok(bytes) => {
            shared.counters.checkpoints.fetch_add(1, Relaxed);
            shared.counters.checkpoint_bytes.store(bytes, Relaxed);
            let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::debug!(bytes, milliseconds, "wrote a checkpoint of the indexes");
        }
        Err(error) => {
            // Nothing is kept for it any more.
            indexes(shared).for_each(|(_, _, index)| index.end_capture());
            let _ = disk::remove_file(&directory.join(TEMPORARY));
            tracing::warn!(%error, "failed to write a checkpoint of the indexes");
        }
    }
}

fn save(shared: &Shared, directory: &Path, point: &Point) -> io::Result<u64> {
    let temporary = directory.join(TEMPORARY);
    let mut file = BufWriter::with_capacity(1 << 20, Disk::create(&temporary)?);
    let head = Head {
        files: point.listed()?,
        open: point.open.is_some(),
        tables: shared.spaces.iter().map(ListedTable::of).collect(),
    };
    let head = serde_json::to_vec(&head)?;
    file.write_all(MAGIC)?;
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&checksum(&length.to_le_bytes(), &head).to_le_bytes())?;
    file.write_all(&head)?;
    let mut bytes = (MAGIC.len() + 8 + head.len()) as u64;
    let (mut blocks, mut places) = (0u32, Vec::new());
    for (table, number, index) in indexes(shared) {
        for shard in 0..index.shards() {
            places.clear();
            let count = index.capture(shard, &mut places);
            if count > 0 {
                // Shards are 1,024, and hold no more than a log has places.
                bytes += block(&mut file, [table, number, shard as u16], count as u32, &places)?;
                blocks += 1;
            }
        }
    }
    bytes += block(&mut file, [LAST, 0, 0], blocks, &[])?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    let path = directory.join(CHECKPOINT);
    disk::rename(&temporary, &path)?;
    disk::sync_directory(&path)?;
    Ok(bytes)
}

fn block(file: &mut impl Write, of: [u16; 3], count: u32, places: &[u8]) -> io::Result<u64> {
    let mut head = [0; super::BLOCK];
    for (part, number) in head.chunks_exact_mut(2).zip(of) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    head[8..12].copy_from_slice(&count.to_le_bytes());
    let checksum = checksum(&head[..12], places);
    head[12..].copy_from_slice(&checksum.to_le_bytes());
    file.write_all(&head)?;
    file.write_all(places)?;
    Ok((head.len() + places.len()) as u64)
}
