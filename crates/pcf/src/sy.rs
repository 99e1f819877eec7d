//! Sy (TS 29.219): what OCSs notify of. The requests of the PCF to OCSs are in `pds`.

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode};
use pcc::sy::{is_abort, read_status};
use serde_json::Map;

use crate::association::Association;
use crate::binding;
use crate::change::ChangeFault;
use crate::events::Event;
use crate::gx;
use crate::pds::{self, Held};
use crate::reassessment;
use crate::worker::Worker;

/// Spending-Status-Notification-Request: policy counters have changed (TS 29.219 §4.5.2), or the OCS wants the Sy session to
/// end (§4.5.4).
pub(crate) async fn notification(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let message = request.message.view();
    let (changed, aborts) = (read_status(message)?, is_abort(message)?);
    let name = pds::sy_name(message.require(known::SESSION_ID)?);
    let found = binding::named(worker, &name).await;
    let stored = found.map_err(|error| gx::failed(&error))?.ok_or_else(unknown)?;
    worker.count(if aborts {
        Event::SyAborted
    } else {
        Event::SyNotified
    });
    let step = |association: &mut Association| {
        let mut held = Held::of(association);
        match aborts {
            true => {
                held.sy = None;
                held.counters = Map::new();
            }
            false => held.counters.extend(changed.clone()),
        }
        held.keep(association);
    };
    match reassessment::reassess(worker, stored.record.id, "counters", step).await {
        Ok(true) => {}
        Ok(false) => return Err(unknown()),
        Err(ChangeFault::Store(error)) => return Err(gx::failed(&error)),
        Err(ChangeFault::Overtaken) => {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                "others keep changing this session",
            ));
        }
        Err(ChangeFault::Refused(_)) => {
            return Err(Fault::new(
                ResultCode::UNABLE_TO_COMPLY,
                "the policy cannot be evaluated",
            ));
        }
    }
    if let Some(session) = Held::of(&stored.record).sy.filter(|_| aborts) {
        pds::finish(worker, &session);
    }
    let answer = request.answer(ResultCode::SUCCESS);
    let too_long = |_| Fault::new(ResultCode::UNABLE_TO_COMPLY, "the answer does not fit a message");
    answer.finish().map_err(too_long)
}

fn unknown() -> Fault {
    Fault::new(
        ResultCode::UNKNOWN_SESSION_ID,
        "there is no Sy session of this Session-Id",
    )
}
