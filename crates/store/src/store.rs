//! The store and its tables.

mod expired;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::batch::{Batch, Change, Condition, NewRow};
use crate::compress;
#[cfg(not(feature = "cql"))]
use crate::config::WITHOUT_CQL;
#[cfg(not(feature = "mariadb"))]
use crate::config::WITHOUT_MARIADB;
use crate::config::{Config, EngineKind};
#[cfg(feature = "cql")]
use crate::cql;
use crate::delays::LateSite;
use crate::dictionary::{Dictionaries, Dictionary};
use crate::embedded;
use crate::engine::{Engine, Opening, Order, PageRequest, Row, RowPage};
use crate::error::{Error, hex};
#[cfg(feature = "mariadb")]
use crate::mariadb;
use crate::record::{Key, Record, Stored, TableDef};
use crate::reply::{Receipt, Reply};
use crate::schema::{Index, MAX_INDEXES, TableId, TableSchema};
use crate::stats::Stats;
use crate::trouble::Damage;
use crate::version::{Clock, Version};

/// An open store. Clones share it; any thread may use it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    engine: Arc<dyn Engine>,
    tables: Vec<&'static TableSchema>,
    compress_above: Option<usize>,
    dictionaries: Dictionaries,
    clock: Clock,
    max_operations: usize,
    max_bytes: usize,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<&str> = self.0.tables.iter().map(|table| table.name).collect();
        f.debug_struct("Store")
            .field("tables", &tables)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store and its tables; creates what is absent and brings indexes up to date.
    ///
    /// # Errors
    /// [`Error::Open`] when the configuration, the data or the database do not allow it.
    pub async fn open(config: &Config, tables: &[TableDef]) -> Result<Store, Error> {
        Store::open_with_clock(config, tables, Clock::default()).await
    }

    /// As [`Store::open`], with a clock of the caller's: for tests that move time.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_with_clock(config: &Config, tables: &[TableDef], clock: Clock) -> Result<Store, Error> {
        check_schemas(tables)?;
        let mut tables = tables.to_vec();
        // Once it has dictionaries, a store needs them, also when it compresses no more.
        let with = config.engine == EngineKind::Embedded
            && (config.compress_above.bytes() > 0
                || embedded::has_table(&config.embedded.directory, Dictionary::TABLE.name)?);
        if with {
            tables.push(TableDef::of::<Dictionary>());
        }
        let opening = Opening {
            tables: tables.clone(),
            site: Arc::from(config.site.as_str()),
            clock: clock.clone(),
        };
        let own = config.clone();
        // Recovery reads files for seconds, a database is far: not on a runtime's thread.
        let opened = tokio::task::spawn_blocking(move || -> Result<Arc<dyn Engine>, Error> {
            Ok(match own.engine {
                EngineKind::Embedded => Arc::new(embedded::open(&own, opening)?),
                #[cfg(feature = "mariadb")]
                EngineKind::Mariadb => Arc::new(mariadb::open(&own, opening)?),
                #[cfg(not(feature = "mariadb"))]
                EngineKind::Mariadb => return Err(Error::Open(format!("store.engine {WITHOUT_MARIADB}"))),
                #[cfg(feature = "cql")]
                EngineKind::Cassandra => Arc::new(cql::open(&own, opening)?),
                #[cfg(not(feature = "cql"))]
                EngineKind::Cassandra => return Err(Error::Open(format!("store.engine {WITHOUT_CQL}"))),
            })
        });
        let engine = opened.await.map_err(|error| Error::Open(error.to_string()))??;
        let tables: Vec<&'static TableSchema> = tables.iter().map(|table| table.schema).collect();
        let (dictionaries, missing) = match with {
            true => {
                let stored = stored_dictionaries(&*engine, tables.len() - 1).await?;
                let missing = Dictionary::missing(&stored);
                (Dictionaries::new(&tables, stored), missing)
            }
            false => (Dictionaries::none(), Vec::new()),
        };
        let store = Store(Arc::new(Inner {
            engine,
            tables,
            dictionaries,
            clock,
            compress_above: (config.compress_above.bytes() > 0).then_some(config.compress_above.as_usize()),
            max_operations: config.max_batch_operations,
            max_bytes: config.max_batch_bytes.as_usize(),
        }));
        for copy in missing {
            store.restore_dictionary(&copy).await;
        }
        Ok(store)
    }

    /// Writes a copy of a dictionary that was lost. Values are read with the other one meanwhile; should this fail, the next
    /// start tries again.
    async fn restore_dictionary(&self, copy: &Dictionary) {
        let written = match self.write_dictionary(copy) {
            Ok(receipt) => receipt.await,
            Err(error) => Err(error),
        };
        match written {
            Ok(_) => tracing::info!(table = copy.table, "wrote a lost copy of a dictionary"),
            Err(error) => tracing::warn!(table = copy.table, %error, "cannot write a copy of a dictionary"),
        }
    }

    /// Begins to write a copy of a dictionary.
    fn write_dictionary(&self, copy: &Dictionary) -> Result<Receipt, Error> {
        let mut batch = Batch::default();
        batch.insert(&self.table::<Dictionary>()?, copy);
        Ok(self.commit(batch))
    }

    /// The table of a record type.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the store was opened without it.
    pub fn table<T: Record>(&self) -> Result<Table<T>, Error> {
        let position = self
            .0
            .tables
            .iter()
            .position(|table| table.name == T::TABLE.name)
            .ok_or_else(|| Error::Invalid(format!("the store was opened without table {}", T::TABLE.name)))?;
        let id = TableId(u16::try_from(position).map_err(|_| Error::Invalid("too many tables".to_owned()))?);
        Ok(Table {
            store: self.clone(),
            id,
            columns: self.0.engine.wants_columns(id),
            record: PhantomData,
        })
    }

    /// Commits a batch: the receipt resolves when it is durable, or says why it was not written.
    ///
    /// Batches of all callers that arrive while an earlier group is being made durable are committed together.
    pub fn commit(&self, mut batch: Batch) -> Receipt {
        batch.now = self.0.clock.micros();
        if let Some(fault) = &batch.fault {
            return Receipt::refused(Error::Invalid(fault.clone()));
        }
        if batch.operations.len() > self.0.max_operations || batch.bytes > self.0.max_bytes {
            return Receipt::refused(Error::Invalid(format!(
                "a batch has at most {} operations and {} bytes (maxBatchOperations, maxBatchBytes), this one has {} and {}",
                self.0.max_operations,
                self.0.max_bytes,
                batch.operations.len(),
                batch.bytes
            )));
        }
        if batch.is_empty() {
            return Receipt::refused(Error::Invalid("the batch is empty".to_owned()));
        }
        match batch.may_meet_expired() {
            true => expired::commit(self.clone(), batch),
            false => self.submit(batch),
        }
    }

    /// Gives the engine a batch that has been checked.
    pub(crate) fn submit(&self, batch: Batch) -> Receipt {
        self.0.engine.commit(batch)
    }

    /// What the store has done, and how full it is.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.engine.stats()
    }

    /// Why writes cannot be made durable now, so that all of them are refused; `None` while they can.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.engine.trouble().reason()
    }

    /// Calls `watcher` with [`Store::trouble`] as it is now, and whenever it changes. It is called on the thread that
    /// writes and must not wait for anything.
    pub fn watch(&self, watcher: impl Fn(Option<&str>) + Send + Sync + 'static) {
        self.0.engine.trouble().watch(Arc::new(watcher));
    }

    /// Calls `watcher` with the damage that was found in files since the store was opened, one for each file, and
    /// whenever more is found: files that a checkpoint stands for are checked behind the start. The watcher must not
    /// wait for anything.
    pub fn watch_damage(&self, watcher: impl Fn(&[Damage]) + Send + Sync + 'static) {
        self.0.engine.trouble().watch_damage(Arc::new(watcher));
    }

    /// Calls `watcher` with the other sites whose writes are late by `replicationAlarm`, and whenever one becomes late or
    /// ceases to be. Never where the engine has no sites. The watcher must not wait for anything.
    pub fn watch_replication(&self, watcher: impl Fn(&[LateSite]) + Send + Sync + 'static) {
        if let Some(delays) = self.0.engine.delays() {
            delays.watch(Arc::new(watcher));
        }
    }

    /// Ends background work. What was acknowledged is durable already; later calls fail.
    pub async fn close(self) {
        let engine = self.0.engine.clone();
        // A panic in there has been logged by the thread that had it.
        let _ = tokio::task::spawn_blocking(move || engine.close()).await;
    }
}

