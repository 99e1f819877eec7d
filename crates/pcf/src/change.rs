//! Changes of associations by one writer at a time, whichever worker or instance they come from.

pub(crate) mod af_notices;
pub(crate) mod ends;
pub(crate) mod owed;

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

pub(crate) use function::records::ChangeFault;
use serde_json::{Map, Value, json};
use store::{Stored, Version};

use crate::activity::{Entry, trail};
use crate::association::ledger::Draft;
use crate::association::unanswered::Unanswered;
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId, Kind, claims, decision, gx, sd};
use crate::events::Event;
use crate::notices;
use crate::peers::bsf;
use crate::pushes;
use crate::quotas;
use crate::removals;
use crate::repository::Growth;
use crate::sources::now_ms;
use crate::subscriber_state;
use crate::tdf;
use crate::worker::Worker;

/// Attempts of a change that others keep overtaking.
pub(crate) const TRIES: u32 = 25;
/// Longest pause before another attempt, in milliseconds.
const LONGEST_PAUSE: u64 = 64;

/// Changes an association for a purpose of the PCF itself, durably: what `change` answers, the association before and after. `None`: there is none.
///
/// Where another writer was faster, `change` runs again on what that one has left, so that no change is lost.
///
/// # Errors
/// What `change` says, or that it could not be written.
pub(crate) async fn rewrite<T, F>(
    worker: &Worker,
    id: AssociationId,
    mut change: impl AsyncFnMut(&mut Association) -> Result<T, F>,
) -> Result<Option<Rewritten<T>>, ChangeFault<F>> {
    let change = async |association: &mut Association, _: &mut Draft| change(association).await;
    write_grown(worker, id, (false, Growth::Own), change).await
}

/// As [`rewrite`], with a draft of the records of its subscriber, which is written together with the association.
///
/// # Errors
/// As [`rewrite`].
pub(crate) async fn rewrite_with_draft<T, F>(
    worker: &Worker,
    id: AssociationId,
    change: impl AsyncFnMut(&mut Association, &mut Draft) -> Result<T, F>,
) -> Result<Option<Rewritten<T>>, ChangeFault<F>> {
    write(worker, id, false, change).await
}

/// As [`rewrite_with_draft`], for a change that is not answered to the consumer of the association: the RAR or notification that
/// it gets of that is written with it. The caller sends it ([`announce`]).
///
/// # Errors
/// As [`rewrite`].
pub(crate) async fn write<T, F>(
    worker: &Worker,
    id: AssociationId,
    announces: bool,
    change: impl AsyncFnMut(&mut Association, &mut Draft) -> Result<T, F>,
) -> Result<Option<Rewritten<T>>, ChangeFault<F>> {
    write_grown(worker, id, (announces, Growth::Request), change).await
}

async fn write_grown<T, F>(
    worker: &Worker,
    id: AssociationId,
    (announces, growth): (bool, Growth),
    mut change: impl AsyncFnMut(&mut Association, &mut Draft) -> Result<T, F>,
) -> Result<Option<Rewritten<T>>, ChangeFault<F>> {
    let _turn = worker.turn(id).await;
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let Some(stored) = worker.repository().get(id).await? else {
            return Ok(None);
        };
        let (before, version) = (stored.record, stored.version);
        trail::concerns(&before);
        let (mut after, mut draft) = (before.clone(), Draft::default());
        let answer = change(&mut after, &mut draft).await;
        let answer = answer.map_err(ChangeFault::Refused)?;
        claims::retain(&mut after);
        Unanswered::forget(&mut after);
        tdf::plan(worker, &mut after);
        let is_same = after == before && !draft.is_to_write();
        let rar = announces.then(|| unconfirmed(worker, &before, &after)).flatten();
        let repository = worker.repository();
        let both = (&before, &after);
        if is_same
            || repository
                .update(both, version, growth, &draft, rar.as_ref())
                .await?
        {
            if !is_same {
                noted(worker, &before, &after, &draft);
            }
            af_notices::send(worker, &draft);
            subscriber_state::count(worker, &draft);
            worker.notify(after.messages.take());
            tdf::begin(worker, Some(&before), &after);
            return Ok(Some(Rewritten {
                answer,
                before,
                after,
                draft,
                record: rar.map(|rar| rar.number),
            }));
        }
        worker.count(Event::Retried);
    }
    worker.count(Event::Overtaken);
    Err(ChangeFault::Overtaken)
}

/// An association was written.
fn noted(worker: &Worker, before: &Association, after: &Association, draft: &Draft) {
    worker.policy_events().written(Some(before), Some(after));
    exhausted(worker, after, draft);
    trail::note(|| {
        let changes = decision::difference(before.decision(), after.decision());
        let rooms = after.rooms.iter();
        let rooms = rooms.filter(|(name, room)| before.rooms.get(*name) != Some(*room));
        let rooms: Vec<&String> = rooms.map(|(name, _)| name).collect();
        let body = json!({"decision": changes, "rooms": rooms, "contextChanged": before.context != after.context,
            "quotasWritten": draft.to_write().is_some(), "subscriberStateWritten": draft.state.to_write().is_some()});
        Entry::new("write", format!("{} association updated", after.kind.name())).body(body)
    });
}

fn exhausted(worker: &Worker, association: &Association, draft: &Draft) {
    for limit in draft.newly_exhausted() {
        worker.policy_events().exhausted(association, &limit);
        trail::note(|| Entry::new("decision", format!("quota {limit} exhausted")));
    }
}

