//! The engine inside this process: `fjall`, a log-structured merge tree, behind one writer thread.
//!
//! Why fjall: see `BENCH.md` beside this crate's manifest. Reads happen on the caller's thread; they take no
//! lock that a writer holds for long. Writes go through a bounded queue to the [`writer`].

mod layout;
mod open;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Sender, TrySendError};
use fjall::{Database, Keyspace};
use parking_lot::Mutex;

use self::layout::Envelope;
use self::writer::{Job, read};
use crate::batch::Batch;
use crate::engine::{Engine, Order, PageRequest, Place, Row, RowPage, TableId};
use crate::error::{Error, hex};
use crate::reply::{Receipt, Reply};
use crate::schema::{Index, TableSchema};
use crate::stats::Stats;

pub(crate) use self::open::open;

/// The two key-value spaces of a table; see [`layout`].
pub(super) struct Space {
    pub(super) schema: &'static TableSchema,
    pub(super) rows: Keyspace,
    pub(super) keys: Keyspace,
    /// Names of sites by their number in envelopes.
    pub(super) sites: Arc<Vec<Arc<str>>>,
}

/// Figures that several threads write, once per commit.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) batches: AtomicU64,
    pub(super) conflicts: AtomicU64,
    pub(super) overflows: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) groups: AtomicU64,
    pub(super) commit_micros: AtomicU64,
    pub(super) waiting_bytes: AtomicUsize,
}

/// The embedded engine.
pub(crate) struct Embedded {
    database: Database,
    spaces: Arc<Vec<Space>>,
    counters: Arc<Counters>,
    queue_bytes: usize,
    /// `None` once closed.
    queue: ArcSwapOption<Sender<Job>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    fn space(&self, table: TableId) -> &Space {
        // Ids come from `Store::table`, which counted the same list.
        &self.spaces[usize::from(table.0)]
    }
}

impl Engine for Embedded {
    fn wants_columns(&self, _table: TableId) -> bool {
        false
    }

    fn get(&self, table: TableId, key: &[u8]) -> Reply<Option<Row>> {
        Reply::now(self.space(table).row(key))
    }

