//! The engine inside this process: a log on disk, indexes in memory.
//!
//! Records are appended to a [`segment`] of the log, many batches in one flush; [`hash_index`]es in memory know
//! where each record is, by primary key and by the keys of its indexes. A read is one look into an index and one
//! read of the file, which the operating system's page cache mostly answers. [`compact`] copies what is still
//! current out of segments that hold mostly void entries. [`open`] reads the log to build the indexes.
//!
//! Why not one of the well-kept storage libraries: `BENCH.md` beside this crate's manifest. In short, with three
//! secondary indexes they cost five to twenty times the CPU of this on our path and a lookup through an index
//! ten times, and the order they keep is not needed by session state.
//!
//! What is deliberately not here: order by primary key, range scans over indexes that are not declared `ordered`,
//! transactions that read (a batch has conditions instead), more than one process.

mod backup;
mod capture;
mod catalogue;
mod checkpoint;
mod compact;
mod disk;
mod entry;
mod export;
mod files;
mod hash_index;
mod head;
mod inspect;
mod judge;
mod lock;
mod mark;
mod name;
mod open;
mod output;
#[cfg(test)]
mod power;
mod private;
mod probe;
mod recover;
mod reserve;
mod running;
mod salvage;
mod scan;
mod segment;
mod segments;
mod space;
mod tail;
mod time_index;
mod walk;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Sender, TrySendError};
use parking_lot::Mutex;