/// The dictionaries in the table at this position, which has only these.
async fn stored_dictionaries(engine: &dyn Engine, position: usize) -> Result<Vec<Dictionary>, Error> {
    let table = TableId(u16::try_from(position).map_err(|_| Error::Open("too many tables".to_owned()))?);
    let mut scan = Some(Scan::all(64));
    let mut all = Vec::new();
    while let Some(next) = scan {
        let limit = usize::MAX;
        let page = engine.page(table, next.request.clone()).await?;
        let page = Page::<Dictionary>::decode(page, next, 0, limit, &Dictionaries::none())?;
        all.extend(page.records.into_iter().map(|stored| stored.record));
        scan = page.next;
    }
    Ok(all)
}

impl Inner {
    /// Makes a dictionary of some values and writes it, on a thread of its own, and uses it once it is durable. Once for
    /// each table.
    fn make_dictionary(self: &Arc<Self>, table: TableId, samples: Vec<Vec<u8>>) {
        let store = Store(self.clone());
        let thread = std::thread::Builder::new().name("store-dictionary".to_owned());
        let started = thread.spawn(move || {
            let Some(dictionary) = store.0.dictionaries.make(table, &samples) else {
                return;
            };
            let mut copies = dictionary.copies();
            let written = copies.try_for_each(|copy| store.write_dictionary(&copy)?.wait().map(|_| ()));
            let (table_name, bytes) = (dictionary.table.as_str(), dictionary.bytes.len());
            match written {
                Ok(()) => {
                    store.0.dictionaries.add(table, &dictionary);
                    tracing::info!(
                        table = table_name,
                        bytes,
                        "values are compressed with a dictionary"
                    );
                }
                // The next start gathers again.
                Err(error) => tracing::warn!(table = table_name, %error, "cannot write a dictionary"),
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start a thread to make a dictionary");
        }
    }
}

impl Batch {
    /// Writes `record` if `condition` holds; what was there before is replaced.
    pub fn put<T: Record>(&mut self, table: &Table<T>, record: &T, condition: Condition) {
        let row = table.encode(record);
        self.put_row(table.id, T::TABLE, record.key(), row, condition);
        self.judge_lifetime::<T>();
    }

    /// As [`Batch::put`], of a record that `judge` finds fit by its bytes: those that [`Record::decode`] would get.
    ///
    /// # Errors
    /// What `judge` says; the batch is as it was.
    pub fn put_judged<T: Record, F>(
        &mut self,
        table: &Table<T>,
        record: &T,
        condition: Condition,
        judge: impl FnOnce(&[u8]) -> Result<(), F>,
    ) -> Result<(), F> {
        let row = table.encode_judged(record, judge)?;
        self.put_row(table.id, T::TABLE, record.key(), row, condition);
        self.judge_lifetime::<T>();
        Ok(())
    }

    /// Writes `record` if there is none of its key.
    pub fn insert<T: Record>(&mut self, table: &Table<T>, record: &T) {
        self.put(table, record, Condition::Absent);
    }

    /// Replaces the record of this version.
    pub fn update<T: Record>(&mut self, table: &Table<T>, record: &T, version: Version) {
        self.put(table, record, Condition::Version(version));
    }

    /// Deletes the record of this key if `condition` holds.
    pub fn delete<T: Record>(&mut self, table: &Table<T>, key: &[u8], condition: Condition) {
        self.push(table.id, Key::from_slice(key), condition, Change::Delete);
        self.judge_lifetime::<T>();
    }

    /// Deletes the record of this version, whether it has expired or not.
    pub(crate) fn remove<T: Record>(&mut self, table: &Table<T>, key: &[u8], version: Version) {
        let condition = Condition::Version(version);
        self.push(table.id, Key::from_slice(key), condition, Change::Delete);
    }

    /// Writes nothing, but the batch is carried out only if `condition` holds for this key.
    pub fn require<T: Record>(&mut self, table: &Table<T>, key: &[u8], condition: Condition) {
        self.push(table.id, Key::from_slice(key), condition, Change::Nothing);
        self.judge_lifetime::<T>();
    }
}

fn check_schemas(tables: &[TableDef]) -> Result<(), Error> {
    let plain = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    for (position, table) in tables.iter().enumerate() {
        let schema = table.schema;
        if !plain(schema.name) || !schema.indexes.iter().all(|index| plain(index.name)) {
            return Err(Error::Open(format!(
                "table {}: names of tables and indexes are [a-z0-9_]",
                schema.name
            )));
        }
        if schema.indexes.len() > MAX_INDEXES {
            return Err(Error::Open(format!(
                "table {}: at most {MAX_INDEXES} indexes",
                schema.name
            )));
        }
        if let Some(expiry) = table.expiry
            && (schema.sql.is_some()
                || schema
                    .indexes
                    .get(usize::from(expiry.0))
                    .is_none_or(|index| index.multi))
        {
            return Err(Error::Open(format!(
                "table {}: its expiry needs an index that is not multi, in a table without a SQL mapping",
                schema.name
            )));
        }
        if tables[..position]
            .iter()
            .any(|other| other.schema.name == schema.name)
        {
            return Err(Error::Open(format!("table {} is listed twice", schema.name)));
        }
    }
    Ok(())
}

/// A table of one record type. Cheap to clone.
pub struct Table<T> {
    store: Store,
    id: TableId,
    columns: bool,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        Table {
            store: self.store.clone(),
            id: self.id,
            columns: self.columns,
            record: PhantomData,
        }
    }
}

impl<T: Record> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", T::TABLE.name)
    }
}

