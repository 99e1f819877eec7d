//! New associations: decided, then written with what they open in the ledger of their subscriber.

use crate::association::Association;
use crate::association::ledger::Draft;
use crate::change::{ChangeFault, TRIES, pause};
use crate::delivery;
use crate::events::Event;
use crate::pds;
use crate::pre::{self, Refusal};
use crate::reassessment;
use crate::tdf;
use crate::worker::Worker;

/// Decides for a new association and writes it, durably. Where another session of the subscriber was faster in its ledger, it
/// decides again.
///
/// # Errors
/// When the policy refuses it, or it was not written; its subscriptions are ended.
pub(crate) async fn create(
    worker: &Worker,
    association: &mut Association,
) -> Result<(), ChangeFault<Refusal>> {
    let mut draft = Draft::default();
    let decided = pre::decide_new(worker, association, &mut draft).await;
    let mut decided = decided.map_err(ChangeFault::Refused)?;
    let written = async {
        for attempt in 0..TRIES {
            pause(worker, attempt).await;
            pre::keep(association, decided);
            delivery::plan(worker, association, false);
            tdf::plan(worker, association);
            if worker.repository().add(association, &draft).await? {
                tdf::begin(worker, None, association);
                return Ok(());
            }
            worker.count(Event::Retried);
            draft = Draft::default();
            let request = association.context.clone();
            let again = pre::decide_in(worker, "create", association, &request, &mut draft).await;
            decided = again.map_err(ChangeFault::Refused)?;
        }
        worker.count(Event::Overtaken);
        Err(ChangeFault::Overtaken)
    };
    let written = written.await;
    if written.is_ok() && pds::has_changed(worker, association).await {
        // The OCS has notified before it could be found.
        let step = |_: &mut Association| {};
        reassessment::reassess(worker, association.id, "counters", step).await?;
    }
    if written.is_err() {
        pds::close(worker, association).await;
    }
    written
}
