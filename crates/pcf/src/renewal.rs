//! Subscriptions to data of subscribers that end or are lacking: renewed before their producer ends them, and made as soon as a
//! producer that was away answers again. Whichever process is there does it: what is due is in the store.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use crate::activity::trail;
use crate::association::due::Renewal;
use crate::association::{Association, AssociationId};
use crate::change;
use crate::pds::{self, News, Renewed};
use crate::reassessment;
use crate::sources::now_ms;
use crate::worker::{Front, Worker, sweep};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_millis(500);
/// Associations whose subscriptions a worker renews at once.
const MOST: usize = 256;
/// Time, beside the deadline of the sources, after which another process takes up what one has begun.
const LEASE: Duration = Duration::from_secs(10);

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    let sweeps = sweep(&front, PAUSE, async |worker| {
        if worker.sources().are_subscribed(worker.config()) {
            round(worker).await;
        }
    });
    sweeps.await;
}

async fn round(worker: &Rc<Worker>) {
    let room = MOST.saturating_sub(worker.sources().renewing.borrow().len());
    if room == 0 {
        return;
    }
    let found = match worker.repository().renewals(now_ms(), room).await {
        Ok(found) => found,
        Err(error) => return tracing::warn!(%error, "failed to look for subscriptions that end in the store"),
    };
    let lease = LEASE + worker.config().pds.deadline.duration();
    let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    for one in found {
        let next = Renewal {
            due: now_ms().saturating_add(lease),
            ..one.record
        };
        match worker.repository().postpone_renewal(&next, one.version).await {
            Ok(true) => start(worker, one.record.id, false),
            Ok(false) => {}
            Err(error) => return tracing::warn!(%error, "failed to take up subscriptions that end"),
        }
    }
}

/// Seeks what an association lacks after an event of it, in the background: a source that was away may answer again.
pub(crate) fn after(worker: &Rc<Worker>, association: &Association) {
    if pds::lacks(association) && worker.sources().renewing.borrow().len() < MOST {
        start(worker, association.id, true);
    }
}

fn start(worker: &Rc<Worker>, id: AssociationId, at_once: bool) {
    if !worker.sources().renewing.borrow_mut().insert(id) {
        return;
    }
    let worker = worker.clone();
    tokio::task::spawn_local(async move {
        let _in_flight = InFlight(&worker, id);
        let renewed = renew(&worker, id, at_once);
        trail::own(worker.activity(), renewed).await;
    });
}

/// A renewal in flight.
struct InFlight<'w>(&'w Worker, AssociationId);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.sources().renewing.borrow_mut().remove(&self.1);
    }
}

async fn renew(worker: &Worker, id: AssociationId, at_once: bool) {
    let association = match worker.repository().get(id).await {
        Ok(Some(stored)) => stored.record,
        Ok(None) => return forget(worker, id).await,
        Err(error) => return tracing::debug!(%error, %id, "subscriptions of an association were not renewed"),
    };
    if Renewal::of(&association).is_none() {
        return forget(worker, id).await;
    }
    let Some(renewed) = pds::renew(worker, &association, at_once).await else {
        return forget(worker, id).await;
    };
    let surplus = RefCell::new(Vec::new());
    match put(worker, &association, &renewed, &surplus).await {
        Some(true) => {
            for (service, uri) in surplus.into_inner() {
                pds::end(worker, service, uri);
            }
        }
        Some(false) => pds::close(worker, &renewed.alone(&association)).await,
        // What was made stays at the producer until it ends; it is made again.
        None => {}
    }
}

/// Writes what was renewed, and decides again where that brings something new; false: the association is gone.
async fn put(
    worker: &Worker,
    association: &Association,
    renewed: &Renewed,
    surplus: &RefCell<Vec<pds::Surplus>>,
) -> Option<bool> {
    let id = association.id;
    let step = |association: &mut Association| renewed.put(worker, association, &mut surplus.borrow_mut());
    let event = match renewed.news() {
        News::None => {
            let step = async |association: &mut Association| {
                step(association);
                Ok::<_, Infallible>(())
            };
            let written = change::rewrite(worker, id, step).await;
            let written =
                written.inspect_err(|fault| tracing::debug!(?fault, %id, "a renewal was not written"));
            return written.ok().map(|written| written.is_some());
        }
        News::Counters => "counters",
        News::PolicyData => {
            // A change may have been missed.
            worker
                .versions()
                .changed(association.text_of("supi").unwrap_or_default());
            "subscriberData"
        }
    };
    let decided = reassessment::reassess(worker, id, event, step).await;
    let decided =
        decided.inspect_err(|fault| tracing::debug!(?fault, %id, "an association was not decided again"));
    decided.ok()
}

async fn forget(worker: &Worker, id: AssociationId) {
    if let Err(error) = worker.repository().forget_renewal(id).await {
        tracing::debug!(%error, %id, "what was due for an association was not deleted");
    }
}
