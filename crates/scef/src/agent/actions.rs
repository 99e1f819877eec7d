//! DAR: device triggers of servers that speak Diameter (TS 29.368 §5.2).

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{Fault, MessageMut, ResultCode};
use sbi::problem::{Cause, Problem};
use store::{Condition, Stored};

use super::{REPEATED, unable};
use crate::api::triggers;
use crate::clock::after;
use crate::events::Event;
use crate::record::{Answered, Trigger};
use crate::shape;
use crate::spans::Caller;
use crate::tsp::{self, Action, Asked, status};
use crate::worker::Worker;

/// Carries a DAR out; a duplicate gets the first status, or TEMPORARYERROR before there is one.
pub(super) async fn take(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let asked = tsp::read(&request.message)?;
    let repository = worker.repository();
    let mut first = Answered {
        origin: asked.scs.host.clone(),
        end_to_end: request.message.end_to_end(),
        code: status::TEMPORARY_ERROR,
        vendor: application::TSP,
        expires: after(REPEATED),
    };
    let inserted = repository.insert(&repository.answers, &first).await;
    if !inserted.map_err(unable)? {
        worker.count(Event::Duplicate);
        let key = Answered::key_of(&first.origin, first.end_to_end);
        let known = repository.answers.get(&key).await.map_err(unable)?;
        let code = known.map_or(status::TEMPORARY_ERROR, |known| known.code);
        return answer(request, &asked, code);
    }
    first.code = match carry_out(worker, &asked).await {
        Ok(()) => status::SUCCESS,
        Err(problem) => {
            tracing::debug!(status = %problem.status(), cause = ?problem.details().cause, "a request of an SCS was refused");
            tsp::status_of(&problem, asked.action)
        }
    };
    let mut batch = store::Batch::default();
    batch.put(&repository.answers, &first, Condition::Always);
    repository.commit(batch).await.map_err(unable)?;
    answer(request, &asked, first.code)
}

fn answer(request: &Request, asked: &Asked, status: u32) -> Result<MessageMut, Fault> {
    let mut answer = request.answer(ResultCode::SUCCESS);
    // NO_STATE_MAINTAINED (RFC 6733 §8.11).
    answer.put(known::AUTH_SESSION_STATE, 1);
    tsp::put_status(&mut answer, asked, status);
    answer
        .finish()
        .map_err(|error| Fault::new(ResultCode::UNABLE_TO_COMPLY, error.to_string()))
}

async fn carry_out(worker: &Worker, asked: &Asked) -> Result<(), Problem> {
    let holder = tsp::holder(&asked.scs);
    if !worker.admits(&holder) {
        worker.count(Event::RateExceeded);
        return Err(Problem::new(Cause::TooManyRequests));
    }
    let caller = Caller::default();
    if asked.action == Action::Recall {
        let found = existing(worker, &holder, asked.old).await?;
        return triggers::withdraw(worker, caller, &found).await;
    }
    shape::trigger_of_scs(&asked.document)?;
    let (document, scs) = (asked.document.clone(), Some(asked.scs.clone()));
    if asked.action == Action::Replace {
        let found = existing(worker, &holder, asked.old).await?;
        return triggers::exchange(worker, caller, found, document, scs)
            .await
            .map(drop);
    }
    triggers::accept(worker, caller, &holder, document, scs)
        .await
        .map(drop)
}

/// The pending trigger of an SCS with this Reference-Number.
async fn existing(worker: &Worker, holder: &str, reference: Option<u32>) -> Result<Stored<Trigger>, Problem> {
    let found = triggers::find_by_holder(worker, holder).await?;
    let mut pending = found.into_iter().filter(|one| !one.pending);
    let known = |one: &Stored<Trigger>| one.scs_of_tsp.as_ref().map(|scs| scs.reference);
    let found = pending.find(|one| reference.is_some() && known(one) == reference);
    found.ok_or_else(triggers::ended)
}