impl<T: Record> Table<T> {
    /// About how many records there are; a database estimates it.
    pub fn count(&self) -> Reply<u64> {
        self.engine().count(self.id)
    }

    /// The record of a primary key.
    pub fn get(&self, key: &[u8]) -> Reply<Option<Stored<T>>> {
        let (limit, now) = (self.store.0.max_bytes, self.now());
        self.engine()
            .get(self.id, key)
            .decode(&self.store.0.dictionaries, move |row, dictionaries| {
                let decoded = row.map(|row| decode(row, now, limit, dictionaries)).transpose()?;
                Ok(decoded.flatten())
            })
    }

    /// Records under a key of an index, newest (by creation) first, at most `limit`. When more share the key,
    /// which of them are returned is not said.
    pub fn find(&self, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Stored<T>>> {
        let (bytes, now) = (self.store.0.max_bytes, self.now());
        self.engine().find(self.id, index, key, limit).decode(
            &self.store.0.dictionaries,
            move |rows, dictionaries| {
                let rows = rows.into_iter();
                rows.filter_map(|row| decode(row, now, bytes, dictionaries).transpose())
                    .collect()
            },
        )
    }

    /// As [`Table::find`], beside records that cannot be read, which would make that fail.
    pub fn find_readable(&self, index: Index, key: &[u8], limit: usize) -> Reply<Found<T>> {
        let (bytes, now) = (self.store.0.max_bytes, self.now());
        self.engine().find(self.id, index, key, limit).decode(
            &self.store.0.dictionaries,
            move |rows, dictionaries| {
                let mut found = Found {
                    records: Vec::new(),
                    unreadable: Vec::new(),
                };
                for row in rows {
                    let (row_key, version) = (Key::from_slice(&row.key), row.version);
                    match decode(row, now, bytes, dictionaries) {
                        Ok(record) => found.records.extend(record),
                        Err(error) => found.unreadable.push(Unreadable::new(row_key, version, error)?),
                    }
                }
                Ok(found)
            },
        )
    }

    /// One page of records: all in no order that is promised, or by an index, or by modification.
    ///
    /// A scan that takes several pages is not a snapshot: it sees each record that existed during all of the
    /// scan, and perhaps those that came or changed meanwhile.
    pub fn scan(&self, scan: &Scan) -> Reply<Page<T>> {
        let known = match scan.request.order {
            Order::Primary => true,
            Order::Modified => T::TABLE.by_modified,
            Order::Index(index) => T::TABLE
                .indexes
                .get(usize::from(index.0))
                .is_some_and(|index| index.ordered),
        };
        if !known {
            let fault = format!(
                "table {} does not keep this order ({:?})",
                T::TABLE.name,
                scan.request.order
            );
            return Reply::now(Err(Error::Invalid(fault)));
        }
        let (limit, now, order) = (self.store.0.max_bytes, self.now(), scan.clone());
        self.engine()
            .page(self.id, scan.request.clone())
            .decode(&self.store.0.dictionaries, move |page, dictionaries| {
                Page::decode(page, order, now, limit, dictionaries)
            })
    }

    /// The store this table belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn encode(&self, record: &T) -> NewRow {
        match self.encode_judged(record, |_| Ok::<_, std::convert::Infallible>(())) {
            Ok(row) => row,
            Err(never) => match never {},
        }
    }

