//! What follows from policies of background data transfers: the UDR gets what is selected (TS 29.519 §5.2.9), and providers are warned of a
//! degraded network (TS 29.554 §4.2.4). What is due stands in the store, so that the next process does it after a kill.

use std::rc::Rc;
use std::time::{Duration, Instant};

use http::StatusCode;
use pcc::bdt::{Degradation, Wanted};
use serde_json::{Value, json};
use store::{Scan, Stored};

use super::{now, offer, owe};
use crate::association::af_message::{AfInterface, AfMessage};
use crate::association::bdt::{BdtPolicy, Change};
use crate::association::unconfirmed::Unconfirmed;
use crate::change::af_notices;
use crate::events::Event;
use crate::repository::Beside;
use crate::sources::{now_ms, udr};
use crate::worker::{Front, Worker, sweep};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_millis(500);
/// Policies that a sweep takes up at most.
const MOST: usize = 64;
/// Policies of a page of the walk over all of them.
const PAGE: usize = 256;
/// Longest pause before another attempt at a UDR, in milliseconds.
const LONGEST: u64 = 600_000;

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    let mut judged: Option<Vec<Degradation>> = None;
    let sweeps = sweep(&front, PAUSE, async |worker| {
        let degraded = &worker.config().bdt.degraded;
        // At the start, and after a reload, any policy may be affected.
        let is_new = judged.as_ref() != Some(degraded);
        if is_new && (degraded.is_empty() || all(worker).await.is_some()) {
            judged = Some(degraded.clone());
        }
        due(worker).await;
    });
    sweeps.await;
}

/// Looks at every policy; `None`: not at all of them.
async fn all(worker: &Worker) -> Option<()> {
    let mut next = Some(Scan::all(PAGE));
    while let Some(scan) = next {
        let page = worker.repository().bdt_policies().scan(&scan).await;
        let page = page.inspect_err(
            |error| tracing::warn!(%error, "failed to look for background data transfers in a degraded network"),
        );
        let page = page.ok()?;
        for stored in page.records {
            warn(worker, stored).await?;
        }
        next = page.next;
        tokio::task::yield_now().await;
    }
    Some(())
}

/// Looks at the policies that are due.
async fn due(worker: &Worker) {
    match worker.repository().bdt_due(now_ms(), MOST).await {
        Ok(found) => {
            for stored in found {
                if let Some(stored) = warn(worker, stored).await {
                    update(worker, stored).await;
                }
            }
        }
        Err(error) => tracing::warn!(%error, "failed to look for background data transfers in the store"),
    }
}

/// Warns the provider of a policy whose selected transfer lies in a degraded network, where another one can be offered: the policy as
/// it is stored then; `None`: another writer was faster, or the store failed.
async fn warn(worker: &Worker, stored: Stored<BdtPolicy>) -> Option<Stored<BdtPolicy>> {
    let (after, warning) = match warned(worker, &stored.record).await {
        Ok(Some(warned)) => warned,
        Ok(None) => return Some(stored),
        Err(error) => {
            tracing::warn!(%error, "failed to look for other background data transfers");
            return None;
        }
    };
    let beside = Beside {
        loads: Vec::new(),
        warning: Some(warning),
    };
    match worker
        .repository()
        .put_bdt(&after, Some(stored.version), &beside)
        .await
    {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => {
            tracing::warn!(%error, id = %after.id, "a warning of a background data transfer was not written");
            return None;
        }
    }
    if let Some(Unconfirmed {
        id,
        number,
        af: Some(message),
        ..
    }) = &beside.warning
    {
        af_notices::deliver(worker, message, (*id, Some(*number)));
    }
    worker.repository().bdt_policy(after.id).await.ok().flatten()
}

