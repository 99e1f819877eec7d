//! The engine for databases of the MariaDB / MySQL protocol: InnoDB on one server or a Galera cluster, NDB Cluster.
//!
//! The engine has a runtime of its own, so that functions' workers keep theirs. [`write`](self::write) gathers
//! batches into transactions, [`read`](self::read) merges lookups, [`nodes`](self::nodes) knows which node is in
//! use, [`migrate`](self::migrate) creates tables, [`reindex`](self::reindex) brings indexes up to date,
//! [`triggers`](self::triggers) settle conflicts between sites, [`heartbeat`](self::heartbeat) measures replication.
//!
//! **Several processes** may share the database. Conditions are judged under row locks, and by certification in a
//! Galera cluster; an operation that only requires something of a record without writing it is safe among
//! processes that use the same node (all list the same node first).
//!
//! **Several sites**, each with a cluster of its own, are joined by the database's asynchronous replication. A
//! record is written by the site that serves its session; after a failover another site writes it. When two sites
//! have written the same record, the later version wins at both: `record_version` (or `version`) grows with each
//! write, whatever the clocks do, and triggers compare it.

mod heartbeat;
mod migrate;
mod nodes;
mod read;
mod reindex;
mod sql;
mod transaction;
mod triggers;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use self::heartbeat::Heart;
use self::nodes::Nodes;
use self::read::{Question, Reader};
use self::sql::SqlTable;
use self::transaction::{Context, Verdict};
use self::write::{Dispatcher, Writer};
use crate::batch::Batch;
use crate::config::{Config, MariadbConfig};
use crate::delays::Delays;
use crate::engine::{Engine, Opening, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::reply::{Acknowledge, Receipt, Reply};
use crate::schema::{Index, TableId};
use crate::stats::Stats;
use crate::trouble::Trouble;
use crate::version::{Clock, Stamper};

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
    fn count(&self, verdict: &Verdict, operations: usize) {
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
pub(crate) struct Mariadb {
    nodes: Arc<Nodes>,
    tables: Arc<Vec<SqlTable>>,
    counters: Arc<Counters>,
    delays: Arc<Delays>,
    clock: Clock,
    queue_bytes: usize,
    queue_length: usize,
    /// `None` once closed.
    open: Mutex<Option<Open>>,
    jobs: mpsc::WeakSender<Job>,
    questions: mpsc::WeakSender<Question>,
}

/// What lives until the engine is closed.
struct Open {
    runtime: Runtime,
    jobs: mpsc::Sender<Job>,
    questions: mpsc::Sender<Question>,
    dispatcher: tokio::task::JoinHandle<()>,
}

/// How long closing waits for what is on its way.
const CLOSING: Duration = Duration::from_secs(15);

/// Connects, brings the tables up to date, starts the tasks. Blocks.
pub(crate) fn open(config: &Config, opening: Opening) -> Result<Mariadb, Error> {
    let database = &config.mariadb;
    let runtime = Builder::new_multi_thread()
        .worker_threads(database.threads.max(1))
        .thread_name("store-mariadb")
        .enable_all()
        .build()
        .map_err(|error| Error::Open(format!("cannot start the database's threads: {error}")))?;
    let nodes = Arc::new(Nodes::new(database)?);
    let tables: Arc<Vec<SqlTable>> = Arc::new(opening.tables.iter().copied().map(SqlTable::new).collect());
    runtime.block_on(prepare(&nodes, &tables, database, &opening.clock))?;

    let counters = Arc::new(Counters::default());
    let delays = Arc::new(Delays::new(
        database.heartbeat.duration(),
        config.replication_alarm.duration(),
    ));
    let _guard = runtime.enter();
    let (jobs, job_queue) = mpsc::channel(config.queue_length.max(1));
    let (done, done_queue) = mpsc::channel(database.writers.max(1));
    let mut idle = Vec::new();
    for _ in 0..database.writers.max(1) {
        let (groups, group_queue) = mpsc::channel(1);
        let writer = Writer {
            context: Context {
                nodes: nodes.clone(),
                tables: tables.clone(),
                site: opening.site.clone(),
            },
            config: database.clone(),
            counters: counters.clone(),
            clock: opening.clock.clone(),
        };
        runtime.spawn(writer.run(groups.clone(), group_queue, done.clone()));
        idle.push(groups);
    }
    let dispatcher = Dispatcher {
        config: database.clone(),
        stamper: Stamper::new(opening.clock.clone(), rand::random()),
        counters: counters.clone(),
        idle,
        done: done_queue,
    };
    let dispatcher = runtime.spawn(dispatcher.run(job_queue));
    let (questions, question_queue) = mpsc::channel(database.read_queue.max(1));
    let question_queue = Arc::new(tokio::sync::Mutex::new(question_queue));
    for _ in 0..database.readers.max(1) {
        let reader = Reader {
            nodes: nodes.clone(),
            tables: tables.clone(),
            counters: counters.clone(),
            retry_for: database.retry_for.duration(),
            unavailable_after: database.unavailable_after.duration(),
            sites: HashMap::new(),
        };
        runtime.spawn(reader.run(question_queue.clone()));
    }
    let heart = Heart {
        nodes: nodes.clone(),
        tables: tables.clone(),
        delays: delays.clone(),
        counters: counters.clone(),
        config: database.clone(),
        site: opening.site.clone(),
        clock: opening.clock.clone(),
    };
    runtime.spawn(heart.run());
    drop(_guard);
    tracing::info!(node = nodes.current(), "the store is open");
    Ok(Mariadb {
        nodes,
        tables,
        counters,
        delays,
        clock: opening.clock,
        queue_bytes: config.queue_bytes.as_usize(),
        queue_length: config.queue_length,
        jobs: jobs.downgrade(),
        questions: questions.downgrade(),
        open: Mutex::new(Some(Open {
            runtime,
            jobs,
            questions,
            dispatcher,
        })),
    })
}

/// Whether a node takes connections of this user to this database.
pub(crate) async fn reach(config: &MariadbConfig) -> Result<(), Error> {
    let nodes = Nodes::new(config)?;
    let mut connection = None;
    let reached = nodes.connected(&mut connection).await.map(drop);
    reached.map_err(|failure| Error::Unavailable {
        reason: failure.reason(),
        maybe_applied: false,
    })
}

async fn prepare(
    nodes: &Nodes,
    tables: &[SqlTable],
    config: &MariadbConfig,
    clock: &Clock,
) -> Result<(), Error> {
    let mut connection = None;
    let conn = nodes
        .connected(&mut connection)
        .await
        .map_err(|failure| match failure {
            nodes::Failure::Lost(reason) | nodes::Failure::Unfit(reason) => Error::Open(reason),
            other => Error::Open(format!("{other:?}")),
        })?;
    migrate::migrate(conn, tables, &config.storage_engine, clock).await
}

impl Mariadb {
    fn ask<T: Send + 'static>(&self, question: impl FnOnce(read::Answer<T>) -> Question) -> Reply<T> {
        let Some(questions) = self.questions.upgrade() else {
            return Reply::now(Err(Error::Closed));
        };
        let (answer, reply) = oneshot::channel();
        match questions.try_send(question(answer)) {
            Ok(()) => Reply::later(async move { reply.await.unwrap_or(Err(Error::Closed)) }),
            Err(TrySendError::Closed(_)) => Reply::now(Err(Error::Closed)),
            Err(TrySendError::Full(_)) => {
                self.counters.overflows.fetch_add(1, Relaxed);
                Reply::now(Err(Error::Overflow {
                    waiting: questions.max_capacity(),
                    bytes: 0,
                }))
            }
        }
    }
}

impl Engine for Mariadb {
    fn wants_columns(&self, table: TableId) -> bool {
        self.tables
            .get(usize::from(table.0))
            .is_some_and(|table| !table.extra.is_empty())
    }

    fn get(&self, table: TableId, key: &[u8]) -> Reply<Option<Row>> {
        let key = key.to_vec();
        self.ask(|answer| Question::Get(table, key, answer))
    }

    fn find(&self, table: TableId, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Row>> {
        let key = key.to_vec();
        self.ask(|answer| Question::Find(table, index, key, limit, answer))
    }

    fn page(&self, table: TableId, request: PageRequest) -> Reply<RowPage> {
        self.ask(|answer| Question::Page(table, request, answer))
    }

    fn count(&self, table: TableId) -> Reply<u64> {
        self.ask(|answer| Question::Count(table, answer))
    }

    fn count_of(&self, table: TableId, index: Index, key: &[u8]) -> Reply<u64> {
        let key = key.to_vec();
        self.ask(|answer| Question::CountOf(table, index, key, answer))
    }

    fn commit(&self, batch: Batch) -> Receipt {
        let Some(jobs) = self.jobs.upgrade() else {
            return Receipt::refused(Error::Closed);
        };
        let bytes = batch.bytes;
        let waiting = self.counters.waiting_bytes.fetch_add(bytes, Relaxed);
        let (done, receipt) = Receipt::pair();
        let full = waiting + bytes > self.queue_bytes;
        let error = match (!full).then(|| jobs.try_send(Job { batch, done })) {
            Some(Ok(())) => return receipt,
            Some(Err(TrySendError::Closed(_))) => Error::Closed,
            Some(Err(TrySendError::Full(_))) | None => {
                self.counters.overflows.fetch_add(1, Relaxed);
                Error::Overflow {
                    waiting: self.queue_length - jobs.capacity(),
                    bytes: waiting,
                }
            }
        };
        self.counters.waiting_bytes.fetch_sub(bytes, Relaxed);
        Receipt::refused(error)
    }

    fn trouble(&self) -> &Trouble {
        &self.counters.trouble
    }

    fn delays(&self) -> Option<&Delays> {
        Some(&self.delays)
    }

    fn stats(&self) -> Stats {
        let counters = &self.counters;
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
            failovers: self.nodes.failovers.load(Relaxed),
            replication_delay: self.delays.at(self.clock.micros()),
            ..Stats::default()
        }
    }

    fn close(&self) {
        let Some(Open {
            runtime,
            jobs,
            questions,
            dispatcher,
        }) = self.open.lock().take()
        else {
            return;
        };
        drop((jobs, questions));
        // The dispatcher ends when everything that waits is written or has failed.
        let ended = runtime.block_on(async { tokio::time::timeout(CLOSING, dispatcher).await });
        if ended.is_err() {
            tracing::error!("the database does not take the last writes; closing without");
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        let Some(open) = self.open.lock().take() else {
            return;
        };
        // Dropped without `close`, perhaps on a runtime's thread, where waiting is not allowed.
        open.runtime.shutdown_background();
    }
}
