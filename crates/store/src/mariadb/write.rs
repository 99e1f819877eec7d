//! From batches to transactions.
//!
//! One dispatcher gathers waiting batches into groups; a few writers, each with a connection, run groups as
//! transactions. A batch that touches a record which a group on its way touches waits, so that batches on one
//! record take effect in the order in which they were committed.
//!
//! A transaction that fails is tried again until its time is up: after a deadlock or a failed certification on the
//! same node, after the loss of a node on the next. Whether a `COMMIT` without an answer was carried out is asked
//! before anything else, see [`super::transaction`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ahash::AHashSet;
use tokio::sync::mpsc;

use super::nodes::{Connection, Failure};
use super::transaction::{Broken, Context, Member, Stamp, Verdict};
use super::{Counters, Job};
use crate::config::MariadbConfig;
use crate::error::{Error, hex};
use crate::record::Key;
use crate::reply::Acknowledge;
use crate::schema::TableId;
use crate::version::{Clock, Stamper};

type Row = (TableId, Key);

/// A group on its way to a writer.
pub(super) struct Group {
    members: Vec<Member>,
    callers: Vec<Acknowledge>,
    /// The records it touches, given back when it is done.
    rows: Vec<Row>,
}

/// Gathers batches into groups until all senders are gone and everything is written.
pub(super) struct Dispatcher {
    pub(super) config: MariadbConfig,
    pub(super) stamper: Stamper,
    pub(super) counters: Arc<Counters>,
    /// Writers that have nothing to do.
    pub(super) idle: Vec<mpsc::Sender<Group>>,
    /// From writers that are done.
    pub(super) done: mpsc::Receiver<(mpsc::Sender<Group>, Vec<Row>)>,
}

impl Dispatcher {
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting: VecDeque<Job> = VecDeque::new();
        let mut busy: AHashSet<Row> = AHashSet::new();
        let (mut open, mut running) = (true, 0usize);
        // This many wait here at most; the rest wait in the bounded queue.
        let most = self.config.group_batches * (self.idle.len() + 1);
        while open || running > 0 || !waiting.is_empty() {
            tokio::select! {
                job = jobs.recv(), if open && waiting.len() < most => match job {
                    Some(job) => {
                        waiting.push_back(job);
                        while waiting.len() < most && let Ok(job) = jobs.try_recv() {
                            waiting.push_back(job);
                        }
                    }
                    None => open = false,
                },
                Some((writer, rows)) = self.done.recv(), if running > 0 => {
                    running -= 1;
                    for row in &rows {
                        busy.remove(row);
                    }
                    self.idle.push(writer);
                },
                else => {}
            }
            while let Some(writer) = self.idle.pop() {
                let group = self.gather(&mut waiting, &mut busy);
                if group.members.is_empty() || writer.send(group).await.is_err() {
                    self.idle.push(writer);
                    break;
                }
                running += 1;
            }
        }
    }

    /// The batches of the next group: those at the front, but none that touches a record of a group on its way, or
    /// of a batch that was passed over.
    fn gather(&mut self, waiting: &mut VecDeque<Job>, busy: &mut AHashSet<Row>) -> Group {
        let mut group = Group {
            members: Vec::new(),
            callers: Vec::new(),
            rows: Vec::new(),
        };
        let (mut passed, mut barred, mut bytes) = (VecDeque::new(), AHashSet::new(), 0);
        let most = self.config.group_bytes.as_usize();
        while group.members.len() < self.config.group_batches {
            // A batch larger than a group is a group of its own.
            let fits = |job: &mut Job| bytes == 0 || bytes + job.batch.bytes <= most;
            let Some(job) = waiting.pop_front_if(fits) else {
                break;
            };
            let operations = job.batch.operations.iter();
            let rows: Vec<Row> = operations
                .map(|operation| (operation.table, operation.key.clone()))
                .collect();
            if rows.iter().any(|row| busy.contains(row) || barred.contains(row)) {
                barred.extend(rows);
                passed.push_back(job);
                continue;
            }
            self.counters.waiting_bytes.fetch_sub(job.batch.bytes, Relaxed);
            if let Some(twice) = named_twice(&rows) {
                let fault = format!("the batch names record {} twice", hex(&twice.1));
                let _ = job.done.send(Err(Error::Invalid(fault)));
                continue;
            }
            bytes += job.batch.bytes;
            busy.extend(rows.iter().cloned());
            group.rows.extend(rows);
            group.members.push(Member {
                batch: job.batch,
                version: self.stamper.next(),
            });
            group.callers.push(job.done);
        }
        passed.append(waiting);
        *waiting = passed;
        group
    }
}

fn named_twice(rows: &[Row]) -> Option<&Row> {
    rows.iter()
        .enumerate()
        .find(|(position, row)| rows[..*position].contains(row))
        .map(|(_, row)| row)
}

/// Runs groups on a connection of its own.
pub(super) struct Writer {
    pub(super) context: Context,
    pub(super) config: MariadbConfig,
    pub(super) counters: Arc<Counters>,
    pub(super) clock: Clock,
}

