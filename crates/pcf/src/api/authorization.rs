//! Npcf_PolicyAuthorization: `/app-sessions` (TS 29.514 §5.3).

use http::{Method, StatusCode};
use pcc::{Refusal, event, media};
use sbi::name::LOCATION;
use sbi::problem::Problem;
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::owner::Consumer;
use super::{bind, body_of, check_size, negotiate, object_of, sender_of};
use crate::activity::trail;
use crate::association::af::{self, AfSession};
use crate::association::{Association, AssociationId};
use crate::binding::{self, Unbound};
use crate::change::{self, Rewritten};
use crate::events::Event;
use crate::notices::APP_SESSIONS;
use crate::restoration;
use crate::shape::{AF_DELETE, AF_EVENTS, AF_PATCH, AF_REQUEST, AF_SESSION, PCSCF_RESTORATION};
use crate::worker::Worker;

/// The features of this PCF (TS 29.514 §5.8): `InfluenceOnTrafficRouting`, `SponsoredConnectivity`,
/// `MediaComponentVersioning`, `NetLoc`, `ProvAFsignalFlow`, `ResourceSharing`, `RAN-NAS-Cause`.
const FEATURES: &[usize] = &[1, 2, 3, 6, 7, 8, 14];

const SERVICE: &str = "npcf-policyauthorization";

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.cause.status()).unwrap_or(StatusCode::FORBIDDEN);
        let problem = Problem::with_cause(status, refusal.cause.name()).detail(refusal.detail.clone());
        Self::Request(if refusal.at.is_empty() {
            problem
        } else {
            problem.invalid_param(format!("/ascReqData{}", refusal.at), refusal.detail)
        })
    }
}

impl From<Unbound> for Fault {
    fn from(unbound: Unbound) -> Self {
        match unbound {
            Unbound::Refused(refusal) => refusal.into(),
            Unbound::Store(error) => Self::Store(error),
        }
    }
}

fn not_found(id: &str) -> Fault {
    let shown: String = id.chars().take(64).collect();
    let problem = Problem::with_cause(StatusCode::NOT_FOUND, "APPLICATION_SESSION_CONTEXT_NOT_FOUND");
    Fault::Request(problem.detail(format!("application session {shown} does not exist")))
}

/// `/app-sessions`: the session is bound to that of the UE, and its rules go to the SMF (§4.2.2).
pub(crate) async fn collection(worker: &Worker, request: &Request) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, SERVICE)?;
    let mut body = body_of(worker, request, &AF_SESSION)?;
    let asked = body.remove("ascReqData").unwrap_or_default();
    // As a stored request is: without nulls.
    let mut stored = json!({});
    media::merge(&mut stored, &asked);
    check(worker, request, &mut stored)?;
    if let Value::Object(members) = &mut stored
        && let Some(features) = negotiate(members, FEATURES)
    {
        members.insert("suppFeat".to_owned(), features.to_string().into());
    }
    let id = binding::bind(worker, &stored).await?;
    let new = AfSession::of_n5(worker.random().next(), stored, consumer.instance());
    let bound = change::parts(worker, id, async |association: &mut Association| {
        let mut session = new.clone();
        let met = met(association, &mut session);
        binding::check_emergency(worker, association, &session.request)?;
        binding::check_services(worker, association, &session.request).await?;
        binding::ask_project(worker, association, (None, &session.request)).await?;
        binding::attach(worker, association, &session)?;
        Ok::<_, Fault>((session, met))
    });
    let bound = bound.await?.ok_or_else(|| Fault::from(gone()))?;
    let (session, met) = &bound.answer;
    worker.count(Event::AfCreated);
    if request.is_given_up() {
        // The AF does not learn the URI, so that it could never end the session.
        end(
            worker,
            bound.after.id,
            &session.id,
            &af::name(&bound.after, session),
        )
        .await?;
    }
    let path = format!("{APP_SESSIONS}/{}", af::name(&bound.after, session));
    let mut body = representation(&bound.after, session);
    put_met(&mut body, met.clone(), &format!("{}{path}", worker.root()));
    let mut response = sbi::json::response(StatusCode::CREATED, &body);
    // The root was parsed as a URI, the rest is hexadecimal digits.
    response
        .headers_mut()
        .set_printed(LOCATION, format!("{}{path}", worker.root()));
    bind(worker, &mut response);
    Ok(response)
}

