//! The engine for Apache Cassandra and ScyllaDB, over CQL: for tens of millions of records, on several machines and sites.
//!
//! The engine has a runtime of its own, so that functions' workers keep theirs. [`write`](self::write) starts batches,
//! [`plan`](self::plan) says what one changes, [`transaction`](self::transaction) carries it out, [`core`](self::core)
//! settles what others have left, [`entries`](self::entries) and [`tables`](self::tables) have the indexes,
//! [`read`](self::read) answers, [`migrate`](self::migrate) creates tables, [`heartbeat`](self::heartbeat) notices a
//! cluster that does not serve.
//!
//! **Several processes** may share a keyspace: every write of a record is conditional (a lightweight transaction), so
//! conditions, unique keys and whole batches hold among all that judge them among the same replicas
//! (`serialConsistency`): all sites with `serial`, those of one datacentre with `localSerial`.
//!
//! **Several sites** are datacentres of one cluster. With `serial`, conditions hold among all. With `localSerial`
//! each site writes also while it is cut off; what it wrote then reaches the other one from the hints that its nodes keep,
//! and the later write of a record stays (`make test-sites`). Hints of index entries live for [`tables::ENTRY_GRACE`]
//! seconds: after a longer absence the cluster needs a repair. A read takes the record as it is at its own site.

