//! Decisions that are made again without a request of their consumer: data of the subscriber have changed, or another of its
//! sessions has used up a quota. The consumer is notified of what that changes.

use std::rc::Rc;

use crate::activity::trail;
use crate::association::ledger::{self, Draft};
use crate::association::{Association, AssociationId, Kind, refused};
use crate::change::{self, ChangeFault, owed};
use crate::delivery;
use crate::events::Event;
use crate::pds::{self, Missing};
use crate::pre::{self, Refusal};
use crate::quotas;
use crate::worker::Worker;

/// Decides again for an association and notifies its consumer of the difference; false: there is none. A policy that now
/// refuses the association has its consumer end it (TS 29.512 §4.2.3.3).
///
/// # Errors
/// When it was not decided, or not written.
pub(crate) async fn reassess(
    worker: &Worker,
    id: AssociationId,
    event: &str,
    step: impl Fn(&mut Association),
) -> Result<bool, ChangeFault<Refusal>> {
    let step = async |association: &mut Association| step(association);
    reassess_after(worker, id, event, step).await
}

/// As [`reassess`], with a step that asks others within the turn of the association.
///
/// # Errors
/// As [`reassess`].
pub(crate) async fn reassess_after(
    worker: &Worker,
    id: AssociationId,
    event: &str,
    step: impl AsyncFn(&mut Association),
) -> Result<bool, ChangeFault<Refusal>> {
    let change = async |association: &mut Association, draft: &mut Draft| {
        step(association).await;
        if event == "subscriberData" {
            pds::note_change(worker, association);
        }
        let request = association.context.clone();
        // Quotas that are opened here are written with the thresholds that the consumer gets of them.
        match pre::decide(worker, event, association, &request, draft).await {
            Ok(decided) => {
                pre::keep(association, decided);
                delivery::plan(worker, association, false);
                Ok(false)
            }
            Err(Refusal::Policy { .. } | Refusal::Missing(Missing::User)) => {
                *draft = Draft::default();
                refused::note(association);
                draft
                    .owed
                    .push(owed::release(worker, association, refused::CAUSE));
                Ok(true)
            }
            Err(refusal) => Err(refusal),
        }
    };
    let Some(changed) = change::write(worker, id, true, change).await? else {
        return Ok(false);
    };
    quotas::count(worker, &changed.draft);
    change::announce(worker, &changed);
    delivery::begin(worker, &changed.after);
    if changed.answer {
        worker.count(Event::Terminated);
        owed::send_release(worker, &changed.after, refused::CAUSE);
    }
    Ok(true)
}

/// What follows from a ledger that was written: the UDR gets what is left, and the other sessions that share a quota are
/// decided again where it was used up or is whole again.
pub(crate) fn after(worker: &Rc<Worker>, own: AssociationId, draft: &Draft) {
    quotas::count(worker, draft);
    quotas::update_udr(worker, draft);
    let Some(ledger) = draft.to_write().filter(|_| draft.concerns_others()) else {
        return;
    };
    let (worker, subscriber) = (worker.clone(), ledger.subscriber.clone());
    tokio::task::spawn_local(async move {
        let found = match subscriber.starts_with("msisdn-") || subscriber.starts_with("extid-") {
            true => worker.repository().of_gpsi(&subscriber).await,
            false => worker.repository().of_supi(&subscriber).await,
        };
        let sessions = match found {
            Ok(found) => found.into_iter().map(|stored| stored.record),
            Err(error) => {
                return tracing::debug!(%error, subscriber, "sessions of a shared quota cannot be read");
            }
        };
        let share =
            |one: &Association| one.id != own && one.kind != Kind::Tdf && !ledger::limits_of(one).is_empty();
        for session in sessions.filter(share) {
            let again = reassess(&worker, session.id, "usage", |_| {});
            if let Err(fault) = trail::own(worker.activity(), again).await {
                tracing::debug!(?fault, id = %session.id, "a session of a shared quota was not decided again");
            }
        }
    });
}
