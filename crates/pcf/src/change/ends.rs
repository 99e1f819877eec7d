//! The sweep of what ended associations have left behind at other functions: subscriptions at UDRs, CHFs and AMFs, bindings at BSFs. The
//! worker that ends an association removes them at once; what it has not removed by the time that all of its attempts take, because
//! the process has ended or the other function was away, is removed here.

use std::rc::Rc;
use std::time::{Duration, Instant};

use store::{Scan, Stored};

use crate::association::owed_end::{OwedEnd, Owner};
use crate::events::Event;
use crate::outbound::{AMF, BSF, CHF, UDR};
use crate::sources::now_ms;
use crate::sources::producers;
use crate::worker::{Front, Worker};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_secs(1);
/// Sweeps between two that look for what other PCFs of the database have left.
const FOREIGN: u32 = 60;
/// How long another PCF is overdue then, in milliseconds.
const PATIENCE: u64 = 60_000;
/// Records of a page, and pages of a sweep.
const PAGE: usize = 256;
const PAGES: usize = 64;
/// How often a removal is attempted: over some 17 minutes.
const MOST_TAKEN: u32 = 10;

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    if front.seat().context.index != 0 {
        return;
    }
    let mut count = 0_u32;
    loop {
        let worker = front.worker();
        let swept = match count % FOREIGN {
            0 => walk(&worker, count == 0).await,
            _ => own(&worker).await,
        };
        if let Err(error) = swept {
            tracing::warn!(%error, "failed to look for what ended associations have left behind");
        }
        count = count.wrapping_add(1);
        drop(worker);
        tokio::time::sleep(PAUSE).await;
    }
}

/// What is due of this PCF.
async fn own(worker: &Rc<Worker>) -> Result<(), store::Error> {
    let by = OwedEnd::number_of(&worker.config().nf_instance_id);
    let (from, to) = OwedEnd::until(by, now_ms());
    for _ in 0..PAGES {
        let scan = Scan::by_index(OwedEnd::DUE, PAGE).from_key(&from).to_key(&to);
        let found = worker.repository().owed_ends().scan(&scan).await?.records;
        let is_last = found.len() < PAGE;
        if !take_up(worker, found).await? || is_last {
            break;
        }
    }
    Ok(())
}

/// What is due of all PCFs of the database, of others with patience. At the start nothing is in flight of this PCF, so that all is due
/// that another process of it has left.
async fn walk(worker: &Rc<Worker>, is_first: bool) -> Result<(), store::Error> {
    let now = now_ms();
    let begun = if is_first {
        worker.repository().end_lease()
    } else {
        0
    };
    let mut next = Some(Scan::by_index(OwedEnd::DUE, PAGE));
    while let Some(scan) = next {
        let page = worker.repository().owed_ends().scan(&scan).await?;
        let mut found = page.records;
        let by = OwedEnd::number_of(&worker.config().nf_instance_id);
        found.retain(|stored| match stored.record.by == by {
            true => stored.record.due <= now.saturating_add(begun),
            false => stored.record.due.saturating_add(PATIENCE) <= now,
        });
        if !take_up(worker, found).await? {
            break;
        }
        next = page.next;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Deletes the records of resources that were removed or given up, and sends DELETE for the others; false: as many as permitted are in
/// flight.
async fn take_up(worker: &Rc<Worker>, found: Vec<Stored<OwedEnd>>) -> Result<bool, store::Error> {
    let now = Instant::now();
    let is_done =
        |one: &Stored<OwedEnd>| one.record.taken >= MOST_TAKEN || worker.removed().has(&one.record.uri, now);
    let (done, left): (Vec<_>, Vec<_>) = found.into_iter().partition(is_done);
    for one in done
        .iter()
        .filter(|one| !worker.removed().has(&one.record.uri, now))
    {
        worker.count(Event::EndGivenUp);
        tracing::info!(
            uri = one.record.uri,
            "a resource of an ended association was not removed"
        );
    }
    let done: Vec<OwedEnd> = done.into_iter().map(|one| one.record).collect();
    worker.repository().settle_ends(&done).await?;
    for one in left {
        if worker.sources().ends.get() >= worker.config().pds.max_ends {
            return Ok(false);
        }
        let pause = 1_000_u64.saturating_mul(1 << one.record.taken.min(16));
        let next = OwedEnd {
            by: OwedEnd::number_of(&worker.config().nf_instance_id),
            due: now_ms()
                .saturating_add(worker.repository().end_lease())
                .saturating_add(pause),
            taken: one.record.taken.saturating_add(1),
            ..one.record
        };
        if worker.repository().postpone_end(&next, one.version).await? {
            worker.count(Event::EndResumed);
            let worker = worker.clone();
            tokio::task::spawn_local(async move { remove(&worker, next).await });
        }
    }
    Ok(true)
}

async fn remove(worker: &Worker, owed: OwedEnd) {
    let service = match owed.owner {
        Owner::Bsf => BSF,
        Owner::Udr => UDR,
        Owner::Chf => CHF,
        Owner::Amf => AMF,
    };
    let deadline = match owed.owner {
        Owner::Bsf => &worker.config().bsf.timeout,
        _ => &worker.config().pds.deadline,
    };
    let deadline = deadline.duration().max(Duration::from_millis(1));
    if producers::delete(worker.peers(), service, &owed.uri, deadline).await
        && let Err(error) = worker.repository().settle_ends(&[owed]).await
    {
        tracing::debug!(%error, "what was removed is not noted as removed");
    }
}
