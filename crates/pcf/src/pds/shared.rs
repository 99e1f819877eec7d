//! The Sy session that the sessions of a subscriber share (TS 29.219 §4.1), whichever worker or PCF of the database has them.
//!
//! The first session begins it, the last one ends it. Each step is a conditional write of its record: where two sessions begin
//! at one moment, one Sy session stays, and the other is ended.

use std::convert::Infallible;
use std::time::Instant;

use serde_json::Map;

use super::{Held, ocs, sy_name};
use crate::association::sy::{SySession, SyShare};
use crate::association::{Association, AssociationId};
use crate::change::{ChangeFault, TRIES, pause};
use crate::events::Event;
use crate::sources::signed_now_ms;
use crate::worker::Worker;

/// How long a session may take from joining until it is stored, in milliseconds, beside the deadline of its sources.
const CREATION_MS: i64 = 5_000;

/// Joins the Sy session of a subscriber, or begins it: what the association keeps. `None`: no OCS answers in time, or it
/// refuses.
pub(super) async fn join(
    worker: &Worker,
    association: &Association,
    supi: &str,
    end: Instant,
) -> Option<Held> {
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let stored = worker.repository().sy(supi).await.ok()?;
        let (mut share, version) = match stored {
            Some(stored) => (stored.record, Some(stored.version)),
            None => {
                let (session, counters) = ocs::begin(worker, association, end).await?;
                let share = SyShare {
                    subscriber: supi.to_owned(),
                    session,
                    counters,
                    serial: 1,
                    members: Vec::new(),
                };
                (share, None)
            }
        };
        share.join(association.id, signed_now_ms());
        let written = worker.repository().put_sy(&share, version).await;
        if matches!(written, Ok(true)) {
            worker.count(match version {
                Some(_) => Event::SyShared,
                None => Event::SySubscribed,
            });
            return Some(Held {
                sy: Some(share.session),
                counters: share.counters,
                serial: share.serial,
                ..Held::default()
            });
        }
        if version.is_none() {
            // Another session of the subscriber was faster, or the store failed.
            ocs::finish(worker, &share.session);
        }
        written.ok()?;
    }
    None
}

/// Whether counters have changed since an association that is stored now has joined: the OCS notified before it was found.
pub(crate) async fn has_changed(worker: &Worker, association: &Association) -> bool {
    let held = Held::of(association);
    let (Some(session), Some(supi)) = (&held.sy, association.text_of("supi")) else {
        return false;
    };
    let share = shared(worker, supi, session).await;
    share.is_some_and(|share| share.serial != held.serial)
}

/// Puts the counters of the Sy session into an association, unless it has newer ones. A session that has ended takes them away.
pub(crate) fn adopt(association: &mut Association, share: Option<&SyShare>) {
    let mut held = Held::of(association);
    match share {
        Some(share) if held.serial < share.serial => {
            held.counters.clone_from(&share.counters);
            held.serial = share.serial;
        }
        Some(_) => return,
        None => {
            (held.sy, held.serial, held.counters) = (None, 0, Map::new());
        }
    }
    held.keep(association);
}

/// The record of a Sy session that an association has.
pub(crate) async fn shared(worker: &Worker, supi: &str, session: &SySession) -> Option<SyShare> {
    let stored = worker.repository().sy(supi).await.ok().flatten()?;
    let is_same = stored.record.session.session_id == session.session_id;
    is_same.then_some(stored.record)
}

/// Writes what an OCS has reported, durably: the record with it. `None`: there is no record.
///
/// # Errors
/// When the store fails, or others keep changing the record.
pub(crate) async fn report<F>(
    worker: &Worker,
    supi: &str,
    session_id: &str,
    change: impl Fn(&mut SyShare),
) -> Result<Option<SyShare>, ChangeFault<F>> {
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let stored = worker.repository().sy(supi).await?;
        let Some(stored) = stored.filter(|one| one.record.session.session_id == session_id) else {
            return Ok(None);
        };
        let mut share = stored.record;
        change(&mut share);
        share.serial += 1;
        if worker.repository().put_sy(&share, Some(stored.version)).await? {
            return Ok(Some(share));
        }
    }
    Err(ChangeFault::Overtaken)
}

/// Removes the record of a Sy session that its OCS has ended.
///
/// # Errors
/// When the store fails.
pub(crate) async fn remove(worker: &Worker, supi: &str, session_id: &str) -> Result<(), store::Error> {
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let stored = worker.repository().sy(supi).await?;
        let Some(stored) = stored.filter(|one| one.record.session.session_id == session_id) else {
            return Ok(());
        };
        if worker.repository().remove_sy(supi, stored.version).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// An association that has ended, or did not come to be, leaves the Sy session; the last one ends it.
pub(super) async fn leave(worker: &Worker, association: &Association) {
    let held = Held::of(association);
    let (Some(session), Some(supi)) = (held.sy, association.text_of("supi")) else {
        return;
    };
    let deadline = worker.config().pds.deadline.duration().as_millis();
    let recent = signed_now_ms() - CREATION_MS - i64::try_from(deadline).unwrap_or(0);
    for attempt in 0..TRIES {
        pause(worker, attempt).await;
        let Ok(stored) = worker.repository().sy(supi).await else {
            break;
        };
        let Ok(found) = worker.repository().of_name(&sy_name(&session.session_id)).await else {
            break;
        };
        let others = found.iter().map(|one| one.record.id);
        let others: Vec<AssociationId> = others.filter(|id| *id != association.id).collect();
        let stored = stored.filter(|one| one.record.session.session_id == session.session_id);
        let Some(stored) = stored else {
            // A session of an earlier release, or one that another has just ended.
            if held.serial == 0 && others.is_empty() {
                ocs::finish(worker, &session);
            }
            return;
        };
        let mut share = stored.record;
        share.leave(association.id, &others, recent);
        let ends = share.members.is_empty() && others.is_empty();
        let written = match ends {
            true => worker.repository().remove_sy(supi, stored.version).await,
            false => worker.repository().put_sy(&share, Some(stored.version)).await,
        };
        match written {
            Ok(true) if ends => return ocs::finish(worker, &share.session),
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => break,
        }
    }
    worker.count(Event::SyLeft);
}

/// Asks for other counters where the settings have others than the Sy session was begun with (TS 29.219 §4.5.1.3), once for
/// all sessions of the subscriber, and keeps their statuses with the association.
pub(crate) async fn refresh(worker: &Worker, association: &mut Association) {
    let settings = &worker.config().pds;
    let mut held = Held::of(association);
    let Some(mut session) = held
        .sy
        .clone()
        .filter(|session| session.asked != settings.sy.counters)
    else {
        return;
    };
    let supi = association.text_of("supi").unwrap_or_default().to_owned();
    if let Some(share) = shared(worker, &supi, &session).await
        && share.session.asked == settings.sy.counters
    {
        held.sy = Some(share.session.clone());
        held.keep(association);
        return adopt(association, Some(&share));
    }
    session.asked.clone_from(&settings.sy.counters);
    let end = Instant::now() + settings.deadline.duration();
    let Some(counters) = ocs::ask_more(worker, association, &session, end).await else {
        return worker.count(Event::SyFailed);
    };
    let kept = report::<Infallible>(worker, &supi, &session.session_id, |share| {
        share.session.asked.clone_from(&session.asked);
        share.counters.clone_from(&counters);
    });
    if let Ok(Some(share)) = kept.await {
        held.serial = share.serial;
    }
    held.sy = Some(session.clone());
    held.counters = counters;
    held.keep(association);
}
