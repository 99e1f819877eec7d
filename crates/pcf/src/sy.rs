//! Sy (TS 29.219): what OCSs notify of. The requests of the PCF to OCSs are in `pds`.

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode};
use pcc::sy::{is_abort, read_status};

use crate::association::Association;
use crate::change::ChangeFault;
use crate::events::Event;
use crate::gx;
use crate::owner;
use crate::pds::{self, Held};
use crate::pre::Refusal;
use crate::reassessment;
use crate::worker::Worker;

/// Spending-Status-Notification-Request: policy counters have changed (TS 29.219 §4.5.2), or the OCS wants the Sy session to
/// end (§4.5.4). It concerns all sessions of the subscriber; the OCS repeats it where one of them was not decided again.
pub(crate) async fn notification(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let message = request.message.view();
    let (changed, aborts) = (read_status(message)?, is_abort(message)?);
    let session_id = message.require(known::SESSION_ID)?;
    let sessions = worker.repository().of_name(&pds::sy_name(session_id)).await;
    let sessions = sessions.map_err(|error| gx::failed(&error))?;
    let first = sessions.first().ok_or_else(unknown)?;
    let ocs = Held::of(&first.record).sy.map(|session| session.host);
    if ocs.is_some_and(|host| !host.is_empty() && !owner::owns(request, &host)) {
        worker.count(Event::DiameterForeign);
        return Err(unknown());
    }
    worker.count(if aborts {
        Event::SyAborted
    } else {
        Event::SyNotified
    });
    let supi = first.record.text_of("supi").unwrap_or_default();
    let share = match aborts {
        true => pds::remove(worker, supi, session_id)
            .await
            .map(|()| None)
            .map_err(Into::into),
        false => {
            pds::report(worker, supi, session_id, |share| {
                share.counters.extend(changed.clone());
            })
            .await
        }
    };
    let share = share.map_err(|fault| fault_of(&fault))?;
    let step = |association: &mut Association| {
        let mut held = Held::of(association);
        match &share {
            None if !aborts => {
                // A session of an earlier release, which has a Sy session of its own.
                held.counters.extend(changed.clone());
                held.keep(association);
            }
            share => pds::adopt(association, share.as_ref()),
        }
    };
    for stored in &sessions {
        let decided = reassessment::reassess(worker, stored.record.id, "counters", step).await;
        decided.map_err(|fault| fault_of(&fault))?;
    }
    if let Some(session) = Held::of(&first.record).sy.filter(|_| aborts) {
        pds::finish(worker, &session);
    }
    let answer = request.answer(ResultCode::SUCCESS);
    let too_long = |_| Fault::new(ResultCode::UNABLE_TO_COMPLY, "the answer does not fit a message");
    answer.finish().map_err(too_long)
}

fn fault_of(fault: &ChangeFault<Refusal>) -> Fault {
    match fault {
        ChangeFault::Store(error) => gx::failed(error),
        ChangeFault::Overtaken => Fault::new(ResultCode::TOO_BUSY, "others keep changing this session"),
        ChangeFault::Refused(_) => Fault::new(ResultCode::UNABLE_TO_COMPLY, "the policy cannot be evaluated"),
    }
}

fn unknown() -> Fault {
    Fault::new(
        ResultCode::UNKNOWN_SESSION_ID,
        "there is no Sy session of this Session-Id",
    )
}
