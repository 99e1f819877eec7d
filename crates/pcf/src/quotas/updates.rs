//! What is left of a subscriber's quotas, for the UDR that has their limits (TS 29.519 §5.2.4, `SmPolicyDataPatch`).
//!
//! An update has what the ledger says when it is sent, so that of several reports of a subscriber one is sent in the end.

use std::rc::Rc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::activity::trail;
use crate::association::ledger::Draft;
use crate::events::Event;
use crate::sources::udr;
use crate::worker::Worker;
use crate::writes::Started;

/// Sends the UDR what is left, in the background, where it has limits of the ledger that was written.
pub(crate) fn update_udr(worker: &Rc<Worker>, draft: &Draft) {
    let settings = &worker.config().usage;
    let Some(ledger) = draft.to_write().filter(|ledger| !ledger.at_udr.is_empty()) else {
        return;
    };
    if !settings.update_udr || !draft.is_reported || worker.sources().udrs.is_none() {
        return;
    }
    match worker.writes().start(&ledger.subscriber, settings.max_updates) {
        Started::Now(in_flight) => {
            let (worker, subscriber) = (worker.clone(), ledger.subscriber.clone());
            let updates = async move {
                update(&worker, &subscriber).await;
                while in_flight.take_more() {
                    update(&worker, &subscriber).await;
                }
            };
            tokio::task::spawn_local(trail::resume(trail::mark(), updates));
        }
        Started::Follows => {}
        Started::Full => worker.count(Event::UsageDropped),
    }
}

async fn update(worker: &Worker, subscriber: &str) {
    let settings = &worker.config().usage;
    for attempt in 0..settings.attempts {
        if attempt > 0 {
            tokio::time::sleep(settings.retry_pause.duration()).await;
        }
        let Some(udrs) = &worker.sources().udrs else {
            return;
        };
        let left = match worker.repository().ledger(subscriber).await {
            Ok(Some(stored)) => stored.record.um_data(),
            Ok(None) => return,
            Err(_) => continue,
        };
        if left.as_object().is_none_or(Map::is_empty) {
            return;
        }
        let end = Instant::now() + worker.config().pds.deadline.duration();
        let patch: Value = json!({"umData": left});
        match udr::patch(udrs, worker.peers(), subscriber, &patch, end).await {
            Ok(()) => return worker.count(Event::UsageWritten),
            Err(failure) => tracing::debug!(subscriber, ?failure, "the UDR did not take usage data"),
        }
    }
    worker.count(Event::UsageUnwritten);
}