use self::lock::Lock;
use self::running::{InProgress, Source};
use self::segments::Segments;
use self::space::Space;
use self::writer::{Job, Message};
use crate::batch::Batch;
use crate::config::LARGEST_SEGMENT;
use crate::copies::{BackedUp, BackupError};
use crate::engine::{Engine, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::reply::{Receipt, Reply};
use crate::schema::{Index, TableId};
use crate::stats::Stats;
use crate::trouble::Trouble;

pub use self::backup::{Restored, backup, restore};
pub use self::export::{Exported, export};
pub use self::inspect::{Verified, VerifiedFile, verify};
pub(crate) use self::open::open;
pub use self::salvage::{Dropped, Salvaged, salvage};

/// What readers, the writer and compaction share.
struct Shared {
    segments: Segments,
    /// By number in the log.
    spaces: Vec<Space>,
    /// Numbers in the log of the tables the store was opened with, by [`TableId`].
    opened: Vec<u16>,
    /// Names of sites by their number in entries.
    sites: Vec<Arc<str>>,
    counters: Counters,
    trouble: Trouble,
}

/// Figures that several threads write, once per commit.
#[derive(Default)]
struct Counters {
    batches: AtomicU64,
    conflicts: AtomicU64,
    overflows: AtomicU64,
    failures: AtomicU64,
    operations: AtomicU64,
    groups: AtomicU64,
    commit_micros: AtomicU64,
    waiting_bytes: AtomicUsize,
    compactions: AtomicU64,
    compacted_bytes: AtomicU64,
    checkpoints: AtomicU64,
    checkpoint_bytes: AtomicU64,
    unread: AtomicU64,
    damaged: AtomicU64,
}

impl Shared {
    fn space(&self, table: TableId) -> &Space {
        // Ids come from `Store::table`, which counted the list that `opened` was made from, and `opened` names
        // spaces that exist.
        &self.spaces[usize::from(self.opened[usize::from(table.0)])]
    }
}

/// Whether a directory's store has a table of this name.
///
/// # Errors
/// When its catalogue cannot be read.
pub(crate) fn has_table(directory: &std::path::Path, name: &str) -> Result<bool, crate::error::Error> {
    let catalogue = catalogue::Catalogue::read(directory)?;
    Ok(catalogue.is_some_and(|catalogue| catalogue.tables.iter().any(|table| table.name == name)))
}

/// The embedded engine.
pub(crate) struct Embedded {
    shared: Arc<Shared>,
    queue_bytes: usize,
    /// `None` once closed.
    queue: ArcSwapOption<Sender<Message>>,
    stopping: Arc<AtomicBool>,
    wake: Sender<()>,
    /// Compaction, then the writer: the order in which they end.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Locked while the store is open, so that no other process opens it.
    lock: Lock,
    directory: PathBuf,
    /// Bytes a second that are read for a copy.
    copy_rate: u64,
    copying: InProgress,
}

impl Engine for Embedded {
    fn wants_columns(&self, _table: TableId) -> bool {
        false
    }

    fn get(&self, table: TableId, key: &[u8]) -> Reply<Option<Row>> {
        let row = self
            .shared
            .space(table)
            .lookup(&self.shared.segments, key, |_, entry| self.shared.row(entry));
        Reply::now(row.and_then(Option::transpose))
    }

    fn find(&self, table: TableId, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Row>> {
        let space = self.shared.space(table);
        let rows = space.find(&self.shared.segments, index, key, limit, |entry| {
            self.shared.row(entry)
        });
        let rows = rows.and_then(|rows| rows.into_iter().collect::<Result<Vec<Row>, Error>>());
        Reply::now(rows.map(|mut rows| {
            rows.sort_by_key(|row| std::cmp::Reverse((row.created, row.version)));
            rows
        }))
    }

    fn page(&self, table: TableId, request: PageRequest) -> Reply<RowPage> {
        Reply::now(self.scan(self.shared.space(table), &request))
    }

    fn commit(&self, batch: Batch) -> Receipt {
        let guard = self.queue.load();
        let Some(queue) = guard.as_ref() else {
            return Receipt::refused(Error::Closed);
        };
        let counters = &self.shared.counters;
        let bytes = batch.bytes;
        let waiting = counters.waiting_bytes.fetch_add(bytes, Relaxed);
        let (done, receipt) = Receipt::pair();
        let sent = if waiting + bytes > self.queue_bytes {
            Err(TrySendError::Full(()))
        } else {
            queue
                .try_send(Message::Commit(Job { batch, done }))
                .map_err(|refused| match refused {
                    TrySendError::Full(_) => TrySendError::Full(()),
                    TrySendError::Disconnected(_) => TrySendError::Disconnected(()),
                })
        };
        if sent.is_ok() {
            return receipt;
        }
        counters.waiting_bytes.fetch_sub(bytes, Relaxed);
        if matches!(sent, Err(TrySendError::Disconnected(()))) {
            return Receipt::refused(Error::Closed);
        }
        counters.overflows.fetch_add(1, Relaxed);
        Receipt::refused(Error::Overflow {
            waiting: queue.len(),
            bytes: waiting,
        })
    }

    fn trouble(&self) -> &Trouble {
        &self.shared.trouble
    }

    fn count(&self, table: TableId) -> Reply<u64> {
        Reply::now(Ok(self.shared.space(table).primary.count() as u64))
    }

    fn count_of(&self, table: TableId, index: Index, key: &[u8]) -> Reply<u64> {
        Reply::now(self.shared.space(table).count_of(index, key))
    }

    fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        let list = self.shared.segments.list();
        let segments = list.in_order();
        Stats {
            batches: counters.batches.load(Relaxed),
            conflicts: counters.conflicts.load(Relaxed),
            overflows: counters.overflows.load(Relaxed),
            failures: counters.failures.load(Relaxed),
            troubled: self.shared.trouble.is_there(),
            operations: counters.operations.load(Relaxed),
            groups: counters.groups.load(Relaxed),
            commit_time: Duration::from_micros(counters.commit_micros.load(Relaxed)),
            waiting: self.queue.load().as_ref().map_or(0, |queue| queue.len()),
            waiting_bytes: counters.waiting_bytes.load(Relaxed),
            disk_bytes: segments.iter().map(|segment| segment.length()).sum(),
            live_bytes: segments.iter().map(|segment| segment.live()).sum(),
            segments: segments.len(),
            index_bytes: self.shared.spaces.iter().map(Space::memory).sum(),
            compactions: counters.compactions.load(Relaxed),
            compacted_bytes: counters.compacted_bytes.load(Relaxed),
            checkpoints: counters.checkpoints.load(Relaxed),
            checkpoint_bytes: counters.checkpoint_bytes.load(Relaxed),
            unread: counters.unread.load(Relaxed),
            damaged: counters.damaged.load(Relaxed),
            ..Stats::default()
        }
    }

    fn backup(&self, to: &Path) -> Result<BackedUp, BackupError> {
        let _turn = self.copying.begin(to)?;
        let incomplete = running::check(&self.directory, to)?;
        let closed = || BackupError::Failed("the store is closed".to_owned());
        let queue = self.queue.load().as_deref().cloned().ok_or_else(closed)?;
        let (done, cut) = crossbeam_channel::bounded(1);
        queue.send(Message::Cut(done)).map_err(|_| closed())?;
        // The writer ends when the last sender is gone.
        drop(queue);
        let cut = cut.recv().map_err(|_| closed())?;
        let cut = cut.map_err(BackupError::Failed)?;
        let source = Source {
            directory: &self.directory,
            rate: self.copy_rate,
            stopping: &self.stopping,
        };
        source.copy(&cut, &incomplete, to)
    }

    fn close(&self) {
        self.stopping.store(true, Relaxed);
        // Full means awake.
        let _ = self.wake.try_send(());
        // The writer ends when the last sender is gone, after it has committed what waits.
        self.queue.store(None);
        for thread in self.threads.lock().drain(..) {
            let name = thread.thread().name().unwrap_or("store").to_owned();
            if thread.join().is_err() {
                tracing::error!(thread = name, "a thread of the store panicked");
            }
        }
        // Now, and not when the last table is dropped.
        self.lock.release();
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}
