//! The sweep of what no process sends any more, or what was not taken in all attempts: RARs and notifications of consumers, in whose place
//! they get the whole decision, and messages to AFs.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use store::Stored;

use super::af_notices;
use crate::association::af_message::{AfInterface, AfMessage};
use crate::association::gx as session;
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId, Kind, af, refused};
use crate::events::Event;
use crate::sources::now_ms;
use crate::worker::{Front, Worker, sweep};
use crate::{notices, pushes};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_secs(1);
/// Records that a sweep takes up at most.
const MOST: usize = 64;
/// How often a message to an AF or a request to end an association is taken up: over some 17 minutes.
const MOST_TAKEN: u32 = 10;
/// Longest pause before the same notification is taken up again, in milliseconds.
const LONGEST: u64 = 600_000;

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    sweep(&front, PAUSE, async |worker| round(worker).await).await;
}

async fn round(worker: &Worker) {
    let mut found = match worker.repository().overdue(now_ms(), MOST).await {
        Ok(found) => found,
        Err(error) => {
            return tracing::warn!(%error, "failed to look for messages that are not confirmed in the store");
        }
    };
    let messages = found.extract_if(.., |one| one.record.af.is_some());
    for one in messages.collect::<Vec<_>>() {
        if let Err(error) = resume(worker, &one).await {
            tracing::warn!(%error, id = %one.record.id, "a message to an AF was not sent again");
        }
    }
    // Those of one association get one whole decision.
    found.sort_by_key(|one| one.record.id.0);
    for own in found.chunk_by(|one, next| one.record.id == next.record.id) {
        let Some(id) = own.first().map(|one| one.record.id) else {
            continue;
        };
        if let Err(error) = take_up(worker, id, own).await {
            tracing::warn!(%error, %id, "a message that is not confirmed was not sent again");
        }
    }
}

async fn take_up(
    worker: &Worker,
    id: AssociationId,
    found: &[Stored<Unconfirmed>],
) -> Result<(), store::Error> {
    let Some(stored) = worker.repository().get(id).await? else {
        worker.notices().removals.forget(id);
        for one in found {
            worker.repository().confirm(id, one.record.number).await?;
        }
        return Ok(());
    };
    let (releases, found): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.record.release.is_some());
    for one in releases {
        release_again(worker, &stored.record, one).await?;
    }
    match stored.record.kind {
        Kind::Gx if !worker.config().diameter.enabled => {
            // Others come first until it is enabled again.
            for one in found {
                let due = now_ms().saturating_add(LONGEST);
                let next = Unconfirmed {
                    due,
                    ..one.record.clone()
                };
                worker.repository().postpone(&next, one.version).await?;
            }
            Ok(())
        }
        Kind::Gx => re_auth(worker, id, &found).await,
        _ => notify(worker, &stored.record, &found).await,
    }
}

/// The record of a request to end an association, which is made now.
pub(crate) fn release(worker: &Worker, association: &Association, cause: &str) -> Unconfirmed {
    let due = notices::release_due(&worker.config().notifications, now_ms());
    Unconfirmed::release(association.id, cause, due)
}

/// Asks the consumer of an association to end it (TS 29.512 §4.2.3.3, TS 29.212 §4.5.9).
pub(crate) fn send_release(worker: &Worker, association: &Association, cause: &str) {
    worker.notices().terminate(association, cause);
    let settings = &worker.config().diameter;
    if let Some(order) = pushes::gx_release(settings, association, cause, 0) {
        worker.send(order);
    }
}

/// Asks once more; the consumer has answered when the association is gone.
async fn release_again(
    worker: &Worker,
    association: &Association,
    found: &Stored<Unconfirmed>,
) -> Result<(), store::Error> {
    let Unconfirmed {
        id, number, taken, ..
    } = found.record;
    let cause = found.record.release.as_deref();
    let cause = cause.filter(|cause| taken < MOST_TAKEN && !refused::is_past(association, cause));
    let Some(cause) = cause else {
        return worker.repository().confirm(id, number).await;
    };
    let next = Unconfirmed {
        due: again(
            notices::chain_end(&worker.config().notifications, now_ms()),
            taken,
        ),
        taken: taken.saturating_add(1),
        ..found.record.clone()
    };
    if worker.repository().postpone(&next, found.version).await? {
        worker.count(Event::NotificationResumed);
        send_release(worker, association, cause);
    }
    Ok(())
}

/// When something that was taken up this often is due again, where its attempts end at a time.
fn again(end: u64, taken: u32) -> u64 {
    let pause = 1_000_u64.saturating_mul(1 << taken.min(16)).min(LONGEST);
    end.saturating_add(pause)
}