/// A policy with its warning; `None`: there is none.
async fn warned(
    worker: &Worker,
    before: &BdtPolicy,
) -> Result<Option<(BdtPolicy, Unconfirmed)>, store::Error> {
    let content = &before.content;
    let (Some(target), Some(selected)) = (before.warned_at(), before.selected()) else {
        return Ok(None);
    };
    let Some(wanted) = Wanted::read(&content.request).filter(|_| !content.is_invalid) else {
        return Ok(None);
    };
    let Some(degradation) = worker
        .config()
        .bdt
        .degradation_of(&selected.policy, &wanted, now())
    else {
        return Ok(None);
    };
    let mut after = before.clone();
    after.content.offered = vec![selected.clone()];
    // Without another one the provider keeps what it has and is not warned (TS 29.554 §4.2.4.2).
    if offer(worker, &mut after, &wanted).await? == 0 {
        return Ok(None);
    }
    after.content.is_invalid = true;
    owe(worker, &mut after, true);
    let candidates = after.content.offered.iter().skip(1).map(|one| one.policy.clone());
    let mut body = json!({"bdtRefId": content.reference, "timeWindow": degradation.time_window(),
        "candPolicies": candidates.collect::<Value>()});
    if let Some(area) = degradation.area.to_json() {
        body["nwAreaInfo"] = area;
    }
    let message = AfMessage {
        session: format!("bdt-{}", before.id),
        ends: false,
        by: AfInterface::Bdt(target.to_owned(), body),
    };
    let warning = Unconfirmed {
        due: af_notices::due(worker, &message),
        id: before.id,
        number: worker.random().next(),
        removed: Value::Null,
        taken: 0,
        release: None,
        af: Some(message),
    };
    Ok(Some((after, warning)))
}

/// Sends the UDR what it lacks of a policy, and writes what has come of that.
async fn update(worker: &Worker, stored: Stored<BdtPolicy>) {
    let (mut policy, version) = (stored.record, stored.version);
    let udr = policy.content.udr;
    policy.content.due = None;
    if let Some(change) = policy.owed() {
        match sent(worker, &policy, change).await {
            Sent::Taken => {
                worker.count(Event::BdtStored);
                policy.content.udr.has = change != Change::Delete;
                policy.content.udr.lacks = false;
            }
            // It has lost it.
            Sent::Unknown => {
                policy.content.udr.has = false;
                policy.content.due = Some(now_ms());
            }
            Sent::Refused => {
                worker.count(Event::BdtNotStored);
                policy.content.udr.lacks = false;
            }
            Sent::Nothing => {
                let pause = 1_000_u64.saturating_mul(1 << udr.failures.min(16)).min(LONGEST);
                policy.content.udr.failures = udr.failures.saturating_add(1);
                policy.content.due = Some(now_ms().saturating_add(pause));
            }
        }
    } else {
        policy.content.udr.lacks = false;
    }
    // Where another writer was faster the policy is due again.
    if let Err(error) = worker
        .repository()
        .put_bdt(&policy, Some(version), &Beside::default())
        .await
    {
        tracing::warn!(%error, id = %policy.id, "what a UDR has of a background data transfer was not written");
    }
}

/// What has come of a change at the UDR.
enum Sent {
    Taken,
    /// It has no such resource.
    Unknown,
    Refused,
    /// No UDR has answered.
    Nothing,
}

async fn sent(worker: &Worker, policy: &BdtPolicy, change: Change) -> Sent {
    let Some(udrs) = &worker.sources().udrs else {
        return Sent::Refused;
    };
    let end = Instant::now() + worker.config().pds.deadline.duration();
    let content = (policy.content.reference.as_str(), policy.body(change));
    match udr::change_bdt(udrs, worker.peers(), change, content, end).await {
        Ok(()) => Sent::Taken,
        Err(udr::Failure::Refused(StatusCode::NOT_FOUND)) if change == Change::Delete => Sent::Taken,
        Err(udr::Failure::Refused(StatusCode::NOT_FOUND)) if change == Change::Patch => Sent::Unknown,
        Err(udr::Failure::Unavailable(_)) => Sent::Nothing,
        Err(failure) => {
            tracing::warn!(?failure, id = %policy.id, "a UDR does not take a background data transfer");
            Sent::Refused
        }
    }
}
