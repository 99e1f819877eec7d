//! Rx (TS 29.214): AF sessions over Diameter, bound to sessions of SMFs and PCEFs as those of N5 are.

use diameter::endpoint::Request;
use diameter::proto::known::{self, VENDOR_3GPP, application, command};
use diameter::proto::{Fault, Message, MessageBuilder, MessageMut, ResultCode};
use pcc::media;
use pcc::rx::{FEATURES, RequestKind, put_access};

use crate::association::af::{self, AfSession, RxPeer};
use crate::association::{Association, AssociationId};
use crate::binding::{self, Unbound};
use crate::change::{self, ChangeFault};
use crate::events::Event;
use crate::worker::Worker;

/// Whether a request begins a session.
pub(crate) fn begins(message: &Message) -> bool {
    let kind = message.get(known::RX_REQUEST_TYPE).ok().flatten();
    message.command() == command::AA && kind.is_none_or(|kind| kind == 0)
}

/// AA-Request (TS 29.214 §4.4.1, §4.4.2).
pub(crate) async fn aa(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let aar = pcc::rx::Request::read(request.message.view())?;
    if aar.kind == Some(RequestKind::Restoration) {
        return restoration(worker, request, &aar).await;
    }
    let known = find(worker, &aar.session).await?;
    let (id, session) = match known {
        Some((id, mut session)) => {
            media::merge(&mut session.request, &aar.document);
            (id, session)
        }
        None if aar.kind == Some(RequestKind::Update) => return Err(unknown()),
        None => begin(worker, request, &aar).await?,
    };
    let bound = change::parts(worker, id, async |association: &mut Association| {
        binding::check_services(worker, association, &session.request).await?;
        binding::attach(worker, association, &session)
    });
    let bound = match bound.await {
        Ok(Some(bound)) => bound,
        Ok(None) => return Err(unavailable("the session of the UE has ended")),
        Err(ChangeFault::Refused(refusal)) => return Err(pcc::rx::fault(&refusal)),
        Err(ChangeFault::Store(error)) => return Err(crate::gx::failed(&error)),
        Err(ChangeFault::Overtaken) => {
            return Err(Fault::new(
                ResultCode::TOO_BUSY,
                "others keep changing this session",
            ));
        }
    };
    worker.count(match aar.kind {
        Some(RequestKind::Update) => Event::AfUpdated,
        _ => Event::AfCreated,
    });
    let mut answer = aa_answer(request, &aar)?;
    put_access(&mut answer, &bound.after.context);
    finish(answer)
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
    };
    let session = AfSession::new(worker.random().next(), aar.document.clone(), Some(peer));
    Ok((id, session))
}

/// The association of an Rx session, and the session.
async fn find(worker: &Worker, session_id: &str) -> Result<Option<(AssociationId, AfSession)>, Fault> {
    let found = binding::named(worker, &af::rx_name(session_id)).await;
    let found = found.map_err(|error| crate::gx::failed(&error))?;
    Ok(found.and_then(|stored| {
        let is_own = |session: &AfSession| session.rx.as_ref().is_some_and(|rx| rx.session == session_id);
        let session = af::sessions(&stored.record).find(is_own)?;
        Some((stored.record.id, session))
    }))
}

/// Session-Termination-Request (TS 29.214 §4.4.4).
pub(crate) async fn termination(worker: &Worker, request: &Request) -> Result<MessageMut, Fault> {
    let session_id = request.message.require(known::SESSION_ID)?;
    let Some((id, session)) = find(worker, session_id).await? else {
        let confirmed = worker.repository().confirm_end(session_id).await;
        return match confirmed.map_err(|error| crate::gx::failed(&error))? {
            true => finish(request.answer(ResultCode::SUCCESS)),
            false => Err(unknown()),
        };
    };
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