/// First pause before another try; doubled each time up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Writer {
    pub(super) async fn run(
        self,
        own: mpsc::Sender<Group>,
        mut groups: mpsc::Receiver<Group>,
        done: mpsc::Sender<(mpsc::Sender<Group>, Vec<Row>)>,
    ) {
        let mut connection = None;
        while let Some(group) = groups.recv().await {
            let begun = Instant::now();
            let verdicts = self.settle(&mut connection, &group.members).await;
            let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.counters.commit_micros.fetch_add(took, Relaxed);
            for ((caller, member), verdict) in group.callers.into_iter().zip(&group.members).zip(verdicts) {
                self.counters.count(&verdict, member.batch.operations.len());
                // The caller may have gone; what is written is kept all the same.
                let _ = caller.send(verdict);
            }
            if done.send((own.clone(), group.rows)).await.is_err() {
                return;
            }
        }
    }

    /// Verdicts on all members, whatever it takes.
    async fn settle(&self, connection: &mut Option<Connection>, members: &[Member]) -> Vec<Verdict> {
        match self.attempt_until_known(connection, members).await {
            Ok(verdicts) => verdicts,
            // One of the group cannot be written, and spoils it for the others: each on its own.
            Err(_) if members.len() > 1 => {
                let mut verdicts = Vec::with_capacity(members.len());
                for member in members {
                    let alone = self
                        .attempt_until_known(connection, std::slice::from_ref(member))
                        .await;
                    verdicts.push(
                        alone.map_or_else(Err, |mut verdicts| verdicts.pop().unwrap_or(Err(Error::Closed))),
                    );
                }
                verdicts
            }
            Err(error) => members.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Tries a group until its outcome is known or its time is up. An error stands for the whole group, and means
    /// that a part of it was refused.
    async fn attempt_until_known(
        &self,
        connection: &mut Option<Connection>,
        members: &[Member],
    ) -> Result<Vec<Verdict>, Error> {
        let deadline = Instant::now() + self.config.retry_for.duration();
        let stamp = self.stamp();
        let mut pause = PAUSE;
        // What the members are told if a `COMMIT` without an answer was carried out.
        let mut open: Option<Vec<Verdict>> = None;
        let mut is_judged_again = false;
        loop {
            let failure = match self.attempt(connection, members, &stamp, &mut open).await {
                Ok(verdicts) => return Ok(verdicts),
                Err(failure) => failure,
            };
            self.context.nodes.failed(connection, &failure, true);
            let reason = match failure {
                // A `COMMIT` is in doubt: whatever is wrong now says nothing about it.
                Failure::Refused(reason) | Failure::Failed(reason) if open.is_some() => reason,
                Failure::Refused(reason) => return Err(Error::Invalid(reason)),
                // All of them, and not each on its own again.
                Failure::Failed(reason) => {
                    let error = Error::Engine(reason);
                    return Ok(members.iter().map(|_| Err(error.clone())).collect());
                }
                Failure::Duplicate(message) if members.len() == 1 => {
                    // Without a unique index to blame, another writer was faster: judge again. A primary key is that of a record
                    // or of an index table, which the message does not say: a record exists when it is judged again.
                    let is_primary = message.ends_with("PRIMARY'") && !is_judged_again;
                    let conflict = self.context.duplicate(&members[0], &message);
                    match conflict.filter(|_| !is_primary) {
                        Some(conflict) => return Err(conflict),
                        None => is_judged_again = true,
                    }
                    message
                }
                Failure::Duplicate(message) => return Err(Error::Invalid(message)),
                Failure::Again(reason) | Failure::Lost(reason) | Failure::Unfit(reason) => reason,
            };
            self.counters.retries.fetch_add(1, Relaxed);
            // Whether a `COMMIT` in doubt was carried out is worth the whole time.
            let gives_up = open.is_none()
                && self
                    .counters
                    .trouble
                    .has_lasted(self.config.unavailable_after.duration());
            if gives_up || Instant::now() + pause >= deadline {
                // All of them, and not each on its own again.
                let error = Error::Unavailable {
                    reason,
                    maybe_applied: open.is_some(),
                };
                return Ok(members.iter().map(|_| Err(error.clone())).collect());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(
        &self,
        connection: &mut Option<Connection>,
        members: &[Member],
        stamp: &Stamp,
        open: &mut Option<Vec<Verdict>>,
    ) -> Result<Vec<Verdict>, Failure> {
        let (conn, turn) = self.context.nodes.connected_in_turn(connection).await?;
        if let Some(verdicts) = open
            && self.context.was_committed(conn, stamp).await?
        {
            return Ok(std::mem::take(verdicts));
        }
        // If it is still on its way, only one of the two can have the stamp; so `open` stays.
        match self.context.run(conn, members, stamp).await {
            // Functions read from another node by now, which may not have it yet. The next attempt asks that one.
            Ok(verdicts) if !self.context.nodes.is_in_use(turn) => {
                *open = Some(verdicts);
                Err(Failure::Again("another node is in use by now".to_owned()))
            }
            Ok(verdicts) => {
                self.counters.groups.fetch_add(1, Relaxed);
                Ok(verdicts)
            }
            // The stamp is there: the lost `COMMIT` has just arrived.
            Err(Broken {
                failure: Failure::Duplicate(message),
                ..
            }) if open.is_some()
                && message.contains("PRIMARY")
                && self.context.was_committed(conn, stamp).await? =>
            {
                Ok(open.take().unwrap_or_default())
            }
            Err(broken) => {
                if broken.verdicts.is_some() {
                    *open = broken.verdicts;
                }
                Err(broken.failure)
            }
        }
    }

    fn stamp(&self) -> Stamp {
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&self.clock.micros().to_be_bytes());
        stamp[8..].copy_from_slice(&rand::random::<[u8; 8]>());
        stamp
    }
}
