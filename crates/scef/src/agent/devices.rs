//! CMR and ODR: connections of devices, and data from them (TS 29.128 §5.6).

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode};
use serde_json::{Map, json};
use store::{Batch, Condition, Record as _, Stored};

use super::delivery::Deliveries;
use super::{result, unable, written};
use crate::events::Event;
use crate::record::{Configuration, Connection, Id, Notice};
use crate::t6a::{Action, Bearer};
use crate::worker::Worker;
use crate::{identity, shape, t6a};

/// Establishes, updates or releases a connection. A duplicate does the same again.
pub(super) async fn manage(
    worker: &Worker,
    deliveries: &Deliveries,
    request: &Request,
) -> Result<MessageMut, Fault> {
    let message = &request.message;
    let bearer = t6a::bearer(message)?;
    let configuration = match t6a::action(message)? {
        Action::Establish => establish(worker, request, &bearer).await?,
        Action::Update => {
            let found = existing(worker, &bearer).await?;
            let kept = keep(worker, request, found.record.clone(), Condition::Present, &[]).await?;
            kept.ok_or_else(|| ended(worker))?
        }
        Action::Release => {
            let found = of_sender(worker, request, &bearer).await?;
            let repository = worker.repository();
            repository
                .remove(&repository.connections, &found.record.key())
                .await
                .map_err(unable)?;
            worker.count(Event::Disconnected);
            return result(request, (0, ResultCode::SUCCESS.0));
        }
    };
    // The device is reachable, or about to be (UE-Reachable-Indicator of CMR-Flags): what is buffered for it is sent.
    deliveries.reachable(configuration);
    result(request, (0, ResultCode::SUCCESS.0))
}

async fn establish(worker: &Worker, request: &Request, bearer: &Bearer) -> Result<Id, Fault> {
    let apn = t6a::apn(&request.message)?;
    loop {
        if let Some(configuration) = establish_once(worker, request, bearer, apn).await? {
            worker.count(Event::Connected);
            return Ok(configuration);
        }
    }
}

/// Establishes a connection as the device is stored now; `None` if another request has changed its connections meanwhile.
async fn establish_once(
    worker: &Worker,
    request: &Request,
    bearer: &Bearer,
    apn: Option<&str>,
) -> Result<Option<Id>, Fault> {
    let repository = worker.repository();
    let found = repository.configurations_of(&bearer.imsi).await.map_err(unable)?;
    let Some(found) = found.iter().find(|one| one.is_active() && one.is_for(apn)) else {
        return Err(refused(
            worker,
            t6a::NOT_CONFIGURED,
            "the device has no NIDD configuration",
        ));
    };
    let earlier = repository.connections_of(found.id).await.map_err(unable)?;
    // A device that connects again takes no more than it had.
    if earlier.is_empty() {
        check_room(worker).await?;
    }
    let connection = Connection {
        imsi: bearer.imsi.clone(),
        bearer: bearer.id.clone(),
        configuration: found.id,
        host: String::new(),
        realm: String::new(),
        apn: apn.unwrap_or_default().to_ascii_lowercase(),
    };
    keep(worker, request, connection, Condition::Always, &earlier).await
}

async fn check_room(worker: &Worker) -> Result<(), Fault> {
    let held = worker.repository().connections.count().await.map_err(unable)?;
    if held < worker.config().nidd.max_connections {
        return Ok(());
    }
    worker.count(Event::ConnectionRefused);
    tracing::warn!(held, "a device was refused: nidd.maxConnections is reached");
    Err(Fault::new(ResultCode::TOO_BUSY, "too many devices are connected"))
}

/// Writes a connection with the MME or SGSN that it is at now, in place of earlier ones of its configuration, which are over: a device
/// has one to an APN (TS 23.682 §5.13.1.2). `None` if one of them or the configuration has ended meanwhile.
async fn keep(
    worker: &Worker,
    request: &Request,
    connection: Connection,
    condition: Condition,
    earlier: &[Stored<Connection>],
) -> Result<Option<Id>, Fault> {
    let connection = Connection {
        host: request.message.require(known::ORIGIN_HOST)?.to_owned(),
        realm: request.message.require(known::ORIGIN_REALM)?.to_owned(),
        ..connection
    };
    let repository = worker.repository();
    let mut batch = Batch::default();
    for one in earlier {
        if one.bearer != connection.bearer {
            batch.delete(&repository.connections, &one.record.key(), Condition::Present);
        }
    }
    batch.put(&repository.connections, &connection, condition);
    // Not for a configuration that has just ended.
    let key = connection.configuration.key();
    batch.require(&repository.configurations, &key, Condition::Present);
    let is_kept = repository.commit(batch).await.map_err(unable)?;
    Ok(is_kept.then_some(connection.configuration))
}

fn ended(worker: &Worker) -> Fault {
    let reason = "the NIDD configuration of the device has ended";
    refused(worker, t6a::NOT_CONFIGURED, reason)
}

async fn existing(worker: &Worker, bearer: &Bearer) -> Result<Stored<Connection>, Fault> {
    let key = Connection::key_of(&bearer.imsi, &bearer.id);
    let found = worker.repository().connections.get(key.as_bytes()).await;
    found.map_err(unable)?.ok_or_else(not_connected)
}

/// The connection of a device, which is at the MME or SGSN that sends the request: another one takes it over with a CMR.
async fn of_sender(worker: &Worker, request: &Request, bearer: &Bearer) -> Result<Stored<Connection>, Fault> {
    let origin = request.message.require(known::ORIGIN_HOST)?;
    let found = existing(worker, bearer).await?;
    if found.host.eq_ignore_ascii_case(origin) {
        return Ok(found);
    }
    Err(not_connected())
}

fn not_connected() -> Fault {
    let code = ResultCode(t6a::INVALID_BEARER);
    Fault::new(code, "the device has no connection of this id here").of_vendor(known::VENDOR_3GPP)
}

fn refused(worker: &Worker, code: u32, reason: &'static str) -> Fault {
    worker.count(Event::ConnectionRefused);
    tracing::info!(reason, "a connection of a device was refused");
    Fault::new(ResultCode(code), reason).of_vendor(known::VENDOR_3GPP)
}

/// Takes data from a device: it is stored for the SCS/AS before the answer.
pub(super) async fn uplink(worker: &Worker, request: &Request) -> Result<Option<MessageMut>, Fault> {
    let bearer = t6a::bearer(&request.message)?;
    let connection = of_sender(worker, request, &bearer).await?;
    let key = connection.configuration.key();
    let configuration = worker
        .repository()
        .configurations
        .get(&key)
        .await
        .map_err(unable)?;
    let Some(configuration) = configuration.filter(|one| one.is_active()) else {
        return Err(ended(worker));
    };
    let data = request.message.get(known::NON_IP_DATA)?;
    let notices = data.map(|data| uplink_notice(worker, &configuration, data));
    worker.count(Event::Uplink);
    written(worker, request, Batch::default(), notices.into_iter().collect()).await
}

/// `NiddUplinkDataNotification` (TS 29.122 §5.6.2.1.4).
fn uplink_notice(worker: &Worker, configuration: &Configuration, data: &[u8]) -> Notice {
    let uri = worker.shared().configuration_uri(configuration);
    let mut body = Map::new();
    body.insert("niddConfiguration".to_owned(), json!(uri));
    identity::copy_user(&configuration.document, &mut body);
    body.insert("data".to_owned(), json!(shape::to_base64(data)));
    let about = configuration.id.to_string();
    worker
        .shared()
        .notice(about, &configuration.document, body.into())
}
