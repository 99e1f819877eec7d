//! Removal of records that no member needs any more; one member does it for all.

use std::time::Duration;

use futures_util::future::join_all;
use store::{Batch, Condition, Record, Scan, Stored, Table, Version};

use super::handoff::Handoff;
use super::member::Cluster;
use super::micros;
use super::record::{BeatRecord, ChangeRecord, MemberRecord, Standing};

/// How often there may be something to remove.
const INTERVAL: Duration = Duration::from_secs(5);
/// Records that are removed at a time.
const PAGE: usize = 500;

/// Removes old records.
pub(super) struct Sweeper {
    keep: Duration,
    handoff: Handoff,
    changes: Table<ChangeRecord>,
    members: Table<MemberRecord>,
    beats: Table<BeatRecord>,
}

impl Sweeper {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            keep: cluster.settings.keep_changes.duration(),
            handoff: cluster.handoff.clone(),
            changes: cluster.changes.clone(),
            members: cluster.members.clone(),
            beats: cluster.beats.clone(),
        }
    }

    /// Sweeps until it is dropped.
    pub(super) async fn run(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = micros();
            if !self.handoff.view().owns(b"sweep", now) {
                continue;
            }
            let keep = u64::try_from(self.keep.as_micros()).unwrap_or(u64::MAX);
            let old = now.saturating_sub(keep);
            if let Err(error) = self.sweep(old).await {
                tracing::debug!(%error, "old records of the cluster could not be removed");
            }
        }
    }

    async fn sweep(&self, old: u64) -> Result<(), store::Error> {
        let members = self.members.scan(&Scan::all(PAGE)).await?.records;
        let ended =
            |one: &&Stored<MemberRecord>| one.standing != Standing::Active && one.version < Version::at(old);
        discard(&self.members, members.iter().filter(ended)).await?;
        sweep(&self.changes, old).await?;
        sweep(&self.beats, old).await
    }
}

/// Removes records that were not written since a moment.
async fn sweep<T: Record>(table: &Table<T>, before: u64) -> Result<(), store::Error> {
    loop {
        let scan = Scan::by_modified(PAGE).modified_before(before);
        let page = table.scan(&scan).await?;
        discard(table, &page.records).await?;
        if page.next.is_none() {
            return Ok(());
        }
    }
}

/// Deletes records unless they have changed since they were read.
async fn discard<'a, T: Record>(
    table: &Table<T>,
    records: impl IntoIterator<Item = &'a Stored<T>>,
) -> Result<(), store::Error> {
    let commits = records.into_iter().map(|stored| {
        let mut batch = Batch::default();
        batch.delete(table, &stored.record.key(), Condition::Version(stored.version));
        table.store().commit(batch)
    });
    for outcome in join_all(commits.collect::<Vec<_>>()).await {
        match outcome {
            Ok(_) | Err(store::Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
