//! Rx (TS 29.214): AF sessions over Diameter, bound to sessions of SMFs and PCEFs as those of N5 are.

use std::time::Instant;

use diameter::endpoint::Request;
use diameter::proto::known::{self, VENDOR_3GPP, application, command};
use diameter::proto::{Fault, Message, MessageBuilder, MessageMut, ResultCode};
use pcc::media;
use pcc::rx::{FEATURES, RequestKind, put_access};
use store::Stored;

use crate::association::af::{self, AfSession, RxPeer};
use crate::association::{Association, AssociationId};
use crate::binding::{self, Unbound};
use crate::change::{self, ChangeFault, Rewritten};
use crate::events::Event;
use crate::owner;
use crate::worker::Worker;

/// Whether a request begins a session.
pub(crate) fn begins(message: &Message) -> bool {
    let kind = message.get(known::RX_REQUEST_TYPE).ok().flatten();
    message.command() == command::AA && kind.is_none_or(|kind| kind == 0)
}

/// Why an AAR changes nothing.
enum Unchanged {
    /// The AF session has ended since it was found.
    Ended,
    /// It is another node's.
    Foreign,
    /// What the AF asks for is refused.
    Refused(pcc::Refusal),
}

/// AA-Request (TS 29.214 §4.4.1, §4.4.2).
pub(crate) async fn aa(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let aar = pcc::rx::Request::read(request.message.view())?;
    if aar.kind == Some(RequestKind::Restoration) {
        return restoration(worker, request, &aar).await;
    }
    let mut attempt = 0;
    let bound = loop {
        change::pause(worker, attempt).await;
        attempt += 1;
        let written = write(worker, request, &aar).await?;
        match written {
            Ok(Some(bound)) => break bound,
            Ok(None) => return Err(unavailable("the session of the UE has ended")),
            // Another copy of the request has made the session at another session of the UE.
            Err(ChangeFault::Store(error)) if is_claimed(&error) && attempt < change::TRIES => {}
            Err(fault) => return Err(unchanged(worker, fault)),
        }
    };
    worker.count(match bound.answer {
        Done::Begun => Event::AfCreated,
        Done::Changed => Event::AfUpdated,
    });
    let mut answer = aa_answer(request, &aar)?;
    put_access(&mut answer, &bound.after.context);
    finish(answer)
}

/// What an AAR has done.
enum Done {
    Begun,
    Changed,
}

type Written = Result<Option<Rewritten<Done>>, ChangeFault<Unchanged>>;

/// Begins or changes the AF session in the turn of the association: of several requests in flight none is lost, and what an STR has
/// ended does not stand again.
async fn write(worker: &Worker, request: &Request, aar: &pcc::rx::Request) -> Result<Written, Fault> {
    let known = find(worker, request, &aar.session).await?.map(|(id, _)| id);
    let (id, new) = match known {
        Some(id) => (id, None),
        None if aar.kind == Some(RequestKind::Update) => return Err(unknown()),
        None if worker.finished().has(&aar.session, Instant::now()) => return Err(unknown()),
        None => {
            let (id, session) = begin(worker, request, aar).await?;
            (id, Some(session))
        }
    };
    let step = async |association: &mut Association| {
        let (session, done) = match (af::rx_session(association, &aar.session), &new) {
            (Some(held), _) if !owns(request, &held) => return Err(Unchanged::Foreign),
            (Some(mut held), _) => {
                media::merge(&mut held.request, &aar.document);
                (held, Done::Changed)
            }
            (None, Some(new)) => {
                let checked = binding::check_emergency(worker, association, &new.request);
                checked.map_err(Unchanged::Refused)?;
                (new.clone(), Done::Begun)
            }
            (None, None) => return Err(Unchanged::Ended),
        };
        let request = &session.request;
        let mut checked = binding::check_services(worker, association, request).await;
        if checked.is_ok() {
            checked = binding::ask_project(worker, association, (None, request)).await;
        }
        let attached = checked.and_then(|()| binding::attach(worker, association, &session));
        attached.map(|()| done).map_err(Unchanged::Refused)
    };
    Ok(change::parts(worker, id, step).await)
}

/// Whether another association has the Session-Id.
fn is_claimed(error: &store::Error) -> bool {
    let conflict = match error {
        store::Error::Conflict { conflict, .. } => conflict,
        _ => return false,
    };
    matches!(conflict, store::Conflict::Unique { .. })
}

fn unchanged(worker: &Worker, fault: ChangeFault<Unchanged>) -> Fault {
    match fault {
        ChangeFault::Refused(Unchanged::Refused(refusal)) => pcc::rx::fault(&refusal),
        ChangeFault::Refused(Unchanged::Ended) => unknown(),
        ChangeFault::Refused(Unchanged::Foreign) => {
            worker.count(Event::DiameterForeign);
            unknown()
        }
        ChangeFault::Store(error) => crate::gx::failed(&error),
        ChangeFault::Overtaken => Fault::new(ResultCode::TOO_BUSY, "others keep changing this session"),
    }
}

/// Whether a request comes from the AF of a session.
fn owns(request: &Request, session: &AfSession) -> bool {
    session
        .rx
        .as_ref()
        .is_some_and(|rx| owner::owns(request, &rx.host))
}

