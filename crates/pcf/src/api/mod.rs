//! One file per service of the PCF: parse the request, change the association, write the answer.

pub(crate) mod am;
pub(crate) mod authorization;
pub(crate) mod bdt;
pub(crate) mod callbacks;
pub(crate) mod fault;
pub(crate) mod n1;
mod owner;
pub(crate) mod policies;
pub(crate) mod sm;
pub(crate) mod ue;

use std::rc::Rc;

use http::StatusCode;
use model::SupportedFeatures;
use model::shape::Shape;
use sbi::headers::{Binding, BindingLevel, RequestInfo, RoutingBinding, SbiHeader as _, SenderTimestamp};
use sbi::name::{LOCATION, USER_AGENT};
use sbi::problem::Problem;
use sbi::{Request, Response};
use serde_json::{Map, Value};

use self::fault::Fault;
use crate::association::ledger::Draft;
use crate::association::repetition::Mark;
use crate::association::{Association, AssociationId, Kind, repetition};
use crate::change::{self, ChangeFault};
use crate::notices;
use crate::shape::unchangeable;
use crate::worker::Worker;

/// The body of a request as an object of a shape.
fn body_of(worker: &Worker, request: &Request, shape: &Shape) -> Result<Map<String, Value>, Fault> {
    object_of(worker, request, "application/json", shape)
}

/// The body of a request of a content type as an object of a shape.
fn object_of(
    worker: &Worker,
    request: &Request,
    content_type: &str,
    shape: &Shape,
) -> Result<Map<String, Value>, Fault> {
    let mut value = json_of(worker, request, content_type)?;
    worker
        .settle(shape, &mut value, &sender_of(request))
        .map_err(Fault::Shape)?;
    check_destinations(worker, &value)?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Fault::NotAnObject),
    }
}

/// The sender of a request, as counters name it.
fn sender_of(request: &Request) -> String {
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok().map(str::to_owned));
    agent.unwrap_or_else(|| request.peer.addr.ip().to_string())
}

/// Where consumers name the URIs that the PCF notifies (TS 29.507, TS 29.512, TS 29.514, TS 29.525).
const CALLBACKS: [&str; 6] = [
    "/notificationUri",
    "/notifUri",
    "/ascReqData/notifUri",
    "/ascReqData/evSubsc/notifUri",
    "/evSubsc/notifUri",
    "/evsNotif/notifUri",
];

/// Refuses a body by which the PCF would send requests where it must not (`outgoing`). Alternates have scheme and port of the
/// URI that they stand for.
fn check_destinations(worker: &Worker, value: &Value) -> Result<(), Problem> {
    for pointer in CALLBACKS {
        if let Some(uri) = value.pointer(pointer).and_then(Value::as_str) {
            worker.check_uri(pointer, uri)?;
        }
    }
    let uri = value.get("notificationUri").and_then(Value::as_str);
    let uri = uri.and_then(|uri| uri.parse::<http::Uri>().ok());
    let scheme = uri.as_ref().and_then(|uri| uri.scheme_str()).unwrap_or("http");
    let port = uri.as_ref().and_then(http::Uri::port_u16);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    for name in ["altNotifIpv4Addrs", "altNotifIpv6Addrs", "altNotifFqdns"] {
        let hosts = value.get(name).and_then(Value::as_array);
        for (at, host) in hosts.into_iter().flatten().enumerate() {
            let Some(host) = host.as_str() else { continue };
            let host = match host.contains(':') {
                true => format!("[{host}]"),
                false => host.to_owned(),
            };
            worker.check_uri(&format!("/{name}/{at}"), &format!("{scheme}://{host}{port}"))?;
        }
    }
    Ok(())
}

/// The body of an update, which changes none of the members that only a creation has.
fn update_of(
    worker: &Worker,
    request: &Request,
    (creation, update): (&'static Shape, &'static Shape),
) -> Result<Map<String, Value>, Fault> {
    let members = body_of(worker, request, update)?;
    let faults = unchangeable(creation, update, &members);
    match faults.is_empty() {
        true => Ok(members),
        false => Err(Fault::Shape(faults)),
    }
}

