//! Reads of callers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::client::Failure;
use super::core::Core;
use super::entries::{Entry, partition};
use super::image::Columns;
use super::tables::{CqlIndex, CqlTable};
use super::together::{Request, all};
use crate::engine::{Order, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::schema::{Index, TableId};

/// Pause before another try.
const PAUSE: Duration = Duration::from_millis(20);
/// Entries of an index key read at a time, at least: some are hints that do not hold.
const FEWEST: usize = 16;
/// Rows of the whole table read at a time, at most: some have 64 KB.
const MOST: usize = 256;

/// Asks until there is an answer or time is up.
macro_rules! persist {
    ($core:expr, $ask:expr) => {{
        let deadline = $core.deadline();
        loop {
            match $ask.await {
                Ok(answer) => {
                    $core.counters.reads.fetch_add(1, Relaxed);
                    break answer;
                }
                Err(failure) => $core.read_again(failure, deadline).await?,
            }
        }
    }};
}

/// Entries of an index key that are counted at a time.
const COUNTED: i32 = 4_096;

fn index_of(table: &CqlTable, index: Index) -> Result<&CqlIndex, Error> {
    let unknown = || Error::Invalid(format!("table {} has no index {}", table.name, index.0));
    table.index(index).ok_or_else(unknown)
}

impl Core {
    fn table_of(&self, table: TableId) -> &CqlTable {
        &self.tables.tables[usize::from(table.0)]
    }

    /// What to do about a read that has failed: wait and try again, or return the error.
    pub(super) async fn read_again(&self, failure: Failure, deadline: Instant) -> Result<(), Error> {
        let reason = match failure {
            Failure::Refused(reason) | Failure::Failed(reason) => return Err(Error::Engine(reason)),
            failure => failure.reason(),
        };
        self.counters.retries.fetch_add(1, Relaxed);
        if self.gives_up(deadline) {
            return Err(Error::Unavailable {
                reason,
                maybe_applied: false,
            });
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// Whether what has failed is not tried again: its time is up, or the cluster has not served for `unavailableAfter`.
    pub(super) fn gives_up(&self, deadline: Instant) -> bool {
        let trouble = &self.counters.trouble;
        Instant::now() >= deadline || trouble.has_lasted(self.config.unavailable_after.duration())
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.config.retry_for.duration()
    }

    pub(super) async fn read(self: Arc<Self>, table: TableId, key: Vec<u8>) -> Result<Option<Row>, Error> {
        let rows = self.table_of(table).rows;
        let image = persist!(self, self.get(rows, &key));
        Ok(image.map(|image| image.row(key)))
    }

    pub(super) async fn find(
        self: Arc<Self>,
        table: TableId,
        index: Index,
        key: Vec<u8>,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let number = usize::from(table.0);
        let table = self.table_of(table);
        let index = index_of(table, index)?;
        let mut rows = match index.claims {
            Some(claims) => persist!(self, self.holder(table, index, claims, &key)),
            None => persist!(self, self.holders(number, index, &key, limit)),
        };
        rows.sort_by_key(|row| std::cmp::Reverse((row.created, row.version)));
        rows.truncate(limit);
        Ok(rows)
    }

    /// About how many records have a key: those that an index names, without a look at them.
    pub(super) async fn count_of(
        self: Arc<Self>,
        table: TableId,
        index: Index,
        key: Vec<u8>,
    ) -> Result<u64, Error> {
        let table = self.table_of(table);
        let index = index_of(table, index)?;
        if let Some(claims) = index.claims {
            return Ok(persist!(self, self.holder(table, index, claims, &key)).len() as u64);
        }
        let Some(entries) = &index.entries else {
            return Ok(0);
        };
        let mut count = 0;
        // Before all: no primary key is empty.
        let mut after = (Vec::new(), 0);
        loop {
            let next = (&after.0[..], after.1);
            let found = persist!(self, self.find_entries(entries, &key, next, COUNTED));
            // Shards answer with as many each; those behind the limit are read again.
            let taken = found.len().min(COUNTED as usize);
            count += taken as u64;
            match found.get(taken.wrapping_sub(1)) {
                Some(last) if taken == COUNTED as usize => after = (last.id.clone(), last.entry),
                _ => return Ok(count),
            }
        }
    }

    /// The record that holds a unique key.
    async fn holder(
        &self,
        table: &CqlTable,
        index: &CqlIndex,
        claims: usize,
        key: &[u8],
    ) -> Result<Vec<Row>, Failure> {
        let Some(claim) = self.get(claims, &partition(key)).await? else {
            return Ok(Vec::new());
        };
        let record = self.get(table.rows, &claim.value).await?;
        let record = record.filter(|record| record.holds(index.tag, key, None));
        Ok(record
            .into_iter()
            .map(|record| record.row(claim.value.clone()))
            .collect())
    }

    /// Records that hold a key which several may hold.
    async fn holders(
        &self,
        table: usize,
        index: &CqlIndex,
        key: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, Failure> {
        let Some(entries) = &index.entries else {
            return Ok(Vec::new());
        };
        let size = limit.clamp(FEWEST, MOST);
        let mut rows = Vec::new();
        // Before all: no primary key is empty.
        let mut after = (Vec::new(), 0);
        while rows.len() < limit {
            let size = i32::try_from(size).unwrap_or(i32::MAX);
            let mut found = self.find_entries(entries, key, (&after.0, after.1), size).await?;
            // Shards answer with as many each; those behind the limit are read again.
            let all = found.len() < size as usize;
            found.truncate(size as usize);
            if let Some(last) = found.last() {
                after = (last.id.clone(), last.entry);
            }
            rows.extend(self.records(table, index, found).await?);
            if all {
                break;
            }
        }
        Ok(rows)
    }

    /// The records of entries that hold, in their order.
    async fn records(&self, table: usize, index: &CqlIndex, found: Vec<Entry>) -> Result<Vec<Row>, Failure> {
        let mut reads: Vec<Request<'_, _>> = Vec::with_capacity(found.len());
        for entry in found {
            reads.push(Box::pin(async move {
                let record = self.record_of(table, index, &entry).await?;
                Ok::<_, Failure>(record.map(|record| record.row(entry.id)))
            }));
        }
        let rows: Vec<Option<Row>> = all(reads).await.into_iter().collect::<Result<_, _>>()?;
        Ok(rows.into_iter().flatten().collect())
    }

    pub(super) async fn page(
        self: Arc<Self>,
        table: TableId,
        request: PageRequest,
    ) -> Result<RowPage, Error> {
        let number = usize::from(table.0);
        let table = self.table_of(table);
        let index = match request.order {
            Order::Primary => return Ok(persist!(self, self.page_of_all(table, &request))),
            Order::Modified => table.modified(),
            Order::Index(index) => table.index(index),
        };
        let Some(index) = index else {
            return Err(Error::Invalid(format!(
                "table {} does not keep this order",
                table.name
            )));
        };
        Ok(persist!(self, self.page_in_order(number, index, &request)))
    }

    pub(super) async fn page_of_all(
        &self,
        table: &CqlTable,
        request: &PageRequest,
    ) -> Result<RowPage, Failure> {
        let rows = &self.tables.rows[table.rows];
        let mut statement = rows.scan.clone();
        statement.set_page_size(i32::try_from(request.limit.min(MOST)).unwrap_or(1));
        let (found, next) = self
            .client
            .page::<Columns>(&statement, request.after.clone())
            .await?;
        let mut page = RowPage {
            rows: Vec::new(),
            next,
        };
        for columns in found {
            let loaded = self.loaded(columns)?;
            let key = loaded.key.clone();
            page.rows.extend(
                self.settled(table.rows, loaded)
                    .await?
                    .map(|image| image.row(key)),
            );
        }
        Ok(page)
    }

    async fn page_in_order(
        &self,
        table: usize,
        index: &CqlIndex,
        request: &PageRequest,
    ) -> Result<RowPage, Failure> {
        let Some(entries) = &index.entries else {
            return Ok(RowPage::default());
        };
        let mut after = request.after.as_deref().and_then(Entry::decode);
        if request.to.is_some() && request.from > request.to {
            return Ok(RowPage::default());
        }
        let mut page = RowPage::default();
        // Hints that do not hold make a page no shorter.
        while page.rows.len() < request.limit {
            let room = request.limit - page.rows.len();
            let found = self
                .page_of_entries(entries, request, after.as_ref(), room)
                .await?;
            let is_last = found.len() < room;
            after = found.last().cloned().or(after);
            page.rows.extend(self.records(table, index, found).await?);
            if is_last {
                return Ok(page);
            }
        }
        page.next = after.map(|entry| entry.encode());
        Ok(page)
    }

    /// About how many records there are: what the node that answers estimates for its own part, times the nodes.
    pub(super) async fn count(self: Arc<Self>, table: TableId) -> Result<u64, Error> {
        let table = self.table_of(table);
        let name = &self.tables.rows[table.rows].name;
        let (keyspace, name) = name.split_once('.').unwrap_or_default();
        let estimates = &self.tables.estimates;
        let counts = persist!(
            self,
            self.client.rows::<(Option<i64>,)>(estimates, (keyspace, name))
        );
        let own: i64 = counts.iter().filter_map(|(count,)| *count).sum();
        Ok(own.unsigned_abs() * self.client.nodes() as u64)
    }
}

impl Entry {
    /// A place in an order, which a caller keeps: the length of the key, the key, the version, the record.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + self.key.len() + self.id.len());
        out.extend_from_slice(&(self.key.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.entry.to_be_bytes());
        out.extend_from_slice(&self.id);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Entry> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let (entry, id) = rest.split_first_chunk::<8>()?;
        Some(Entry {
            key: key.to_vec(),
            id: id.to_vec(),
            entry: u64::from_be_bytes(*entry),
        })
    }
}
