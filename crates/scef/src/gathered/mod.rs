//! Reports about groups: they wait for the guard time of their subscription, and are one notification then (TS 29.122 §4.4.2.3).
//! [`data`] has what has become of data for the members of groups.

pub(crate) mod data;

use std::sync::Arc;
use std::time::Duration;

use store::{Batch, Error};

use crate::clock::{after, now};
use crate::record::{Gathering, Notice, Subscription};
use crate::repository::{Repository, delete_as_read};
use crate::s6t;
use crate::shared::Scef;

/// Pause between two searches for what is due.
const PAUSE: Duration = Duration::from_secs(1);
/// Notifications that are taken from there at a time.
const MOST: usize = 256;
/// Reports and results after which a notification does not wait any longer.
const FULL: usize = 1_000;

/// Adds a notification to what is gathered of its group, within a batch; false where it is sent at once.
pub(crate) async fn add(
    repository: &Repository,
    batch: &mut Batch,
    found: &Subscription,
    notice: &Notice,
) -> Result<bool, Error> {
    let Some(guard) = s6t::guard_time(&found.document) else {
        return Ok(false);
    };
    if !Gathering::takes(notice) {
        return Ok(false);
    }
    let table = &repository.gatherings;
    let Some(before) = table.get(&found.reference.to_be_bytes()).await? else {
        let until = found.expires.unwrap_or(u64::MAX);
        let gathering = Gathering {
            reference: found.reference,
            notice: notice.clone(),
            due: after(guard).min(until),
        };
        batch.insert(table, &gathering);
        return Ok(true);
    };
    let mut more = before.record.clone();
    more.add(&notice.body);
    if more.count() >= FULL {
        more.due = now();
    }
    batch.update(table, &more, before.version);
    Ok(true)
}

/// Sends what has waited for long enough, as long as the control thread runs.
pub(crate) async fn run(scef: Arc<Scef>) {
    loop {
        if let Err(error) = round(&scef).await {
            tracing::warn!(%error, "reports about groups were not sent; it is tried again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn round(scef: &Scef) -> Result<(), Error> {
    let repository = &scef.repository;
    let due = repository
        .over(&repository.gatherings, Gathering::DUE, MOST)
        .await?;
    for one in due {
        let keep = scef.live.load().config.notifications.keep.duration();
        let notice = Notice {
            expires: after(keep),
            ..one.notice.clone()
        };
        let mut batch = Batch::default();
        delete_as_read(&mut batch, &repository.gatherings, &one);
        batch.insert(&repository.notices, &notice);
        // One that has grown meanwhile is sent in the next round.
        if repository.commit(batch).await? {
            scef.notify(&notice);
        }
    }
    Ok(())
}
