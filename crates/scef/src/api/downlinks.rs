//! `/downlink-data-deliveries` of a NIDD configuration (TS 29.122 §4.4.5.3, §5.6.3.4).

use std::time::Duration;

use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use sbi::Response;
use sbi::problem::{Cause, Problem};
use sbi::response::no_content;
use serde_json::{Value, json};
use store::Stored;
use tokio::sync::oneshot;

use super::configurations::existing as configuration_of;
use super::groups;
use super::{Answer, body_of, created, forbidden, not_found, stored, with_self};
use crate::clock::{after, now};
use crate::events::Event;
use crate::orders::{Order, Outcome, Waiting};
use crate::record::{Configuration, Downlink, GroupDelivery, Id, Status};
use crate::worker::Worker;
use crate::{identity, shape};

const TYPE: &str = "application/json";
/// Members that the SCEF alone sets.
const READ_ONLY: [&str; 3] = ["self", "deliveryStatus", "requestedRetransmissionTime"];
/// Time beyond that of the MME in which the Diameter node says what became of data.
const GRACE: Duration = Duration::from_secs(1);

/// Accepts data for a device: 200 when it is delivered, 201 when it is buffered.
pub(crate) async fn create(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let configuration = configuration_of(worker, &call.parameters).await?;
    let document = body_of(worker, &call.request, TYPE)?;
    let document = checked(worker, document, &configuration.document)?;
    if configuration.is_of_group() {
        return groups::create(worker, &configuration, document).await;
    }
    let connected = is_connected(worker, configuration.id).await?;
    let downlink = new(worker, &configuration, document, Id::new(now()));
    if !connected && (!downlink.buffered || indicates_error(&configuration, &downlink)) {
        return Ok(failure(Status::Failure));
    }
    let repository = worker.repository();
    let turn = worker.shared().buffers.turn(configuration.id).await;
    check_room(worker, &downlink, None).await?;
    let inserted = repository.insert(&repository.downlinks, &downlink).await;
    inserted.map_err(store_problem)?;
    drop(turn);
    // Also where the device is not connected: it may have connected just now.
    let outcome = deliver(worker, &downlink, connected).await;
    let uri = worker.shared().downlink_uri(&downlink);
    match outcome {
        Outcome::Delivered(status) => {
            let mut shown = downlink.document.clone();
            shown["deliveryStatus"] = json!(status);
            Ok(sbi::json::response(StatusCode::OK, &shown))
        }
        Outcome::Buffered(status) => {
            worker.count(Event::Buffered);
            Ok(created(&uri, &shown(&downlink, status, &uri)))
        }
        Outcome::Failed(status) => Ok(failure(status)),
    }
}

/// Hands data to the Diameter node, and waits for what becomes of it where the device is connected.
async fn deliver(worker: &Worker, downlink: &Downlink, connected: bool) -> Outcome {
    let buffered = Outcome::Buffered(Status::Buffering);
    let (reply, answer) = oneshot::channel();
    let waiting = Waiting {
        downlink: downlink.id,
        reply,
    };
    let order = Order::Deliver {
        configuration: downlink.configuration,
        waiting: connected.then_some(waiting),
    };
    if !worker.orders().send(order) || !connected {
        return buffered;
    }
    let patience = worker.config().diameter.timeout.duration() + GRACE;
    match tokio::time::timeout(patience, answer).await {
        Ok(Ok(outcome)) => outcome,
        // It is stored; its notification says what becomes of it.
        _ => buffered,
    }
}

