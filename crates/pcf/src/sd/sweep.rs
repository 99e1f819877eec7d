//! The sweep: requests to TDFs that are due are sent again, whichever process has sent them before.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::association::sd::{self as session, State, TdfSession};
use crate::association::{Association, Kind};
use crate::change;
use crate::events::Event;
use crate::sources::signed_now_ms;
use crate::tdf;
use crate::worker::{Front, Worker, sweep};

/// Pause between sweeps.
const PAUSE: Duration = Duration::from_millis(500);
/// Minutes back to which the first sweep looks: a day.
const BACK: i64 = 24 * 60;

/// Sweeps until the worker ends; the first worker does.
pub(crate) async fn run(front: Rc<Front>) {
    let mut oldest = session::bucket(signed_now_ms()) - BACK;
    let sweeps = sweep(&front, PAUSE, async |worker| {
        if worker.config().sd.enabled {
            oldest = round(worker, oldest).await;
        }
    });
    sweeps.await;
}

/// Sends what is due: the oldest minute that the next round has to look at.
async fn round(worker: &Rc<Worker>, oldest: i64) -> i64 {
    let now = signed_now_ms();
    let last = session::bucket(now);
    let mut next = last - 1;
    let mut room = worker.config().sd.parallel;
    for bucket in oldest..=last {
        let found = match worker.repository().of_name(&session::due_name(bucket)).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "failed to look for requests to TDFs in the store");
                return oldest;
            }
        };
        for association in found.into_iter().map(|stored| stored.record) {
            let due = TdfSession::get(&association).and_then(|session| session.in_flight);
            if due.is_none_or(|one| one.due > now) {
                continue;
            }
            if room == 0 {
                return bucket.min(next);
            }
            room -= 1;
            again(worker, &association).await;
            next = next.min(bucket);
        }
    }
    next
}

/// Sends the request of a session again, with all of the decision.
async fn again(worker: &Rc<Worker>, association: &Association) {
    let serial = TdfSession::get(association).map(|session| session.serial);
    let step = async |association: &mut Association| {
        let Some(mut session) = TdfSession::get(association).filter(|own| Some(own.serial) == serial) else {
            return Ok(false);
        };
        let attempts = session.in_flight.as_ref().map_or(0, |one| one.attempts);
        if session.state == State::Closing && attempts >= worker.config().sd.attempts {
            return Ok(true);
        }
        session.is_in_doubt = true;
        session.expect(tdf::overdue(worker));
        if let Some(one) = &mut session.in_flight {
            one.attempts = attempts;
        }
        session.put(association);
        Ok::<_, Infallible>(false)
    };
    // The write sends what it plans.
    match change::rewrite(worker, association.id, step).await {
        Ok(Some(rewritten)) if rewritten.answer => {
            // No CCR has ended the session in time.
            worker.count(Event::SdLeft);
            drop(change::remove(worker, association.id, Kind::Tdf, &Value::Null).await);
        }
        Ok(_) => worker.count(Event::SdRetried),
        Err(fault) => tracing::debug!(?fault, "a request to a TDF was not sent again"),
    }
}