/// The events that are met when an AF subscribes to them; of those that it wants once it is notified by that.
fn met(association: &Association, session: &mut AfSession) -> Option<Value> {
    let met = event::met(&session.id, &session.request, &association.context)?;
    session.note(&met);
    Some(met)
}

/// Adds the events that are met already to `AppSessionContext` (`evsNotif`).
fn put_met(body: &mut Value, met: Option<Value>, uri: &str) {
    if let Some(mut met) = met {
        met["evSubsUri"] = format!("{uri}/events-subscription").into();
        body["evsNotif"] = met;
    }
}

/// `/app-sessions/pcscf-restoration` (§5.3.2.4.2): no session is created.
pub(crate) async fn restoration(worker: &Worker, request: &Request) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let body = Value::Object(body_of(worker, request, &PCSCF_RESTORATION)?);
    restoration::restore(worker, &body).await?;
    Ok(no_content())
}

/// The session of the UE ended while it was bound.
fn gone() -> Refusal {
    Refusal {
        cause: pcc::Cause::SessionNotAvailable,
        at: String::new(),
        detail: "the session of the UE has ended".to_owned(),
    }
}

/// `/app-sessions/{appSessionId}` (§4.2.3, §4.2.5).
pub(crate) async fn individual(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    match request.method().as_str() {
        "GET" => {
            let (association, session) = stored(worker, request, id).await?;
            Ok(sbi::json::response(
                StatusCode::OK,
                &representation(&association, &session),
            ))
        }
        "PATCH" => {
            let mut body = object_of(worker, request, "application/merge-patch+json", &AF_PATCH)?;
            let update = body.remove("ascReqData").unwrap_or_default();
            let (rewritten, session) =
                modify(worker, (request, id), |request| media::merge(request, &update)).await?;
            worker.count(Event::AfUpdated);
            let mut body = representation(&rewritten.after, &session);
            let uri = format!("{}{APP_SESSIONS}/{id}", worker.root());
            put_met(&mut body, rewritten.answer, &uri);
            Ok(sbi::json::response(StatusCode::OK, &body))
        }
        _ => Ok(method_not_allowed(request.method(), "GET, PATCH")),
    }
}

/// `/app-sessions/{appSessionId}/delete` (§4.2.4).
pub(crate) async fn delete(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    if !request.body.is_empty() {
        body_of(worker, request, &AF_DELETE)?;
    }
    let (association, session) = match stored(worker, request, id).await {
        Ok((association, session)) => (association.id, session.id),
        // It has ended with the session of its UE, which the AF confirms.
        Err(Fault::Request(problem)) if problem.status() == StatusCode::NOT_FOUND => {
            return match worker.repository().confirm_end(id).await? {
                true => Ok(no_content()),
                false => Err(problem.into()),
            };
        }
        Err(fault) => return Err(fault),
    };
    end(worker, association, &session, id).await?;
    Ok(no_content())
}

/// Ends an AF session, with what was installed for it. `id`: its `appSessionId`.
async fn end(worker: &Worker, association: AssociationId, session: &str, id: &str) -> Result<(), Fault> {
    let removed = change::parts(worker, association, async |association: &mut Association| {
        af::remove(association, session)
            .map(drop)
            .ok_or_else(|| not_found(id))
    });
    match removed.await? {
        Some(_) => worker.count(Event::AfDeleted),
        None if worker.repository().confirm_end(id).await? => {}
        None => return Err(not_found(id)),
    }
    Ok(())
}

/// `/app-sessions/{appSessionId}/events-subscription` (§4.2.6, §4.2.7).
pub(crate) async fn events(worker: &Worker, request: &Request, id: &str) -> Result<Response, Fault> {
    match request.method().as_str() {
        "PUT" => {
            let subscription = Value::Object(body_of(worker, request, &AF_EVENTS)?);
            let (rewritten, session) = modify(worker, (request, id), |request| {
                request["evSubsc"] = subscription.clone();
            })
            .await?;
            let before = af::session(&rewritten.before, &session.id);
            let existed = before.is_some_and(|before| before.request.get("evSubsc").is_some());
            let location = format!("{}{APP_SESSIONS}/{id}/events-subscription", worker.root());
            // `EventsSubscPutData`: the subscription with the notification of what is met already.
            let mut body = subscription;
            if let (Some(Value::Object(met)), Value::Object(body)) = (rewritten.answer, &mut body) {
                body.extend(met);
                body.insert("evSubsUri".to_owned(), location.as_str().into());
            }
            if existed {
                return Ok(sbi::json::response(StatusCode::OK, &body));
            }
            let mut response = sbi::json::response(StatusCode::CREATED, &body);
            response.headers_mut().set_printed(LOCATION, location);
            Ok(response)
        }
        "DELETE" => {
            let (rewritten, session) = modify(worker, (request, id), |request| {
                if let Value::Object(members) = request {
                    members.shift_remove("evSubsc");
                }
            })
            .await?;
            let before = af::session(&rewritten.before, &session.id);
            match before.is_some_and(|before| before.request.get("evSubsc").is_some()) {
                true => Ok(no_content()),
                false => Err(not_found(&format!("{id}/events-subscription"))),
            }
        }
        _ => Ok(method_not_allowed(request.method(), "PUT, DELETE")),
    }
}