/// Lists what is pending for the device of a configuration.
pub(crate) async fn list(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let configuration = configuration_of(worker, &call.parameters).await?;
    if configuration.is_of_group() {
        return groups::list(worker, &configuration).await;
    }
    let most = worker.config().nidd.max_packets;
    let found = worker.repository().downlinks_of(configuration.id, most).await;
    let found = found.map_err(store_problem)?;
    let shown: Vec<Value> = found
        .iter()
        .map(|one| shown(one, one.status, &worker.shared().downlink_uri(one)))
        .collect();
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Reads pending data.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let configuration = configuration_of(worker, &call.parameters).await?;
    if configuration.is_of_group() {
        return groups::read(worker, &configuration, &call.parameters[2]).await;
    }
    let found = existing_of(worker, &configuration, &call.parameters).await?;
    let uri = worker.shared().downlink_uri(&found);
    Ok(sbi::json::response(
        StatusCode::OK,
        &shown(&found, found.status, &uri),
    ))
}

/// Replaces pending data that was not sent yet.
pub(crate) async fn replace(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let document = body_of(worker, &call.request, TYPE)?;
    let configuration = configuration_of(worker, &call.parameters).await?;
    let with = |found: &Downlink| {
        let document = checked(worker, document.clone(), &configuration.document)?;
        Ok(new(worker, &configuration, document, found.id))
    };
    change(worker, &call.parameters, with).await
}

/// Changes pending data that was not sent yet (`NiddDownlinkDataTransferPatch`, RFC 7396). It is buffered from now for a new
/// `maximumLatency`, otherwise for as long as before.
pub(crate) async fn modify(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let patch = body_of(worker, &call.request, TYPE)?;
    let configuration = configuration_of(worker, &call.parameters).await?;
    let limit = worker.config().max_body_size.as_usize();
    let with = |found: &Downlink| {
        let mut document = found.document.clone();
        sbi::json::merge(&mut document, &patch, limit)?;
        let document = checked(worker, document, &configuration.document)?;
        let changed = new(worker, &configuration, document, found.id);
        Ok(match patch.get("maximumLatency") {
            Some(_) => changed,
            None => Downlink {
                expires: found.expires,
                ..changed
            },
        })
    };
    change(worker, &call.parameters, with).await
}

/// Puts something else in place of pending data that was not sent yet.
async fn change(
    worker: &Worker,
    path: &[String; 3],
    with: impl Fn(&Downlink) -> Result<Downlink, Problem>,
) -> Answer {
    let repository = worker.repository();
    let configuration = configuration_of(worker, path).await?;
    if configuration.is_of_group() {
        return groups::change(worker, &configuration, &path[2]).await;
    }
    let _turn = worker.shared().buffers.turn(configuration.id).await;
    loop {
        let found = existing(worker, path).await?;
        is_unsent(&found)?;
        let changed = Downlink {
            due: found.due,
            status: found.status,
            ..with(&found)?
        };
        check_room(worker, &changed, Some(found.id)).await?;
        let updated = repository.update(&repository.downlinks, &found, changed).await;
        // The Diameter node may have written meanwhile why it waits.
        if let Some(changed) = updated.map_err(store_problem)? {
            let uri = worker.shared().downlink_uri(&changed);
            let shown = shown(&changed, changed.status, &uri);
            return Ok(sbi::json::response(StatusCode::OK, &shown));
        }
    }
}

/// Cancels pending data that was not sent yet.
pub(crate) async fn cancel(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let repository = worker.repository();
    loop {
        let configuration = configuration_of(worker, &call.parameters).await?;
        if configuration.is_of_group() {
            return groups::cancel(worker, &configuration, &call.parameters[2]).await;
        }
        let found = existing_of(worker, &configuration, &call.parameters).await?;
        is_unsent(&found)?;
        let removed = repository.remove_as_read(&repository.downlinks, &found).await;
        if removed.map_err(store_problem)? {
            return Ok(no_content());
        }
    }
}

async fn existing(worker: &Worker, parameters: &[String; 3]) -> Result<Stored<Downlink>, Problem> {
    let configuration = configuration_of(worker, parameters).await?;
    existing_of(worker, &configuration, parameters).await
}

async fn existing_of(
    worker: &Worker,
    configuration: &Configuration,
    parameters: &[String; 3],
) -> Result<Stored<Downlink>, Problem> {
    let id = Id::parse(&parameters[2]);
    let id = id.ok_or_else(|| not_found("delivery"))?;
    let found = worker.repository().downlinks.get(&id.key()).await;
    let found = found.map_err(store_problem)?;
    found
        .filter(|one| one.configuration == configuration.id)
        .ok_or_else(over)
}