    fn encode_judged<F>(&self, record: &T, judge: impl FnOnce(&[u8]) -> Result<(), F>) -> Result<NewRow, F> {
        let mut row = NewRow::default();
        record.all_keys(&mut row.keys);
        record.encode(&mut row.value);
        judge(&row.value)?;
        row.value = self.pack(std::mem::take(&mut row.value));
        if self.columns {
            record.columns(&mut row.columns);
        }
        Ok(row)
    }

    /// A value as the engine gets it.
    fn pack(&self, value: Vec<u8>) -> Vec<u8> {
        let inner = &self.store.0;
        let Some(above) = inner.compress_above.filter(|above| value.len() > *above) else {
            return compress::pack(value, None, None);
        };
        let dictionary = inner.dictionaries.of(self.id);
        if dictionary.is_none()
            && let Some(samples) = inner.dictionaries.gather(self.id, &value)
        {
            inner.make_dictionary(self.id, samples);
        }
        let dictionary = dictionary.as_ref().map(|(id, bytes)| (*id, &**bytes));
        compress::pack(value, Some(above), dictionary)
    }

    /// The time that records expire by; 0 where those of this table do not.
    pub(crate) fn now(&self) -> u64 {
        match T::EXPIRY {
            Some(_) => self.store.0.clock.micros(),
            None => 0,
        }
    }