/// AA-Answer with success.
fn aa_answer(request: &Request, aar: &pcc::rx::Request) -> Result<MessageBuilder, Fault> {
    let mut answer = request.answer(ResultCode::SUCCESS);
    answer.put(known::AUTH_APPLICATION_ID, application::RX);
    // AFs with the AA command of RFC 7155 require it in the answer.
    if let Some(kind) = request.message.avps().find(known::AUTH_REQUEST_TYPE)? {
        answer.copy(&kind);
    }
    // An AF that names its features learns which of them the PCF has (TS 29.214 §5.4.1).
    if let Some(features) = aar.features {
        FEATURES.common(features).put(&mut answer);
    }
    Ok(answer)
}

/// P-CSCF restoration (TS 29.214 §4.4.7), which makes no session: both sides say so by Auth-Session-State.
async fn restoration(
    worker: &Worker,
    request: &Request,
    aar: &pcc::rx::Request,
) -> Result<MessageMut, Fault> {
    /// NO_STATE_MAINTAINED (RFC 6733 §8.11).
    const NO_STATE: i32 = 1;
    if !aar.has_address() && aar.document.get("supi").is_none() {
        return Err(Fault::missing(known::FRAMED_IP_ADDRESS));
    }
    crate::restoration::restore(worker, &aar.document)
        .await
        .map_err(unbound)?;
    let mut answer = aa_answer(request, aar)?;
    answer.put(known::AUTH_SESSION_STATE, NO_STATE);
    finish(answer)
}

fn unbound(unbound: Unbound) -> Fault {
    match unbound {
        Unbound::Refused(refusal) => pcc::rx::fault(&refusal),
        Unbound::Store(error) => crate::gx::failed(&error),
    }
}

async fn begin(
    worker: &Worker,
    request: &Request,
    aar: &pcc::rx::Request,
) -> Result<(AssociationId, AfSession), Fault> {
    if !aar.has_address() {
        return Err(Fault::missing(known::FRAMED_IP_ADDRESS));
    }
    let id = binding::bind(worker, &aar.document).await.map_err(unbound)?;
    let message = &request.message;
    let host = message.require(known::ORIGIN_HOST)?.to_owned();
    let up = request.from.peer();
    let peer = RxPeer {
        session: aar.session.clone(),
        realm: message.require(known::ORIGIN_REALM)?.to_owned(),
        peer: up.map_or_else(|| host.clone(), |up| up.remote.origin.host.clone()),
        host,
        claimed: true,
    };
    let session = AfSession::new(worker.random().next(), aar.document.clone(), Some(peer));
    Ok((id, session))
}

/// The association of an Rx session, and the session. To other nodes than the one that began it there is none.
async fn find(
    worker: &Worker,
    request: &Request,
    session_id: &str,
) -> Result<Option<(AssociationId, AfSession)>, Fault> {
    let found = worker.repository().of_name(&af::rx_name(session_id)).await;
    let found = found.map_err(|error| crate::gx::failed(&error))?;
    let session = |stored: Stored<Association>| {
        let session = af::rx_session(&stored.record, session_id)?;
        Some((stored.record.id, session))
    };
    let found = found.into_iter().find_map(session);
    if found.as_ref().is_some_and(|(_, session)| !owns(request, session)) {
        worker.count(Event::DiameterForeign);
        return Err(unknown());
    }
    Ok(found)
}

/// Session-Termination-Request (TS 29.214 §4.4.4).
pub(crate) async fn termination(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let session_id = request.message.require(known::SESSION_ID)?;
    let Some((id, session)) = find(worker, request, session_id).await? else {
        let ended = af::ended_rx_name(request.message.require(known::ORIGIN_HOST)?, session_id);
        let confirmed = worker.repository().confirm_end(&ended).await;
        return match confirmed.map_err(|error| crate::gx::failed(&error))? {
            true => finish(request.answer(ResultCode::SUCCESS)),
            false => Err(unknown()),
        };
    };
    worker.finished().note(session_id, Instant::now());
    let removed = change::parts(worker, id, async |association: &mut Association| {
        af::remove(association, &session.id).map(drop).ok_or(())
    });
    match removed.await {
        Ok(Some(_)) => {}
        Ok(None) | Err(ChangeFault::Refused(())) => return Err(unknown()),
        Err(ChangeFault::Store(error)) => return Err(crate::gx::failed(&error)),
        Err(ChangeFault::Overtaken) => {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                "others keep changing this session",
            ));
        }
    }
    worker.count(Event::AfDeleted);
    finish(request.answer(ResultCode::SUCCESS))
}

fn unknown() -> Fault {
    Fault::new(
        ResultCode::UNKNOWN_SESSION_ID,
        "no AF session has this Session-Id",
    )
}

/// IP-CAN_SESSION_NOT_AVAILABLE (TS 29.214 §5.5.3).
fn unavailable(reason: &'static str) -> Fault {
    Fault::new(ResultCode(pcc::Cause::SessionNotAvailable.code()), reason).of_vendor(VENDOR_3GPP)
}

fn finish(answer: MessageBuilder) -> Result<MessageMut, Fault> {
    let too_long = |_| Fault::new(ResultCode::UNABLE_TO_COMPLY, "the answer does not fit a message");
    answer.finish().map_err(too_long)
}
