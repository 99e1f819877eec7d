//! The end of NIDD configurations and of device triggers: their SCS/AS has ended them, or their time is over.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use store::{Batch, Condition, Error, Record as _, Stored};

use crate::events::{Counters, Event};
use crate::record::{Configuration, Connection, GroupOutcome, Notice, Status, Trigger};
use crate::repository::delete_as_read;
use crate::shared::Scef;
use crate::{identity, outcomes, t6a, tsp};

/// Pause between two searches for what is over.
const PAUSE: Duration = Duration::from_secs(1);
/// Records that are ended at a time.
const MOST: usize = 256;
/// Data for a device that its configuration takes along when it ends.
const BUFFERED: usize = 1_000;

/// Ends what is over, one after the other, as long as the control thread runs.
pub(crate) async fn run(scef: Arc<Scef>, counters: Arc<Counters>) {
    loop {
        if let Err(error) = round(&scef, &counters).await {
            tracing::warn!(%error, "NIDD configurations whose time is over were not ended; it is tried again");
        }
        if let Err(error) = unreported(&scef, &counters).await {
            tracing::warn!(%error, "device triggers without a report were not ended; it is tried again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn round(scef: &Scef, counters: &Counters) -> Result<(), Error> {
    loop {
        let repository = &scef.repository;
        let over = repository
            .over(&repository.configurations, Configuration::ENDS, MOST)
            .await?;
        for one in &over {
            let notice = notice(scef, one, "TERMINATED");
            end(scef, one, Some(&notice), |event| counters.count(event)).await?;
        }
        if over.len() < MOST {
            return Ok(());
        }
    }
}

/// Ends device triggers that no SMS-SC has reported about in time: their SCS/AS is notified of `UNCONFIRMED`.
async fn unreported(scef: &Scef, counters: &Counters) -> Result<(), Error> {
    let repository = &scef.repository;
    loop {
        let over = repository.over(&repository.triggers, Trigger::ENDS, MOST).await?;
        for one in &over {
            let mut batch = Batch::default();
            delete_as_read(&mut batch, &repository.triggers, one);
            let what = ("UNCONFIRMED", tsp::UNCONFIRMED);
            let notice = outcomes::add(scef, &mut batch, one, what);
            if let Some(notice) = &notice {
                batch.insert(&repository.notices, notice);
            }
            if repository.commit(batch).await? {
                scef.triggers.sub(&one.scs);
                counters.count(Event::TriggerUnreported);
                notice.iter().for_each(|notice| scef.notify(notice));
            }
        }
        if over.len() < MOST {
            return Ok(());
        }
    }
}

/// `NiddConfigurationStatusNotification` (TS 29.122 §5.6.2.1.6): the SCEF has ended it, with this status.
pub(crate) fn notice(scef: &Scef, configuration: &Configuration, status: &str) -> Notice {
    let uri = scef.configuration_uri(configuration);
    let mut body = Map::new();
    body.insert("niddConfiguration".to_owned(), json!(uri));
    identity::copy_user(&configuration.document, &mut body);
    body.insert("status".to_owned(), json!(status));
    scef.notice(configuration.id.to_string(), &configuration.document, body.into())
}

/// Ends a configuration as it was read, those of the members of a group before it; false if it has changed or ended since.
pub(crate) async fn end(
    scef: &Scef,
    found: &Stored<Configuration>,
    notice: Option<&Notice>,
    count: impl Fn(Event),
) -> Result<bool, Error> {
    while found.is_of_group() {
        let members = scef.repository.members_of(found.id).await?;
        for one in &members {
            end_one(scef, one, None, &count).await?;
        }
        if members.is_empty() {
            break;
        }
    }
    end_one(scef, found, notice, &count).await
}

/// Ends a configuration as it was read, with what is buffered for its device and with the connections of the device, and queues the
/// notification of it; false if it has changed or ended since.
async fn end_one(
    scef: &Scef,
    found: &Stored<Configuration>,
    notice: Option<&Notice>,
    count: &impl Fn(Event),
) -> Result<bool, Error> {
    let repository = &scef.repository;
    let mut connections = repository.connections_of(found.id).await?;
    let downlinks = repository.downlinks_of(found.id, BUFFERED).await?;
    let mut batch = Batch::default();
    delete_as_read(&mut batch, &repository.configurations, found);
    for one in &connections {
        batch.delete(&repository.connections, &one.record.key(), Condition::Always);
    }
    for one in &downlinks {
        batch.delete(&repository.downlinks, &one.id.key(), Condition::Always);
        if let Some(delivery) = one.group {
            let outcome = GroupOutcome::new(delivery, &one.document, Status::Failure);
            batch.insert(&repository.group_outcomes, &outcome);
        }
    }
    if let Some(notice) = notice {
        batch.insert(&repository.notices, notice);
    }
    if !repository.commit(batch).await? {
        return Ok(false);
    }
    if found.group.is_none() {
        scef.configurations.sub(&found.scs);
        count(Event::Unconfigured);
    }
    if let Some(notice) = notice {
        scef.notify(notice);
    }
    // Those that were established between the two.
    loop {
        let later = repository.connections_of(found.id).await?;
        if later.is_empty() {
            break;
        }
        for one in later {
            let key = one.record.key();
            repository.remove(&repository.connections, &key).await?;
            connections.push(one);
        }
    }
    for one in &connections {
        count(Event::Disconnected);
        release(scef, one, count);
    }
    Ok(true)
}

/// Releases a connection at its MME or SGSN, whose answer changes nothing.
fn release(scef: &Scef, connection: &Connection, count: impl Fn(Event)) {
    let config = scef.live.load_full().config.clone();
    let settings = &config.diameter;
    if let Some(message) = t6a::release(settings, connection) {
        count(Event::NiddMessage);
        scef.orders.inform(message, settings.timeout.duration());
    }
}
