//! Changes of associations by one writer at a time, whichever worker or instance they come from.

use std::convert::Infallible;
use std::time::Duration;

use crate::association::{Association, AssociationId, Kind, decision};
use crate::events::Event;
use crate::pushes;
use crate::worker::Worker;

/// Attempts of a change that others keep overtaking.
const TRIES: u32 = 25;
/// Longest pause before another attempt, in milliseconds.
const LONGEST_PAUSE: u64 = 64;

/// Why an association is not changed.
#[derive(Debug)]
pub(crate) enum ChangeFault<F> {
    /// The change itself says why.
    Refused(F),
    /// The store failed.
    Store(store::Error),
    /// Others keep changing the association.
    Overtaken,
}

impl<F> From<store::Error> for ChangeFault<F> {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// Changes an association, durably: what `change` answers, the association before and after. `None`: there is none.
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
    let _turn = worker.turn(id).await;
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let Some(stored) = worker.repository().get(id).await? else {
            return Ok(None);
        };
        let (before, version) = (stored.record, stored.version);
        let mut after = before.clone();
        let answer = change(&mut after).await.map_err(ChangeFault::Refused)?;
        if after == before || worker.repository().update(&after, version).await? {
            return Ok(Some(Rewritten {
                answer,
                before,
                after,
            }));
        }
        worker.count(Event::Retried);
    }
    worker.count(Event::Overtaken);
    Err(ChangeFault::Overtaken)
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
}

/// Deletes an association of a kind, durably: what it was. `None`: there is none.
///
/// # Errors
/// That it could not be deleted.
pub(crate) async fn remove(
    worker: &Worker,
    id: AssociationId,
    kind: Kind,
) -> Result<Option<Association>, ChangeFault<Infallible>> {
    let _turn = worker.turn(id).await;
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let stored = worker.repository().get(id).await?;
        let Some(stored) = stored.filter(|stored| stored.record.kind == kind) else {
            return Ok(None);
        };
        if worker.repository().remove(id, stored.version).await? {
            return Ok(Some(stored.record));
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
    let rewritten = rewrite(worker, id, change).await?;
    if let Some(Rewritten { before, after, .. }) = &rewritten {
        let difference = decision::difference(before.decision(), after.decision());
        if !difference.is_empty() {
            worker.count(Event::Changed);
            match after.kind {
                Kind::Gx => pushes::gx_update(worker, before, after),
                _ => worker.notices().updated(after, difference),
            }
        }
    }
    Ok(rewritten)
}

/// The pause before an attempt: none before the first, then a random one that grows.
async fn pause(worker: &Worker, attempt: u32) {
    if attempt > 0 {
        let most = (1_u64 << attempt.min(16)).min(LONGEST_PAUSE);
        let millis = worker.random().next() % (most + 1);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}