/// Refuses what is about data that is over.
pub(super) fn over() -> Problem {
    Problem::with_cause(StatusCode::NOT_FOUND, "ALREADY_DELIVERED")
        .detail("no such data is pending: it was delivered, has failed, or never existed")
}

async fn is_connected(worker: &Worker, configuration: Id) -> Result<bool, Problem> {
    let found = worker.repository().connections_of(configuration).await;
    Ok(!found.map_err(store_problem)?.is_empty())
}

fn new(worker: &Worker, configuration: &Configuration, document: Value, id: Id) -> Downlink {
    let longest = worker.config().nidd.buffer_time.duration();
    let latency = document.get("maximumLatency").and_then(Value::as_u64);
    // 0: no buffering; absent: as long as the SCEF permits (TS 29.122 table 5.6.2.1.3-1).
    let buffered = latency != Some(0);
    let time = match latency {
        Some(0) => worker.config().diameter.timeout.duration() + GRACE,
        Some(seconds) => Duration::from_secs(seconds).min(longest),
        None => longest,
    };
    let target = configuration.document.get("notificationDestination");
    Downlink {
        id,
        configuration: configuration.id,
        scs: configuration.scs.clone(),
        target: target.and_then(Value::as_str).unwrap_or_default().to_owned(),
        document,
        status: Status::Buffering,
        buffered,
        expires: after(time),
        due: now(),
        sent: None,
        group: None,
    }
}

/// What of data for a group is for one member.
pub(super) fn for_member(worker: &Worker, member: &Configuration, of: &GroupDelivery) -> Downlink {
    let mut document = of.document.clone();
    if let Some(members) = document.as_object_mut() {
        members.shift_remove("externalGroupId");
        identity::copy_user(&member.document, members);
    }
    let part = new(worker, member, document, Id::new(now()));
    let buffered = part.buffered && !indicates_error(member, &part);
    Downlink {
        buffered,
        group: Some(of.id),
        ..part
    }
}

/// The data that a new configuration brings, which is for a device without a connection yet: what becomes of it is notified
/// (TS 29.122 §4.4.5.2.1).
pub(super) async fn first(
    worker: &Worker,
    configuration: &Configuration,
    document: Value,
) -> Result<Downlink, Problem> {
    let downlink = new(worker, configuration, document, Id::new(now()));
    check_room(worker, &downlink, None).await?;
    let buffered = downlink.buffered && !indicates_error(configuration, &downlink);
    Ok(Downlink { buffered, ..downlink })
}

/// Hands the data of a new configuration to the Diameter node; the resource.
pub(super) async fn begin(worker: &Worker, downlink: &Downlink) -> Value {
    if downlink.buffered {
        worker.count(Event::Buffered);
    }
    deliver(worker, downlink, false).await;
    shown(downlink, downlink.status, &worker.shared().downlink_uri(downlink))
}

/// Data that may be sent to the device of a configuration.
pub(super) fn checked(worker: &Worker, document: Value, configuration: &Value) -> Result<Value, Problem> {
    shape::downlink(&document)?;
    check_offered(&document)?;
    let same = |name: &str| document.get(name) == configuration.get(name);
    if !["externalId", "msisdn", "externalGroupId"].into_iter().all(same) {
        let detail = "the device is not that of the configuration";
        return Err(Problem::new(Cause::MandatoryIeIncorrect).detail(detail));
    }
    let most = worker.config().nidd.max_packet.as_usize();
    if shape::octets_of(&document, "data").len() > most {
        return Err(forbidden(
            "DATA_TOO_LARGE",
            format!("data has more than {most} octets"),
        ));
    }
    Ok(stored(document, &READ_ONLY, None))
}