/// What distinguishes a request from others (TS 29.500 §5.2.3).
fn mark_of(request: &Request) -> Mark {
    let headers = request.headers();
    let info = RequestInfo::of(headers).ok().flatten().unwrap_or_default();
    let sent = SenderTimestamp::of(headers).ok().flatten();
    Mark {
        body: repetition::hash(request.body.to_bytes()),
        key: info
            .get("idempotency-key")
            .map(|key| repetition::hash(key.bytes())),
        sent: sent
            .and_then(|SenderTimestamp(sent)| i64::try_from(sent.unix_timestamp_nanos() / 1_000_000).ok()),
        is_retransmitted: info.get("retrans") == Some("true"),
    }
}

/// Refuses an update that makes a document larger than a body may be: members that no release knows are kept, so that
/// updates could add to them without end.
fn check_size(worker: &Worker, document: &Value) -> Result<(), Fault> {
    let limit = worker.max_body();
    let mut size = Size(0);
    // Counting does not fail, nor does a value that was JSON.
    let _ = serde_json::to_writer(&mut size, document);
    match size.0 > limit {
        true => Err(Fault::BodyTooLarge(limit)),
        false => Ok(()),
    }
}

/// The number of bytes that were written.
struct Size(usize);

impl std::io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The body of a request as JSON.
fn json_of(worker: &Worker, request: &Request, content_type: &str) -> Result<Value, Fault> {
    let headers = &request.head.fields;
    sbi::json::expect_type(headers, content_type)?;
    let limit = worker.max_body();
    let body = sbi::coding::decode(headers, request.body.clone(), limit)?;
    if body.len() > limit {
        return Err(Fault::BodyTooLarge(limit));
    }
    Ok(sbi::json::parse_unique(&body)?)
}

/// Deletes an association of a kind with what its consumer reports; of one that cannot be read the record alone goes, since the
/// consumer has no use for it. `None`: nothing else is left to be done.
async fn remove(
    worker: &Rc<Worker>,
    id: &str,
    kind: Kind,
    report: &Value,
) -> Result<Option<(Association, Draft)>, Fault> {
    let key = id_of(id)?;
    match change::remove(worker, key, kind, report).await {
        Ok(removed) => removed.map(Some).ok_or_else(|| not_found(id)),
        Err(ChangeFault::Store(store::Error::Corrupt { .. })) => {
            worker.repository().discard(key).await?;
            tracing::warn!(%key, "a policy association that cannot be read was deleted by its consumer");
            Ok(None)
        }
        Err(fault) => Err(fault.into()),
    }
}

fn id_of(text: &str) -> Result<AssociationId, Fault> {
    AssociationId::parse(text).ok_or_else(|| not_found(text))
}

fn not_found(id: &str) -> Fault {
    Fault::NotFound(id.to_owned())
}

/// 201 with a representation and where it is.
fn created(worker: &Worker, association: &Association, body: &Map<String, Value>) -> Response {
    let mut response = sbi::json::response(StatusCode::CREATED, body);
    let location = format!(
        "{}{}/{}",
        worker.root(),
        notices::path_of(association.kind),
        association.id
    );
    // The root was parsed as a URI, an identity is hexadecimal digits.
    response.headers_mut().set_printed(LOCATION, location);
    bind(worker, &mut response);
    response
}

/// Names the NF set of the PCF, where the settings give it one: any of its instances serves what was created (TS 29.500 §6.12.2).
fn bind(worker: &Worker, response: &mut Response) {
    let sets = worker.config().nrf.profile.get("nfSetIdList");
    if let Some(set) = sets.and_then(|sets| sets.get(0)?.as_str()) {
        let binding = RoutingBinding::new(BindingLevel::NfSet).with("nfset", set);
        response
            .headers_mut()
            .set_printed(Binding::NAME, Binding(vec![binding]));
    }
}

/// The features that both sides have (TS 29.500 §6.6.2); none where the consumer does not name its own.
fn negotiate(members: &Map<String, Value>, own: &[usize]) -> Option<SupportedFeatures> {
    let given = members.get("suppFeat")?.as_str()?;
    // The shape has been checked.
    let given = SupportedFeatures::parse(given).unwrap_or_default();
    Some(SupportedFeatures::of(own).common(&given))
}