    /// Keys and versions of some records that have expired now.
    pub(crate) fn expired(&self, most: usize) -> Reply<Vec<(Key, Version)>> {
        let Some(index) = T::EXPIRY else {
            return Reply::now(Ok(Vec::new()));
        };
        let end = self.now().saturating_add(1).to_be_bytes();
        let scan = Scan::by_index(index, most).to_key(&end);
        let page = self.engine().page(self.id, scan.request);
        page.decode(&self.store.0.dictionaries, |page, _| {
            let rows = page.rows.into_iter();
            Ok(rows.map(|row| (Key::from_slice(&row.key), row.version)).collect())
        })
    }

    fn engine(&self) -> &dyn Engine {
        &*self.store.0.engine
    }
}

/// A record that cannot be read: written by another program, or a defect.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its primary key.
    pub key: Key,
    /// Its version.
    pub version: Version,
    /// Why ([`Error::Corrupt`]).
    pub error: Error,
}

impl Unreadable {
    /// # Errors
    /// An error that is not about the record.
    fn new(key: Key, version: Version, error: Error) -> Result<Self, Error> {
        match error {
            error @ Error::Corrupt { .. } => Ok(Self { key, version, error }),
            error => Err(error),
        }
    }
}

/// Records under a key of an index.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// Those that can be read.
    pub records: Vec<Stored<T>>,
    /// The others.
    pub unreadable: Vec<Unreadable>,
}

/// The record of a row; `None` where it has expired `now`.
fn decode<T: Record>(
    row: Row,
    now: u64,
    limit: usize,
    dictionaries: &Dictionaries,
) -> Result<Option<Stored<T>>, Error> {
    let record = record_of::<T>(&row.key, row.value, limit, dictionaries)?;
    if has_expired(&record, now) {
        return Ok(None);
    }
    Ok(Some(Stored {
        record,
        version: row.version,
        created: row.created,
        site: row.site,
    }))
}