    fn find(&self, table: TableId, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Row>> {
        Reply::now(self.space(table).find(index, key, limit))
    }

    fn page(&self, table: TableId, request: PageRequest) -> Reply<RowPage> {
        Reply::now(self.space(table).page(&request))
    }

    fn commit(&self, batch: Batch) -> Receipt {
        let guard = self.queue.load();
        let Some(queue) = guard.as_ref() else {
            return Receipt::refused(Error::Closed);
        };
        let bytes = batch.bytes;
        let waiting = self.counters.waiting_bytes.fetch_add(bytes, Relaxed);
        let (done, receipt) = Receipt::pair();
        let refused = if waiting + bytes > self.queue_bytes {
            true
        } else {
            match queue.try_send(Job { batch, done }) {
                Ok(()) => false,
                Err(TrySendError::Full(_)) => true,
                Err(TrySendError::Disconnected(_)) => return Receipt::refused(Error::Closed),
            }
        };
        if refused {
            self.counters.waiting_bytes.fetch_sub(bytes, Relaxed);
            self.counters.overflows.fetch_add(1, Relaxed);
            return Receipt::refused(Error::Overflow {
                waiting: queue.len(),
                bytes: waiting,
            });
        }
        receipt
    }

    fn stats(&self) -> Stats {
        let counters = &self.counters;
        Stats {
            batches: counters.batches.load(Relaxed),
            conflicts: counters.conflicts.load(Relaxed),
            overflows: counters.overflows.load(Relaxed),
            failures: counters.failures.load(Relaxed),
            operations: counters.operations.load(Relaxed),
            groups: counters.groups.load(Relaxed),
            commit_time: Duration::from_micros(counters.commit_micros.load(Relaxed)),
            waiting: self.queue.load().as_ref().map_or(0, |queue| queue.len()),
            waiting_bytes: counters.waiting_bytes.load(Relaxed),
            disk_bytes: self.database.disk_space().unwrap_or(0),
            journal_bytes: self.database.journal_disk_space().unwrap_or(0),
            memtable_bytes: self.database.write_buffer_size(),
            cache_bytes: self.database.cache_size(),
            ..Stats::default()
        }
    }

    fn close(&self) {
        // The writer ends when the last sender is gone, after it has committed what waits.
        self.queue.store(None);
        let writer = self.writer.lock().take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the store's writer thread panicked");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

impl Space {
    pub(super) fn corrupt(&self, key: &[u8], reason: String) -> Error {
        Error::Corrupt {
            table: self.schema.name,
            key: hex(key),
            reason,
        }
    }

    fn row(&self, key: &[u8]) -> Result<Option<Row>, Error> {
        self.row_if(key, |_| true)
    }

    /// The row if it passes `test`.
    fn row_if(&self, key: &[u8], test: impl Fn(&Envelope<'_>) -> bool) -> Result<Option<Row>, Error> {
        let Some(bytes) = read(&self.rows, key)? else {
            return Ok(None);
        };
        let envelope = Envelope::decode(&bytes).map_err(|reason| self.corrupt(key, reason))?;
        if !test(&envelope) {
            return Ok(None);
        }
        let site = self
            .sites
            .get(usize::from(envelope.site))
            .ok_or_else(|| self.corrupt(key, format!("site number {} has no name", envelope.site)))?;
        Ok(Some(envelope.row(key, site.clone())))
    }

    /// Index entry and record are read one after the other, so the record may have changed in between; one that
    /// no longer has the key is left out.
    fn find(&self, index: Index, key: &[u8], limit: usize) -> Result<Vec<Row>, Error> {
        let holds = |envelope: &Envelope<'_>| envelope.index_keys().any(|held| held == (index, key));
        let Some(schema) = self.schema.indexes.get(usize::from(index.0)) else {
            return Err(Error::Invalid(format!(
                "table {} has no index {}",
                self.schema.name, index.0
            )));
        };
        let mut rows = Vec::new();
        if schema.unique {
            if let Some(primary) = read(&self.keys, &layout::unique_entry(index, key))? {
                rows.extend(self.row_if(&primary, holds)?);
            }
            return Ok(rows);
        }
        let prefix = layout::entry_prefix(index, key, 0);
        for guard in self.keys.prefix(&prefix) {
            if rows.len() >= limit {
                break;
            }
            let entry = guard.key().map_err(|error| Error::Engine(error.to_string()))?;
            // `prefix` yields keys that begin with the prefix.
            rows.extend(self.row_if(&entry[prefix.len()..], holds)?);
        }
        Ok(rows)
    }

    fn page(&self, request: &PageRequest) -> Result<RowPage, Error> {
        match request.order {
            Order::Primary => self.primary_page(request),
            Order::Index(index) => self.entry_page(request, Some(index)),
            Order::Modified => self.entry_page(request, None),
        }
    }

    fn primary_page(&self, request: &PageRequest) -> Result<RowPage, Error> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match (&request.after, &request.from) {
            (Some(place), _) => Excluded(place.primary.as_slice()),
            (None, Some(key)) => Included(key.as_slice()),
            (None, None) => Unbounded,
        };
        let to = request.to.as_deref().map_or(Unbounded, Excluded);
        let mut page = RowPage::default();
        if is_empty(from, to) {
            return Ok(page);
        }
        for guard in self.rows.range::<&[u8], _>((from, to)) {
            let (key, bytes) = guard
                .into_inner()
                .map_err(|error| Error::Engine(error.to_string()))?;
            let envelope = Envelope::decode(&bytes).map_err(|reason| self.corrupt(&key, reason))?;
            let site = self
                .sites
                .get(usize::from(envelope.site))
                .ok_or_else(|| self.corrupt(&key, format!("site number {} has no name", envelope.site)))?;
            page.rows.push(envelope.row(&key, site.clone()));
            if page.rows.len() >= request.limit {
                page.next = Some(Place {
                    order_key: Vec::new(),
                    primary: key.to_vec(),
                });
                break;
            }
        }
        Ok(page)
    }

    /// A page in the order of an index, or of modification (`None`).
    fn entry_page(&self, request: &PageRequest, index: Option<Index>) -> Result<RowPage, Error> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let unique = index.is_some_and(|index| {
            self.schema
                .indexes
                .get(usize::from(index.0))
                .is_some_and(|index| index.unique)
        });
        let bound = |key: &[u8]| match index {
            Some(index) if unique => layout::unique_entry(index, key),
            Some(index) => layout::entry_bound(index, key),
            None => layout::modified_bound(key),
        };
        let from = match &request.after {
            Some(place) => Excluded(match index {
                Some(index) if unique => layout::unique_entry(index, &place.order_key),
                Some(index) => layout::entry(index, &place.order_key, &place.primary),
                None => [bound(&place.order_key), place.primary.clone()].concat(),
            }),
            None => Included(bound(request.from.as_deref().unwrap_or_default())),
        };
        let to = match (&request.to, layout::end_of(index)) {
            (Some(key), _) => Excluded(bound(key)),
            (None, Some(end)) => Excluded(end),
            (None, None) => Unbounded,
        };
        let mut page = RowPage::default();
        if is_empty(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)) {
            return Ok(page);
        }
        // Entries read, not rows found: a page of entries whose records have just gone ends too.
        let mut entries = 0;
        for guard in self.keys.range((from, to)) {
            let (entry, value) = guard
                .into_inner()
                .map_err(|error| Error::Engine(error.to_string()))?;
            let broken = || self.corrupt(&entry, "not an index entry".to_owned());
            let (order_key, primary) = match index {
                Some(_) if unique => (entry[1..].to_vec(), value.to_vec()),
                Some(_) => {
                    let (key, primary) = layout::split_entry(&entry).ok_or_else(broken)?;
                    (key, primary.to_vec())
                }
                None => {
                    let (version, primary) = layout::split_modified(&entry).ok_or_else(broken)?;
                    (version.to_vec(), primary.to_vec())
                }
            };
            let current = |envelope: &Envelope<'_>| match index {
                Some(index) => envelope
                    .index_keys()
                    .any(|held| held == (index, order_key.as_slice())),
                None => envelope.version.0.to_be_bytes() == order_key.as_slice(),
            };
            page.rows.extend(self.row_if(&primary, current)?);
            entries += 1;
            if entries >= request.limit {
                page.next = Some(Place { order_key, primary });
                break;
            }
        }
        Ok(page)
    }
}

/// Whether a range holds nothing; the engine's ranges do not accept an end before the beginning.
fn is_empty(from: std::ops::Bound<&[u8]>, to: std::ops::Bound<&[u8]>) -> bool {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    match (from, to) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(from), Included(to)) => from > to,
        (Included(from) | Excluded(from), Included(to) | Excluded(to)) => from >= to,
    }
}
