//! The end of device triggers, as those who have asked for them learn of it: an SCS/AS by a notification, an SCS by a DNR.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use store::{Batch, Error, Stored};
use tokio::task::JoinSet;

use crate::clock::{after, now};
use crate::events::{Counters, Event};
use crate::record::{Id, Notice, Trigger, TriggerReport};
use crate::shared::Scef;
use crate::{identity, s6t, tsp};

/// Pause between two searches for reports that are due.
const PAUSE: Duration = Duration::from_secs(1);
/// DNRs that are sent at one time.
const MOST: usize = 256;

/// Adds the outcome of a trigger to a batch: for an SCS the report, for an SCS/AS nothing yet, but the notification that is to be stored.
pub(crate) fn add(
    scef: &Scef,
    batch: &mut Batch,
    trigger: &Trigger,
    (result, outcome): (&str, i32),
) -> Option<Notice> {
    let Some(scs) = &trigger.scs_of_tsp else {
        let body = json!({"transaction": scef.trigger_uri(trigger), "result": result});
        return Some(scef.notice(trigger.id.to_string(), &trigger.document, body));
    };
    let mut device = Map::new();
    identity::copy_user(&trigger.document, &mut device);
    let keep = scef.live.load().config.notifications.keep.duration();
    let report = TriggerReport {
        id: Id::new(now()),
        scs: scs.clone(),
        device: device.into(),
        outcome,
        due: now(),
        expires: after(keep),
    };
    batch.insert(&scef.repository.reports, &report);
    None
}

/// Sends reports to SCS as long as the control thread runs. One that is not answered is sent again.
pub(crate) async fn run(scef: Arc<Scef>, counters: Arc<Counters>) {
    loop {
        if let Err(error) = round(&scef, &counters).await {
            tracing::warn!(%error, "reports about device triggers were not sent; it is tried again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn round(scef: &Arc<Scef>, counters: &Arc<Counters>) -> Result<(), Error> {
    let repository = &scef.repository;
    let due = repository
        .over(&repository.reports, TriggerReport::DUE, MOST)
        .await?;
    let mut sent = JoinSet::new();
    for one in due {
        let (scef, counters) = (scef.clone(), counters.clone());
        sent.spawn_local(async move { send(&scef, &counters, one).await });
    }
    while let Some(done) = sent.join_next().await {
        // A task that has panicked has been reported.
        done.unwrap_or(Ok(()))?;
    }
    Ok(())
}

async fn send(scef: &Scef, counters: &Counters, one: Stored<TriggerReport>) -> Result<(), Error> {
    let config = scef.live.load_full().config.clone();
    let repository = &scef.repository;
    let is_taken = match tsp::report(&config.diameter, &one) {
        Some(message) => {
            counters.count(Event::TriggerMessage);
            let timeout = config.diameter.timeout.duration();
            let answer = scef.orders.request(message, timeout).await;
            // A router that does not reach the SCS, or an SCS that is busy, has not taken it.
            answer.is_ok_and(|answer| !matches!(s6t::refusal(&answer), Some((0, 3002 | 3004))))
        }
        None => true,
    };
    if is_taken {
        repository.remove_as_read(&repository.reports, &one).await?;
        return Ok(());
    }
    let again = TriggerReport {
        due: after(config.notifications.retry_pause.duration()),
        ..one.record.clone()
    };
    repository
        .update(&repository.reports, &one, again)
        .await
        .map(drop)
}
