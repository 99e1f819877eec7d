//! The sweep of RARs that no process sends any more: their session gets the whole decision.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use crate::association::Association;
use crate::association::gx as session;
use crate::association::unconfirmed::Unconfirmed;
use crate::change;
use crate::events::Event;
use crate::pushes;
use crate::tdf::now_ms;
use crate::worker::{Front, Worker};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_secs(1);
/// RARs that a sweep takes up at most.
const MOST: usize = 64;

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    if front.seat().context.index != 0 {
        return;
    }
    loop {
        let worker = front.worker();
        if worker.config().diameter.enabled {
            round(&worker).await;
        }
        drop(worker);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn round(worker: &Worker) {
    let now = u64::try_from(now_ms()).unwrap_or_default();
    match worker.repository().overdue(now, MOST).await {
        Ok(found) => {
            for one in found {
                if let Err(error) = take_up(worker, &one.record, one.version).await {
                    tracing::warn!(%error, id = %one.record.id, "a RAR of a process that has ended was not repeated");
                }
            }
        }
        Err(error) => tracing::warn!(%error, "failed to look for RARs that are not confirmed in the store"),
    }
}

/// Repeats a RAR; one of several PCFs of a database does.
async fn take_up(worker: &Worker, old: &Unconfirmed, version: store::Version) -> Result<(), store::Error> {
    let next = Unconfirmed {
        due: pushes::chain_end(worker),
        ..old.clone()
    };
    if !worker.repository().postpone(&next, version).await? {
        return Ok(());
    }
    let doubt = async |association: &mut Association| {
        session::doubt(association, &old.removed);
        Ok::<_, Infallible>(())
    };
    match change::rewrite(worker, old.id, doubt).await {
        Ok(Some(rewritten)) => {
            worker.count(Event::GxReAuthResumed);
            pushes::gx_whole(worker, &rewritten.after, 0, Some(next.number), Vec::new());
        }
        Ok(None) => worker.repository().confirm(next.id, next.number).await?,
        Err(fault) => tracing::debug!(?fault, "the session of a RAR keeps changing"),
    }
    Ok(())
}