mod client;
mod core;
mod entries;
mod heartbeat;
mod image;
mod migrate;
mod plan;
mod read;
mod tables;
#[cfg(feature = "cql-tls")]
mod tls;
mod together;
mod transaction;
mod write;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use ahash::AHashSet;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::client::Client;
use self::core::Core;
use self::heartbeat::Heart;
use self::write::Dispatcher;
use crate::batch::Batch;
use crate::config::{CassandraSerial, Config};
use crate::delays::Delays;
use crate::engine::{Engine, Opening, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::reply::{Acknowledge, Receipt, Reply};
use crate::schema::{Index, TableId};
use crate::stats::Stats;
use crate::trouble::Trouble;
use crate::version::{Stamper, Version};

/// A batch on its way to the dispatcher.
struct Job {
    batch: Batch,
    done: Acknowledge,
}

#[derive(Default)]
struct Counters {
    batches: AtomicU64,
    conflicts: AtomicU64,
    overflows: AtomicU64,
    failures: AtomicU64,
    operations: AtomicU64,
    groups: AtomicU64,
    commit_micros: AtomicU64,
    reads: AtomicU64,
    retries: AtomicU64,
    waiting_bytes: AtomicUsize,
    trouble: Trouble,
}

impl Counters {
    fn count(&self, verdict: &Result<Version, Error>, operations: usize) {
        match verdict {
            Ok(_) => {
                self.batches.fetch_add(1, Relaxed);
                self.operations.fetch_add(operations as u64, Relaxed);
            }
            Err(Error::Conflict { .. }) => {
                self.conflicts.fetch_add(1, Relaxed);
            }
            Err(error) => {
                self.failures.fetch_add(1, Relaxed);
                if let Error::Unavailable { reason, .. } = error {
                    self.trouble.begin(reason);
                    self.trouble.refused(1);
                }
            }
        }
    }
}

/// The engine.
pub(crate) struct Cql {
    core: Arc<Core>,
    delays: Arc<Delays>,
    queue_bytes: usize,
    queue_length: usize,
    /// Reads that wait or are in flight.
    asked: Arc<AtomicUsize>,
    /// Reads that may be in flight.
    turns: Arc<Semaphore>,
    handle: Handle,
    jobs: mpsc::WeakSender<Job>,
    /// `None` once closed.
    open: Mutex<Option<Open>>,
}

/// What lives until the engine is closed.
struct Open {
    runtime: Runtime,
    jobs: mpsc::Sender<Job>,
    dispatcher: tokio::task::JoinHandle<()>,
}

/// How long closing waits for what is on its way.
const CLOSING: Duration = Duration::from_secs(15);

/// Connects, brings the tables up to date, starts the tasks. Blocks.
pub(crate) fn open(config: &Config, opening: Opening) -> Result<Cql, Error> {
    let settings = config.cassandra.clone();
    let runtime = Builder::new_multi_thread()
        .worker_threads(settings.threads.max(1))
        .thread_name("store-cql")
        .enable_all()
        .build()
        .map_err(|error| Error::Open(format!("cannot start the store's threads: {error}")))?;
    let delays = Arc::new(Delays::new(
        settings.heartbeat.duration(),
        config.replication_alarm.duration(),
    ));
    let (core, heart) = runtime.block_on(async {
        let client = Client::connect(&settings).await?;
        let (tables, shards) = migrate::migrate(&client, &settings, &opening.tables).await?;
        let core = Arc::new(Core {
            client,
            tables,
            domain: match settings.serial_consistency {
                CassandraSerial::LocalSerial => settings.datacentre.clone().into_bytes(),
                CassandraSerial::Serial => Vec::new(),
            },
            config: settings.clone(),
            site: opening.site.clone(),
            clock: opening.clock.clone(),
            counters: Arc::new(Counters::default()),
            shards,
            sites: Mutex::new(HashMap::new()),
        });
        core.reindex().await?;
        let heart = Heart::new(core.clone(), delays.clone()).await?;
        Ok::<_, Error>((core, heart))
    })?;
    let (jobs, queue) = mpsc::channel(config.queue_length.max(1));
    let dispatcher = Dispatcher {
        core: core.clone(),
        stamper: Stamper::new(opening.clock, rand::random()),
        waiting: VecDeque::new(),
        busy: AHashSet::new(),
    };
    let dispatcher = runtime.spawn(dispatcher.run(queue));
    runtime.spawn(heart.run());
    tracing::info!(keyspace = settings.keyspace, "the store is open");
    Ok(Cql {
        core,
        delays,
        queue_bytes: config.queue_bytes.as_usize(),
        queue_length: config.queue_length,
        asked: Arc::new(AtomicUsize::new(0)),
        turns: Arc::new(Semaphore::new(settings.readers.max(1))),
        handle: runtime.handle().clone(),
        jobs: jobs.downgrade(),
        open: Mutex::new(Some(Open {
            runtime,
            jobs,
            dispatcher,
        })),
    })
}

impl Cql {
    fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Reply<T> {
        if self.jobs.strong_count() == 0 {
            return Reply::now(Err(Error::Closed));
        }
        let settings = &self.core.config;
        let waiting = self.asked.fetch_add(1, Relaxed);
        if waiting >= settings.readers + settings.read_queue {
            self.asked.fetch_sub(1, Relaxed);
            self.core.counters.overflows.fetch_add(1, Relaxed);
            return Reply::now(Err(Error::Overflow { waiting, bytes: 0 }));
        }
        let (answer, reply) = oneshot::channel();
        let (turns, asked) = (self.turns.clone(), self.asked.clone());
        self.handle.spawn(async move {
            let _turn = turns.acquire().await;
            let answered = question.await;
            asked.fetch_sub(1, Relaxed);
            // The caller may be gone.
            let _ = answer.send(answered);
        });
        Reply::later(async move { reply.await.unwrap_or(Err(Error::Closed)) })
    }
}

impl Engine for Cql {
    fn wants_columns(&self, _table: TableId) -> bool {
        false
    }

    fn get(&self, table: TableId, key: &[u8]) -> Reply<Option<Row>> {
        self.ask(self.core.clone().read(table, key.to_vec()))
    }

    fn find(&self, table: TableId, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Row>> {
        self.ask(self.core.clone().find(table, index, key.to_vec(), limit))
    }

    fn page(&self, table: TableId, request: PageRequest) -> Reply<RowPage> {
        self.ask(self.core.clone().page(table, request))
    }

    fn count(&self, table: TableId) -> Reply<u64> {
        self.ask(self.core.clone().count(table))
    }

    fn count_of(&self, table: TableId, index: Index, key: &[u8]) -> Reply<u64> {
        self.ask(self.core.clone().count_of(table, index, key.to_vec()))
    }

    fn commit(&self, batch: Batch) -> Receipt {
        let Some(jobs) = self.jobs.upgrade() else {
            return Receipt::refused(Error::Closed);
        };
        let bytes = batch.bytes;
        let counters = &self.core.counters;
        let waiting = counters.waiting_bytes.fetch_add(bytes, Relaxed);
        let (done, receipt) = Receipt::pair();
        let full = waiting + bytes > self.queue_bytes;
        let error = match (!full).then(|| jobs.try_send(Job { batch, done })) {
            Some(Ok(())) => return receipt,
            Some(Err(TrySendError::Closed(_))) => Error::Closed,
            Some(Err(TrySendError::Full(_))) | None => {
                counters.overflows.fetch_add(1, Relaxed);
                Error::Overflow {
                    waiting: self.queue_length - jobs.capacity(),
                    bytes: waiting,
                }
            }
        };
        counters.waiting_bytes.fetch_sub(bytes, Relaxed);
        Receipt::refused(error)
    }

    fn trouble(&self) -> &Trouble {
        &self.core.counters.trouble
    }

    fn delays(&self) -> Option<&Delays> {
        Some(&self.delays)
    }

    fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        Stats {
            batches: counters.batches.load(Relaxed),
            conflicts: counters.conflicts.load(Relaxed),
            overflows: counters.overflows.load(Relaxed),
            failures: counters.failures.load(Relaxed),
            troubled: counters.trouble.is_there(),
            operations: counters.operations.load(Relaxed),
            groups: counters.groups.load(Relaxed),
            commit_time: Duration::from_micros(counters.commit_micros.load(Relaxed)),
            waiting: self
                .jobs
                .upgrade()
                .map_or(0, |jobs| self.queue_length - jobs.capacity()),
            waiting_bytes: counters.waiting_bytes.load(Relaxed),
            reads: counters.reads.load(Relaxed),
            retries: counters.retries.load(Relaxed),
            replication_delay: self.delays.at(self.core.clock.micros()),
            ..Stats::default()
        }
    }

    fn close(&self) {
        let Some(Open {
            runtime,
            jobs,
            dispatcher,
        }) = self.open.lock().take()
        else {
            return;
        };
        drop(jobs);
        // The dispatcher ends when everything that waits is written or has failed.
        let ended = runtime.block_on(async { tokio::time::timeout(CLOSING, dispatcher).await });
        if ended.is_err() {
            tracing::error!("the cluster does not take the last writes; closing without");
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

impl Drop for Cql {
    fn drop(&mut self) {
        let Some(open) = self.open.lock().take() else {
            return;
        };
        // Dropped without `close`, perhaps on a runtime's thread, where waiting is not allowed.
        open.runtime.shutdown_background();
    }
}
