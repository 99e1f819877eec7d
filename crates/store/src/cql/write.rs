//! Batches in flight: as many as the settings allow, and never two of this process that name the same record, so that
//! batches on one record take effect in the order in which they were committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ahash::AHashSet;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Job;
use super::core::Core;
use super::plan::Fault;
use crate::batch::Batch;
use crate::error::{Error, hex};
use crate::record::Key;
use crate::schema::TableId;
use crate::version::{Stamper, Version};

type Row = (TableId, Key);

/// Starts batches until all senders are gone and everything is written.
pub(super) struct Dispatcher {
    pub(super) core: Arc<Core>,
    pub(super) stamper: Stamper,
    pub(super) waiting: VecDeque<Job>,
    pub(super) busy: AHashSet<Row>,
}

impl Dispatcher {
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let writers = self.core.config.writers;
        let mut running: JoinSet<Vec<Row>> = JoinSet::new();
        let mut open = true;
        while open || !running.is_empty() || !self.waiting.is_empty() {
            tokio::select! {
                // As many wait here as run; the rest wait in the bounded queue.
                job = jobs.recv(), if open && self.waiting.len() < writers => match job {
                    Some(job) => self.waiting.push_back(job),
                    None => open = false,
                },
                Some(done) = running.join_next(), if !running.is_empty() => {
                    // A task that has panicked keeps its records; its caller gets "stopped before it answered".
                    for row in done.unwrap_or_default() {
                        self.busy.remove(&row);
                    }
                }
            }
            self.start(&mut running, writers);
        }
    }

    /// Starts those that name no record of a batch in flight, or of one that was passed over.
    fn start(&mut self, running: &mut JoinSet<Vec<Row>>, writers: usize) {
        let (mut passed, mut barred) = (VecDeque::new(), AHashSet::new());
        while running.len() < writers
            && let Some(job) = self.waiting.pop_front()
        {
            let operations = job.batch.operations.iter();
            let rows: Vec<Row> = operations
                .map(|operation| (operation.table, operation.key.clone()))
                .collect();
            if rows
                .iter()
                .any(|row| self.busy.contains(row) || barred.contains(row))
            {
                barred.extend(rows);
                passed.push_back(job);
                continue;
            }
            let counters = &self.core.counters;
            counters.waiting_bytes.fetch_sub(job.batch.bytes, Relaxed);
            if let Some(twice) = named_twice(&rows) {
                let fault = format!("the batch names record {} twice", hex(&twice.1));
                let _ = job.done.send(Err(Error::Invalid(fault)));
                continue;
            }
            self.busy.extend(rows.iter().cloned());
            let (core, version) = (self.core.clone(), self.stamper.next());
            running.spawn(async move {
                core.write(job, version).await;
                rows
            });
        }
        passed.append(&mut self.waiting);
        self.waiting = passed;
    }
}

fn named_twice(rows: &[Row]) -> Option<&Row> {
    rows.iter()
        .enumerate()
        .find(|(position, row)| rows[..*position].contains(row))
        .map(|(_, row)| row)
}

/// First pause before another try; doubled each time up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Core {
    /// Writes a batch, acknowledges it, and tidies up after it.
    async fn write(&self, job: Job, version: Version) {
        let begun = Instant::now();
        let (verdict, rest) = match self.settle(&job.batch, version).await {
            Ok((version, rest)) => (Ok(version), Some(rest)),
            Err(error) => (Err(error), None),
        };
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counters.commit_micros.fetch_add(took, Relaxed);
        self.counters.groups.fetch_add(1, Relaxed);
        self.counters.count(&verdict, job.batch.operations.len());
        // The caller may be gone; what is written is kept all the same.
        let _ = job.done.send(verdict);
        if let Some((plan, transaction)) = rest {
            self.tidy(&plan, transaction).await;
        }
    }

    /// The outcome of a batch, whatever it takes until its time is up.
    async fn settle(
        &self,
        batch: &Batch,
        version: Version,
    ) -> Result<(Version, (super::plan::Plan, Option<Vec<u8>>)), Error> {
        let deadline = Instant::now() + self.config.retry_for.duration();
        let mut pause = PAUSE;
        loop {
            let attempt = async {
                let plan = self.plan(batch, version).await?;
                let transaction = self.carry_out(&plan, deadline).await?;
                Ok((plan, transaction))
            };
            let unavailable = |reason, maybe_applied| Error::Unavailable {
                reason,
                maybe_applied,
            };
            match attempt.await {
                Ok((plan, transaction)) => return Ok((plan.version, (plan, transaction))),
                Err(Fault::Conflict(error)) => return Err(error),
                Err(Fault::Doubt(reason)) => return Err(unavailable(reason, true)),
                Err(Fault::Final(super::client::Failure::Refused(reason))) => {
                    return Err(Error::Invalid(reason));
                }
                Err(Fault::Final(failure)) => return Err(Error::Engine(failure.reason())),
                Err(Fault::Again(reason))
                    if self.gives_up(deadline.checked_sub(pause).unwrap_or(deadline)) =>
                {
                    return Err(unavailable(reason, false));
                }
                Err(Fault::Again(_)) => {}
            }
            self.counters.retries.fetch_add(1, Relaxed);
            tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>())).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