/// Refuses what is not offered: a trigger, the reliable data service and its ports (TS 23.682 §4.5.14.3), whose frames (TS 24.250) the
/// SCEF would have to exchange with the device.
pub(super) fn check_offered(document: &Value) -> Result<(), Problem> {
    let unsupported = ["rdsPort", "rdsPorts"]
        .into_iter()
        .find(|name| document.get(name).is_some());
    let reliable = document.get("reliableDataService") == Some(&Value::Bool(true));
    if let Some(name) = unsupported.or(reliable.then_some("reliableDataService")) {
        return Err(Problem::new(Cause::OptionalIeIncorrect)
            .detail("the frames of the reliable data service (TS 24.250) are not exchanged with devices here: data is neither acknowledged by the device nor led to its ports")
            .invalid_param(
                format!("/{name}"),
                "expected data without the reliable data service",
            ));
    }
    match document.get("pdnEstablishmentOption").and_then(Value::as_str) {
        None | Some("WAIT_FOR_UE" | "INDICATE_ERROR") => Ok(()),
        Some(_) => Err(Problem::new(Cause::OptionalIeIncorrect).invalid_param(
            "/pdnEstablishmentOption",
            "expected WAIT_FOR_UE or INDICATE_ERROR: data does not trigger devices here",
        )),
    }
}

/// Whether data for a device without a connection is refused: by its own option, else by that of the configuration.
fn indicates_error(configuration: &Configuration, downlink: &Downlink) -> bool {
    let option = |document: &Value| document.get("pdnEstablishmentOption").cloned();
    let option = option(&downlink.document).or_else(|| option(&configuration.document));
    option.as_ref().and_then(Value::as_str) == Some("INDICATE_ERROR")
}

/// Whether the device has room for data, in place of `instead`.
pub(super) async fn check_room(
    worker: &Worker,
    downlink: &Downlink,
    instead: Option<Id>,
) -> Result<(), Problem> {
    let nidd = &worker.config().nidd;
    let found = worker
        .repository()
        .downlinks_of(downlink.configuration, nidd.max_packets.saturating_add(1));
    let found = found.await.map_err(store_problem)?;
    let others = found.iter().filter(|one| Some(one.id) != instead);
    let (mut packets, mut octets) = (1, shape::octets_of(&downlink.document, "data").len());
    for other in others {
        packets += 1;
        octets += shape::octets_of(&other.document, "data").len();
    }
    if packets <= nidd.max_packets && octets <= nidd.max_octets.as_usize() {
        return Ok(());
    }
    worker.count(Event::BufferFull);
    Err(forbidden(
        "QUOTA_EXCEEDED",
        "the buffer of the device is full (nidd.maxPackets, nidd.maxOctets)",
    ))
}

fn shown(downlink: &Downlink, status: Status, uri: &str) -> Value {
    let mut shown = with_self(&downlink.document, uri);
    shown["deliveryStatus"] = json!(status);
    shown
}

fn is_unsent(downlink: &Downlink) -> Result<(), Problem> {
    match downlink.sent {
        None => Ok(()),
        Some(_) => Err(sending()),
    }
}

pub(super) fn sending() -> Problem {
    Problem::with_cause(StatusCode::CONFLICT, "SENDING").detail("the data is being sent to the device")
}

/// 500 with `NiddDownlinkDataDeliveryFailure` (TS 29.122 §5.6.2.2.4).
fn failure(status: Status) -> Response {
    let (cause, detail) = match status {
        Status::Failure => (
            "NO_PDN_CONNECTION",
            "the device has no connection, and the data is not buffered",
        ),
        Status::FailureTemporarilyNotReachable => (
            "TEMPORARILY_NOT_REACHABLE",
            "the device is not reachable, and the data is not buffered",
        ),
        Status::FailureTimeout => ("TIMEOUT", "the network has not answered in time"),
        _ => ("NEXT_HOP", "the network has refused the data"),
    };
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let problem = json!({"status": status.as_u16(), "cause": cause, "detail": detail});
    sbi::json::response(status, &json!({"problemDetail": problem}))
}
