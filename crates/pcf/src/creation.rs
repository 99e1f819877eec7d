//! New associations: decided, then written with what they change of the records of their subscriber, and in the place of those
//! that they collide with.

use std::rc::Rc;

use serde_json::Value;

use crate::activity::{Entry, trail};
use crate::association::ledger::Draft;
use crate::association::{Association, claims, origination, sd};
use crate::change::af_notices;
use crate::change::{ChangeFault, TRIES, pause};
use crate::delivery;
use crate::events::Event;
use crate::pds;
use crate::peers::bsf;
use crate::pre::{self, Decision, Refusal};
use crate::reassessment;
use crate::repository::{Added, Ending};
use crate::subscriber_state;
use crate::tdf;
use crate::worker::Worker;

/// What has come of a request to create an association.
#[derive(Debug)]
pub(crate) enum Created {
    /// The association is new; it is in the place of these.
    New(Vec<Association>),
    /// The same request was carried out before: the association is the one of then.
    Known,
}

/// Decides for a new association and writes it, durably. Where another session of the subscriber was faster in the records that
/// they share, it decides again. Of several requests with one Session-Id in flight, one makes the session. It replaces the sessions
/// that hold its claims (`association::claims`), in the same write, but for those of its subscriber whose establishment was begun
/// later. It replaces none when its consumer does not wait any longer.
///
/// # Errors
/// When the policy refuses it, or it was not written; its subscriptions are ended.
pub(crate) async fn create(
    worker: &Rc<Worker>,
    association: &mut Association,
    is_awaited: impl Fn() -> bool,
) -> Result<Created, ChangeFault<Refusal>> {
    trail::concerns(association);
    claims::make(association, worker.config().collision_detection);
    // Until it is written, or was not.
    let _expected = pds::expect(worker, association);
    let mut draft = Draft::default();
    let decided = pre::decide_new(worker, association, &mut draft).await;
    plan(worker, association, decided.map_err(ChangeFault::Refused)?);
    let written = write(worker, association, draft, is_awaited).await;
    match written {
        Ok(Written::New(replaced)) => {
            if pds::has_changed(worker, association).await {
                // The OCS has notified before it could be found.
                let step = |_: &mut Association| {};
                let decided = reassessment::reassess(worker, association.id, "counters", step).await;
                if let Err(fault) = decided {
                    // It stands, and its consumer gets its URI.
                    tracing::warn!(?fault, id = %association.id, "counters that changed during a creation were not decided on");
                }
            }
            Ok(Created::New(replaced))
        }
        Ok(Written::Known(known)) => {
            pds::close(worker, association).await;
            *association = *known;
            Ok(Created::Known)
        }
        Err(fault) => {
            pds::close(worker, association).await;
            Err(fault)
        }
    }
}

/// Puts a decision into a new association, and what the UE and the TDF are to be sent for it.
fn plan(worker: &Worker, association: &mut Association, decided: Decision) {
    pre::keep(association, decided);
    delivery::plan(worker, association, false);
    tdf::plan(worker, association);
}

/// What a write has come to.
enum Written {
    /// In the place of these.
    New(Vec<Association>),
    /// The same request was faster.
    Known(Box<Association>),
}

async fn write(
    worker: &Rc<Worker>,
    association: &mut Association,
    mut draft: Draft,
    is_awaited: impl Fn() -> bool,
) -> Result<Written, ChangeFault<Refusal>> {
    let repository = worker.repository();
    let mut replaced = Vec::new();
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        // What its consumer has given up does not stand, and ends none that does: it may be what the consumer has sent since.
        if !replaced.is_empty() && !is_awaited() {
            worker.count(Event::TooLate);
            return Err(ChangeFault::Refused(Refusal::Late));
        }
        let left = replaced
            .iter()
            .filter_map(|old: &Ending| sd::successor(&old.stored.record, tdf::overdue(worker)));
        let left: Vec<Association> = left.collect();
        draft.owed.clear();
        for old in &replaced {
            af_notices::plan_end(worker, &old.stored.record, &Value::Null, &mut draft);
        }
        match repository.add(association, &replaced, &left, &draft).await? {
            Added::Written => {
                for new in left.iter().chain([&*association]) {
                    tdf::begin(worker, None, new);
                }
                af_notices::send(worker, &draft);
                subscriber_state::count(worker, &draft);
                worker.notify(association.messages.take());
                for old in &replaced {
                    bsf::unbind(worker, old.uri());
                }
                let replaced: Vec<Association> = replaced.into_iter().map(|old| old.stored.record).collect();
                noted(worker, association, &replaced);
                return Ok(Written::New(replaced));
            }
            Added::Claimed => {}
            Added::Overtaken => {
                worker.count(Event::Retried);
                draft = Draft::default();
                let request = association.context.clone();
                let again = pre::decide(worker, "create", association, &request, &mut draft).await;
                plan(worker, association, again.map_err(ChangeFault::Refused)?);
            }
        }
        replaced.clear();
        for holder in repository.holders(association).await? {
            replaced.push(repository.ending(holder, bsf::is_used(worker)).await?);
        }
        let mut held = replaced.iter().map(|old| &old.stored.record);
        if let Some(named) = held.clone().find(|old| claims::share_name(old, association)) {
            if !claims::share_host(named, association) {
                return Err(ChangeFault::Refused(Refusal::Foreign));
            }
            // Without collision detection a Session-Id has one session until that ends.
            if named.context == association.context || !worker.config().collision_detection {
                return Ok(Written::Known(Box::new(named.clone())));
            }
        }
        if held.any(|old| origination::is_overtaken(association, old)) {
            worker.count(Event::Late);
            pre::refused(worker, "create", association, &Refusal::Late);
            return Err(ChangeFault::Refused(Refusal::Late));
        }
    }
    worker.count(Event::Overtaken);
    Err(ChangeFault::Overtaken)
}

/// An association was written in the place of others.
fn noted(worker: &Worker, association: &Association, replaced: &[Association]) {
    for old in replaced {
        worker.count(Event::Collided);
        worker.policy_events().written(Some(old), None);
        let text = format!("{} association {} replaced", old.kind.name(), old.id);
        trail::note(|| Entry::new("write", text));
    }
    worker.policy_events().written(None, Some(association));
    trail::note(|| {
        Entry::new(
            "write",
            format!("{} association created", association.kind.name()),
        )
    });
}

/// What follows from the end of sessions that a new one has replaced: their subscriptions end.
pub(crate) async fn close(worker: &Rc<Worker>, replaced: &[Association]) {
    for old in replaced {
        tracing::info!(id = %old.id, kind = old.kind.name(), "a session was established again and replaced");
        pds::close(worker, old).await;
    }
}
