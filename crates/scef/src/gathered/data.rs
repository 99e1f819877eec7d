//! What has become of data for groups of devices: the SCS/AS is notified of it for several members at once (TS 29.122 §4.4.5.3.2).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Batch, Condition, Error, Stored};

use crate::clock::now;
use crate::record::{Configuration, Downlink, GroupDelivery, GroupOutcome, Id};
use crate::repository::{MEMBERS, Repository, delete_as_read};
use crate::shared::Scef;

/// Pause between two searches for what is known of all members.
const PAUSE: Duration = Duration::from_secs(1);
/// How long outcomes wait for those of further members.
const GATHERED: Duration = Duration::from_secs(30);

/// Notifies of outcomes as long as the control thread runs.
pub(crate) async fn run(scef: Arc<Scef>) {
    loop {
        if let Err(error) = round(&scef).await {
            tracing::warn!(%error, "outcomes of data for groups were not notified; it is tried again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks at the data of which outcomes are known; what is merely pending is not read.
async fn round(scef: &Scef) -> Result<(), Error> {
    let repository = &scef.repository;
    let mut deliveries = BTreeSet::new();
    repository
        .each(&repository.group_outcomes, |one| {
            deliveries.insert(one.delivery);
        })
        .await?;
    for id in deliveries {
        let Some(one) = repository.group_deliveries.get(&id.key()).await? else {
            remove(repository, id).await?;
            continue;
        };
        match repository.configurations.get(&one.configuration.key()).await? {
            Some(group) => notify(scef, &group, &one).await?,
            None => remove(repository, id).await?,
        }
    }
    Ok(())
}

/// Notifies of the outcomes that are known, if no further ones are awaited or they have waited for long enough.
async fn notify(scef: &Scef, group: &Configuration, one: &Stored<GroupDelivery>) -> Result<(), Error> {
    let repository = &scef.repository;
    let key = one.id.key();
    // Before the outcomes are read: data ends with its outcome.
    let pending = repository.downlinks.find(Downlink::GROUP, &key, 1).await?;
    let outcomes = repository
        .group_outcomes
        .find(GroupOutcome::DELIVERY, &key, MEMBERS)
        .await?;
    let first = outcomes.iter().map(|outcome| outcome.created).min();
    let wait = u64::try_from(GATHERED.as_micros()).unwrap_or(u64::MAX);
    let has_waited = first.is_some_and(|first| first.saturating_add(wait) <= now());
    if !pending.is_empty() && !has_waited {
        return Ok(());
    }
    let mut batch = Batch::default();
    for outcome in &outcomes {
        delete_as_read(&mut batch, &repository.group_outcomes, outcome);
    }
    if pending.is_empty() {
        delete_as_read(&mut batch, &repository.group_deliveries, one);
    }
    let results: Vec<&Value> = outcomes.iter().map(|outcome| &outcome.result).collect();
    // GmdNiddDownlinkDataDeliveryNotification (TS 29.122 §5.6.2.1.8).
    let uri = scef.delivery_uri(&group.scs, group.id, one.id);
    let body = json!({"niddDownlinkDataTransfer": uri, "gmdResults": results});
    let notice = scef.notice(group.id.to_string(), &group.document, body);
    if !outcomes.is_empty() {
        batch.insert(&repository.notices, &notice);
    }
    if repository.commit(batch).await? && !outcomes.is_empty() {
        scef.notify(&notice);
    }
    Ok(())
}

/// Removes data for a group whose configuration has ended, with what is pending and known of it.
async fn remove(repository: &Repository, delivery: Id) -> Result<(), Error> {
    cancel(repository, delivery).await?;
    let key = delivery.key();
    let outcomes = repository
        .group_outcomes
        .find(GroupOutcome::DELIVERY, &key, MEMBERS)
        .await?;
    let mut batch = Batch::default();
    for outcome in &outcomes {
        delete_as_read(&mut batch, &repository.group_outcomes, outcome);
    }
    batch.delete(&repository.group_deliveries, &key, Condition::Always);
    repository.commit(batch).await.map(drop)
}

/// Cancels what was not sent of data for a group. Data of which nothing is pending or known any more is over.
pub(crate) async fn cancel(repository: &Repository, delivery: Id) -> Result<(), Error> {
    let key = delivery.key();
    loop {
        let found = repository.downlinks.find(Downlink::GROUP, &key, MEMBERS).await?;
        let mut is_over = true;
        for one in found.iter().filter(|one| one.sent.is_none()) {
            // The Diameter node may have written meanwhile why it waits, or that it is sent.
            is_over &= repository.remove_as_read(&repository.downlinks, one).await?;
        }
        if is_over {
            break;
        }
    }
    // Before the outcomes: data ends with its outcome.
    let pending = repository.downlinks.find(Downlink::GROUP, &key, 1).await?;
    let known = repository
        .group_outcomes
        .find(GroupOutcome::DELIVERY, &key, 1)
        .await?;
    if pending.is_empty() && known.is_empty() {
        repository.remove(&repository.group_deliveries, &key).await?;
    }
    Ok(())
}
