//! DRR: what became of device triggers (TS 29.337 §6.2.5).

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode};
use store::Batch;

use super::senders::{self, Role};
use super::{unable, written};
use crate::events::Event;
use crate::record::Trigger;
use crate::repository::delete_as_read;
use crate::worker::Worker;
use crate::{identity, outcomes, t4, tsp};

/// Takes the report of an SMS-SC, which ends the trigger: it is stored for the SCS/AS before the answer.
pub(super) async fn take(worker: &Worker, request: &Request) -> Result<Option<MessageMut>, Fault> {
    let message = &request.message;
    let reference = message.require(known::REFERENCE_NUMBER)?;
    let outcome = message.require(known::SM_DELIVERY_OUTCOME_T4)?;
    let imsi = identity::imsi(message.require(known::USER_IDENTIFIER)?)?;
    let repository = worker.repository();
    let found = repository
        .triggers
        .find(Trigger::REFERENCE, &reference.to_be_bytes(), 1);
    let found = found.await.map_err(unable)?.into_iter().next();
    let of_device = |one: &Trigger| imsi.as_ref().is_none_or(|imsi| *imsi == one.imsi);
    let Some(found) = found.filter(|one| of_device(one)) else {
        worker.count(Event::UnknownReference);
        let code = ResultCode::UNABLE_TO_COMPLY;
        return Err(Fault::new(
            code,
            "no trigger of this device has this Reference-Number",
        ));
    };
    if !senders::is_from(request, worker.config(), Role::SmsSc, found.holder())? {
        return Err(senders::refused(worker, Role::SmsSc));
    }
    let scef = worker.shared();
    let mut batch = Batch::default();
    delete_as_read(&mut batch, &repository.triggers, &found);
    let what = (t4::result_of(outcome), tsp::outcome_of(outcome));
    let notice = outcomes::add(scef, &mut batch, &found, what);
    let answer = written(worker, request, batch, notice.into_iter().collect()).await?;
    if answer.is_some() {
        scef.triggers.sub(&found.scs);
        worker.count(Event::TriggerReported);
    }
    Ok(answer)
}