/// Changes what an AF session asks for, and the rules with it: the events that are met where it subscribes to others.
async fn modify(
    worker: &Worker,
    (sent, id): (&Request, &str),
    change: impl Fn(&mut Value),
) -> Result<(Rewritten<Option<Value>>, AfSession), Fault> {
    let (association, _) = stored(worker, sent, id).await?;
    let step = async |association: &mut Association| {
        let mut session = af::of_app_session(association, id).ok_or_else(|| not_found(id))?;
        let before = session.request.get("evSubsc").cloned();
        let earlier = binding::has_project(worker).then(|| session.request.clone());
        change(&mut session.request);
        check(worker, sent, &mut session.request)?;
        // A new subscription has its own first notification.
        let is_new = session.request.get("evSubsc") != before.as_ref();
        let mut met_now = None;
        if is_new {
            session.notified.clear();
            met_now = met(association, &mut session);
        }
        binding::check_services(worker, association, &session.request).await?;
        let asked = (earlier.as_ref(), &session.request);
        binding::ask_project(worker, association, asked).await?;
        binding::attach(worker, association, &session)?;
        Ok::<_, Fault>(met_now)
    };
    let rewritten = change::parts(worker, association.id, step).await?;
    let rewritten = rewritten.ok_or_else(|| not_found(id))?;
    let session = af::of_app_session(&rewritten.after, id).ok_or_else(|| not_found(id))?;
    Ok((rewritten, session))
}

/// The AF session of an `appSessionId` with its association, where the sender may use it. Those of Rx are resources of Rx alone.
async fn stored(worker: &Worker, request: &Request, id: &str) -> Result<(Association, AfSession), Fault> {
    let association = match legacy(id) {
        Some(association) => worker.repository().get(association).await?,
        None => binding::named(worker, &af::n5_name(id)).await?,
    };
    let association = association.ok_or_else(|| not_found(id))?.record;
    let session = af::of_app_session(&association, id).ok_or_else(|| not_found(id))?;
    let consumer = Consumer::of(worker, request, SERVICE)?;
    consumer.may_use(worker, session.consumer.as_deref()).await?;
    trail::concerns(&association);
    Ok((association, session))
}

/// The association that an `appSessionId` of an earlier release names.
fn legacy(id: &str) -> Option<AssociationId> {
    AssociationId::parse(id.split_once('.')?.0)
}

/// Refuses what an AF asks for, or what a patch makes of it, where it is not of its shape or larger than a body may be:
/// it is kept, it goes to the SMF, and its members are added to by each patch.
fn check(worker: &Worker, sent: &Request, request: &mut Value) -> Result<(), Fault> {
    let settled = worker.settle(&AF_REQUEST, request, &sender_of(sent));
    settled.map_err(|mut faults| {
        for fault in &mut faults {
            fault.pointer.insert_str(0, "/ascReqData");
        }
        Fault::Shape(faults)
    })?;
    check_size(worker, request)
}

/// `AppSessionContext`.
fn representation(association: &Association, session: &AfSession) -> Value {
    let mut answer = Map::new();
    if let Some(features) = session.request.get("suppFeat") {
        answer.insert("suppFeat".to_owned(), features.clone());
    }
    // TS 29.514 §4.2.2.17: the AF wants to know who the UE is.
    if session.request.get("afReqData").is_some() {
        let known = ["supi", "gpsi", "pei"];
        let known = known
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), association.context.get(name)?.clone())));
        answer.insert("ueIds".to_owned(), json!([known.collect::<Map<_, _>>()]));
    }
    json!({"ascReqData": session.request, "ascRespData": answer})
}