fn has_expired<T: Record>(record: &T, now: u64) -> bool {
    T::EXPIRY.is_some() && record.expires().is_some_and(|at| at <= now)
}

/// The record of a key and a stored value.
fn record_of<T: Record>(
    key: &[u8],
    value: Vec<u8>,
    limit: usize,
    dictionaries: &Dictionaries,
) -> Result<T, Error> {
    let corrupt = |reason: String| Error::Corrupt {
        table: T::TABLE.name,
        key: hex(key),
        reason,
    };
    let value = compress::unpack(value, limit, |id| dictionaries.get(id)).map_err(corrupt)?;
    T::decode(key, &value).map_err(|error| corrupt(error.0))
}

/// What to scan: an order, a range of it, and how much at a time.
#[derive(Clone, Debug)]
pub struct Scan {
    request: PageRequest,
    /// Whether it goes on beside records that cannot be read.
    beside: bool,
}

impl Scan {
    fn over(order: Order, limit: usize) -> Scan {
        Scan {
            request: PageRequest {
                order,
                from: None,
                to: None,
                after: None,
                limit: limit.max(1),
            },
            beside: false,
        }
    }

    /// Goes on beside records that cannot be read ([`Page::unreadable`]), which would make the scan fail.
    #[must_use]
    pub fn beside_unreadable(mut self) -> Scan {
        self.beside = true;
        self
    }

    /// All records, about `limit` a page.
    #[must_use]
    pub fn all(limit: usize) -> Scan {
        Scan::over(Order::Primary, limit)
    }

    /// Records that have a key in an index, by that key, `limit` a page. The index must be declared `ordered`.
    #[must_use]
    pub fn by_index(index: Index, limit: usize) -> Scan {
        Scan::over(Order::Index(index), limit)
    }

    /// Records by time of last modification, oldest first, `limit` a page. The table must declare `by_modified`.
    #[must_use]
    pub fn by_modified(limit: usize) -> Scan {
        Scan::over(Order::Modified, limit)
    }

    /// Begins at this key of the order (inclusive); for [`Scan::by_index`], and as a version for [`Scan::by_modified`].
    #[must_use]
    pub fn from_key(mut self, key: &[u8]) -> Scan {
        self.request.from = Some(key.to_vec());
        self
    }

    /// Ends before this key of the order; for [`Scan::by_index`].
    #[must_use]
    pub fn to_key(mut self, key: &[u8]) -> Scan {
        self.request.to = Some(key.to_vec());
        self
    }

    /// Ends before records modified at this time (microseconds since 1970); for [`Scan::by_modified`].
    #[must_use]
    pub fn modified_before(self, micros: u64) -> Scan {
        self.to_key(&Version::at(micros).0.to_be_bytes())
    }
}

/// A page of a scan.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The records.
    pub records: Vec<Stored<T>>,
    /// Records that cannot be read, of a scan [beside them](Scan::beside_unreadable).
    pub unreadable: Vec<Unreadable>,
    /// The scan that yields the next page; `None` when this was the last.
    pub next: Option<Scan>,
}

impl<T: Record> Page<T> {
    fn decode(
        page: RowPage,
        mut scan: Scan,
        now: u64,
        limit: usize,
        dictionaries: &Dictionaries,
    ) -> Result<Page<T>, Error> {
        let (mut records, mut unreadable) = (Vec::with_capacity(page.rows.len()), Vec::new());
        for row in page.rows {
            let place = scan.beside.then(|| (Key::from_slice(&row.key), row.version));
            match (decode(row, now, limit, dictionaries), place) {
                (Ok(record), _) => records.extend(record),
                (Err(error), Some((key, version))) => unreadable.push(Unreadable::new(key, version, error)?),
                (Err(error), None) => return Err(error),
            }
        }
        let next = page.next.map(|place| {
            scan.request.after = Some(place);
            scan
        });
        Ok(Page {
            records,
            unreadable,
            next,
        })
    }
}