/// A changed association.
#[derive(Debug)]
pub(crate) struct Rewritten<T> {
    /// What the change answers.
    pub(crate) answer: T,
    /// The association before.
    pub(crate) before: Association,
    /// The association after.
    pub(crate) after: Association,
    /// What was written of the records of its subscriber.
    pub(crate) draft: Draft,
    /// The number of the RAR or notification that was written with it.
    pub(crate) record: Option<u64>,
}

/// The RAR that a change causes at a PCEF, or the notification of an SMF or AMF.
fn unconfirmed(worker: &Worker, before: &Association, after: &Association) -> Option<Unconfirmed> {
    if before.policy == after.policy && before.parts == after.parts {
        return None;
    }
    let (due, removed) = match after.kind {
        Kind::Gx => (pushes::chain_end(worker), gx::removed(before, after)),
        _ => {
            let difference = decision::difference(before.decision(), after.decision());
            if !notices::is_notified(after, &difference) {
                return None;
            }
            let due = notices::chain_end(&worker.config().notifications, now_ms());
            (due, Value::Object(removals::nulls(&difference)))
        }
    };
    Some(Unconfirmed {
        due,
        id: after.id,
        number: worker.random().next(),
        removed,
        taken: 0,
        release: None,
        af: None,
    })
}

/// Deletes an association of a kind, durably, and subtracts what its consumer reports (`accuUsageReports` of
/// `SmPolicyDeleteData`) from the subscriber's quotas; its binding at the BSF is removed. What it was, and what was written of the ledger. `None`: there is none.
///
/// # Errors
/// That it could not be deleted.
pub(crate) async fn remove(
    worker: &Rc<Worker>,
    id: AssociationId,
    kind: Kind,
    report: &Value,
) -> Result<Option<(Association, Draft)>, ChangeFault<Infallible>> {
    remove_if(worker, id, report, |stored| stored.record.kind == kind).await
}

/// As [`remove`], of an association as long as it is of this version.
///
/// # Errors
/// As [`remove`].
pub(crate) async fn remove_version(
    worker: &Rc<Worker>,
    id: AssociationId,
    version: Version,
) -> Result<Option<(Association, Draft)>, ChangeFault<Infallible>> {
    remove_if(worker, id, &Value::Null, |stored| stored.version == version).await
}

async fn remove_if(
    worker: &Rc<Worker>,
    id: AssociationId,
    report: &Value,
    test: impl Fn(&Stored<Association>) -> bool,
) -> Result<Option<(Association, Draft)>, ChangeFault<Infallible>> {
    let _turn = worker.turn(id).await;
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let stored = worker.repository().get(id).await?;
        let Some(stored) = stored.filter(&test) else {
            return Ok(None);
        };
        trail::concerns(&stored.record);
        let mut draft = Draft::default();
        quotas::report(worker, &stored.record, report, &mut draft).await?;
        af_notices::plan_end(worker, &stored.record, report, &mut draft);
        let left = sd::successor(&stored.record, tdf::overdue(worker));
        let ending = worker.repository().ending(stored, bsf::is_used(worker)).await?;
        if worker.repository().remove(&ending, &draft, left.as_ref()).await? {
            bsf::unbind(worker, ending.uri());
            af_notices::send(worker, &draft);
            let stored = ending.stored;
            let (before, name) = (&stored.record, stored.record.kind.name());
            worker.policy_events().written(Some(before), None);
            exhausted(worker, before, &draft);
            trail::note(|| Entry::new("write", format!("{name} association deleted")));
            if let Some(left) = &left {
                tdf::begin(worker, None, left);
            }
            return Ok(Some((stored.record, draft)));
        }
        worker.count(Event::Retried);
    }
    worker.count(Event::Overtaken);
    Err(ChangeFault::Overtaken)
}

/// Changes parts of an association's decision, for an application session or because data of the subscriber have changed,
/// and notifies its consumer of what that changes for it (TS 29.512 §4.2.3.2).
///
/// # Errors
/// As [`rewrite`].
pub(crate) async fn parts<T, F>(
    worker: &Worker,
    id: AssociationId,
    change: impl AsyncFnMut(&mut Association) -> Result<T, F>,
) -> Result<Option<Rewritten<T>>, ChangeFault<F>> {
    let mut change = change;
    let step = async |association: &mut Association, _: &mut Draft| change(association).await;
    let rewritten = write(worker, id, true, step).await?;
    if let Some(rewritten) = &rewritten {
        announce(worker, rewritten);
    }
    Ok(rewritten)
}

/// Notifies the consumer of an association of what a change without a request of its own makes of its decision.
pub(crate) fn announce<T>(worker: &Worker, rewritten: &Rewritten<T>) {
    let Rewritten { before, after, .. } = rewritten;
    let difference = decision::difference(before.decision(), after.decision());
    if difference.is_empty() && rewritten.record.is_none() {
        return;
    }
    worker.count(Event::Changed);
    match after.kind {
        Kind::Gx => pushes::gx_update(worker, before, after, rewritten.record),
        _ => notify(worker, after, difference, rewritten.record),
    }
}

/// Notifies the consumer of an association of a change that was written with this record.
pub(crate) fn notify(
    worker: &Worker,
    association: &Association,
    change: Map<String, Value>,
    record: Option<u64>,
) {
    if !worker.notices().updated(association, change, record)
        && let Some(number) = record
    {
        // It has nothing of what has changed.
        let (repository, id) = (worker.repository().clone(), association.id);
        tokio::task::spawn_local(async move { repository.confirm(id, number).await });
    }
}

/// The pause before an attempt: none before the first, then a random one that grows.
pub(crate) async fn pause(worker: &Worker, attempt: u32) {
    if attempt > 0 {
        let most = (1_u64 << attempt.min(16)).min(LONGEST_PAUSE);
        let millis = worker.random().next() % (most + 1);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}
