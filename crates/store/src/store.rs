//! The store and its tables.

mod expired;
mod scan;
mod table;

pub use scan::{Page, Scan};
pub use table::{Found, Table, Unreadable};

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use telemetry::trace::{self, Span};

use crate::batch::{Batch, Change, Condition};
#[cfg(not(feature = "cql"))]
use crate::config::WITHOUT_CQL;
#[cfg(not(feature = "mariadb"))]
use crate::config::WITHOUT_MARIADB;
use crate::config::{Config, EngineKind};
use crate::copies::{BackedUp, BackupError};
#[cfg(feature = "cql")]
use crate::cql;
use crate::delays::LateSite;
use crate::dictionary::{Dictionaries, Dictionary};
use crate::embedded;
use crate::engine::{Engine, Opening};
use crate::error::Error;
#[cfg(feature = "mariadb")]
use crate::mariadb;
use crate::record::{Key, Record, TableDef};
use crate::reply::{COMMIT, Receipt};
use crate::schema::{MAX_INDEXES, TableId, TableSchema};
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
    /// The kind of the engine, as spans name it.
    system: &'static str,
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
            system: match config.engine {
                EngineKind::Embedded => "signalbox",
                EngineKind::Mariadb => "mariadb",
                EngineKind::Cassandra => "cassandra",
            },
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
        let span = self.span(&batch);
        let receipt = match batch.may_meet_expired() {
            true => expired::commit(self.clone(), batch),
            false => self.submit(batch),
        };
        receipt.spanned(span)
    }

    /// The span of a commit, if it is for a traced request.
    #[inline]
    fn span(&self, batch: &Batch) -> Option<Span> {
        let mut span = trace::client(|| COMMIT, || None)?;
        span.attribute("db.system.name", self.0.system);
        span.attribute("db.operation.batch.size", batch.len().to_string());
        let first = batch.operations.first();
        let table = first.and_then(|first| self.0.tables.get(usize::from(first.table.0)));
        if let Some(table) = table {
            span.attribute("db.collection.name", table.name);
        }
        Some(span)
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

    /// Copies what is stored into a directory while it is used: what was acknowledged before the call is in it. The directory is
    /// absent or empty, and is there when all of the copy is on the disk; complete files are hard links where both are on one
    /// file system. Only the embedded engine does it, one copy at a time.
    ///
    /// # Errors
    /// Why there is no copy.
    pub async fn backup(&self, to: &Path) -> Result<BackedUp, BackupError> {
        let (engine, to) = (self.0.engine.clone(), to.to_owned());
        let copying = tokio::task::spawn_blocking(move || engine.backup(&to));
        let stopped = |error: tokio::task::JoinError| BackupError::Failed(error.to_string());
        copying.await.map_err(stopped)?
    }

    /// Ends background work. What was acknowledged is durable already; later calls fail.
    pub async fn close(self) {
        let engine = self.0.engine.clone();
        // A panic in there has been logged by the thread that had it.
        let _ = tokio::task::spawn_blocking(move || engine.close()).await;
    }
}

/// Whether the database of a store can be reached: a node of it takes connections. The embedded engine has none.
///
/// # Errors
/// [`Error::Unavailable`] when it cannot be reached now; others for a configuration that cannot be used.
pub async fn reach(config: &Config) -> Result<(), Error> {
    match config.engine {
        EngineKind::Embedded => Ok(()),
        #[cfg(feature = "mariadb")]
        EngineKind::Mariadb => mariadb::reach(&config.mariadb).await,
        #[cfg(feature = "cql")]
        EngineKind::Cassandra => {
            let nodes = config.cassandra.nodes.iter();
            let nodes = nodes.map(|node| (node.host.clone(), node.port)).collect();
            reach_any(nodes, config.cassandra.connect_timeout.duration()).await
        }
        // Opening says which part this program was built without.
        #[allow(unreachable_patterns, reason = "by features")]
        _ => Ok(()),
    }
}

/// Whether one of these addresses takes connections. A cluster that does is asked further by the driver.
#[cfg(feature = "cql")]
async fn reach_any(nodes: Vec<(String, u16)>, timeout: std::time::Duration) -> Result<(), Error> {
    let mut reasons = Vec::new();
    for (host, port) in nodes {
        let connect = tokio::net::TcpStream::connect((host.as_str(), port));
        match tokio::time::timeout(timeout, connect).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => reasons.push(format!("{host}:{port}: {error}")),
            Err(_) => reasons.push(format!("{host}:{port}: no connection within {timeout:?}")),
        }
    }
    Err(Error::Unavailable {
        reason: reasons.join("; "),
        maybe_applied: false,
    })
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