/// A message to an AF as it is sent now. `None`: it is about what is past, since its session has ended by itself or goes on, has no
/// subscription any more, or has had later events.
async fn present(
    worker: &Worker,
    (id, number): (AssociationId, u64),
    message: &AfMessage,
) -> Result<Option<AfMessage>, store::Error> {
    if !message.ends && worker.notices().removals.has_later(id, &message.session, number) {
        return Ok(None);
    }
    if matches!(message.by, AfInterface::Bdt(..)) {
        // What the provider has selected since is what counts.
        let stored = worker.repository().bdt_policy(id).await?;
        let is_invalid = stored.is_some_and(|stored| stored.record.content.is_invalid);
        return Ok(is_invalid.then(|| message.clone()));
    }
    // With its association all of its AF sessions end, of which the AFs hear.
    let Some(stored) = worker.repository().get(id).await? else {
        return Ok(Some(message.clone()));
    };
    let own = af::sessions(&stored.record).find(|session| session.id == message.session);
    let own = own.filter(|session| !message.ends || session.ending);
    Ok(own.and_then(|session| af_notices::readdressed(message, &session)))
}

/// Repeats a message to an AF; one of several PCFs of a database does.
async fn resume(worker: &Worker, found: &Stored<Unconfirmed>) -> Result<(), store::Error> {
    let Unconfirmed {
        id, number, taken, ..
    } = found.record;
    let Some(message) = found.record.af.as_ref() else {
        return Ok(());
    };
    let Some(message) = &present(worker, (id, number), message).await? else {
        return worker.repository().confirm(id, number).await;
    };
    if taken >= MOST_TAKEN {
        worker.count(Event::AfGivenUp);
        tracing::info!(%id, session = message.session, "an AF does not answer, a message to it was given up");
        return worker.repository().confirm(id, number).await;
    }
    let next = Unconfirmed {
        due: again(af_notices::due(worker, message), taken),
        taken: taken.saturating_add(1),
        ..found.record.clone()
    };
    if worker.repository().postpone(&next, found.version).await? {
        worker.count(Event::AfResumed);
        af_notices::deliver(worker, message, (id, Some(number)));
    }
    Ok(())
}

/// Repeats notifications by one with all of the decision; one of several PCFs of a database does.
async fn notify(
    worker: &Worker,
    association: &Association,
    found: &[&Stored<Unconfirmed>],
) -> Result<(), store::Error> {
    let end = notices::chain_end(&worker.config().notifications, now_ms());
    let mut own = Vec::new();
    for one in found {
        let next = Unconfirmed {
            due: again(end, one.record.taken),
            taken: one.record.taken.saturating_add(1),
            ..one.record.clone()
        };
        if worker.repository().postpone(&next, one.version).await? {
            own.push(next);
        }
    }
    if own.is_empty() {
        return Ok(());
    }
    // The decision of after the records were taken up: theirs are among its changes.
    let Some(stored) = worker.repository().get(association.id).await? else {
        return Ok(());
    };
    let own: Vec<&Unconfirmed> = own.iter().collect();
    if worker.notices().resumed(&stored.record, &own) {
        worker.count(Event::NotificationResumed);
        return Ok(());
    }
    for one in own {
        worker.repository().confirm(one.id, one.number).await?;
    }
    Ok(())
}

/// Repeats RARs by one with all of the decision, which the last record stands for; one of several PCFs of a database does.
async fn re_auth(
    worker: &Worker,
    id: AssociationId,
    found: &[&Stored<Unconfirmed>],
) -> Result<(), store::Error> {
    let Some((last, earlier)) = found.split_last() else {
        return Ok(());
    };
    let next = Unconfirmed {
        due: again(pushes::chain_end(worker), last.record.taken),
        taken: last.record.taken.saturating_add(1),
        ..last.record.clone()
    };
    if !worker.repository().postpone(&next, last.version).await? {
        return Ok(());
    }
    let doubt = async |association: &mut Association| {
        for one in found {
            session::doubt(association, &one.record.removed);
        }
        Ok::<_, Infallible>(())
    };
    let is_gone = match super::rewrite(worker, id, doubt).await {
        Ok(Some(rewritten)) => {
            worker.count(Event::GxReAuthResumed);
            pushes::gx_whole(worker, &rewritten.after, 0, Some(next.number), Vec::new());
            false
        }
        Ok(None) => true,
        Err(fault) => {
            tracing::debug!(?fault, "the session of a RAR keeps changing");
            return Ok(());
        }
    };
    // The session itself has what the earlier ones were to remove.
    for one in earlier.iter().chain(is_gone.then_some(last)) {
        worker.repository().confirm(id, one.record.number).await?;
    }
    Ok(())
}
