//! Tsp (TS 29.368): what servers of devices (SCS) that speak Diameter ask for, and what is reported to them.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpWriter, Avps, Fault, Message, MessageMut, ResultCode};
use http::StatusCode;
use sbi::problem::Problem;
use serde_json::{Map, Value, json};

use crate::config::Diameter;
use crate::record::{Scs, TriggerReport};
use crate::{identity, s6t, shape};

/// What the names of SCS begin with where those of SCS/AS stand as well.
pub(crate) const PREFIX: &str = "tsp:";
/// How long an SMS-SC keeps a trigger without Validity-Time, in seconds.
const VALIDITY: u32 = 86_400;
/// Device Delivery Report of Action-Type (TS 29.368 §6.4.6).
const DELIVERY_REPORT: i32 = 2;

/// Values of Request-Status (TS 29.368 §6.4.9).
pub(crate) mod status {
    pub(crate) const SUCCESS: u32 = 0;
    pub(crate) const INVALID_IDENTITY: u32 = 102;
    pub(crate) const NOT_AUTHORIZED: u32 = 105;
    pub(crate) const PERMANENT_ERROR: u32 = 107;
    pub(crate) const QUOTA_EXCEEDED: u32 = 108;
    pub(crate) const RATE_EXCEEDED: u32 = 109;
    pub(crate) const REPLACE_FAILED: u32 = 110;
    pub(crate) const RECALL_FAILED: u32 = 111;
    pub(crate) const ORIGINAL_MESSAGE_SENT: u32 = 112;
    pub(crate) const TEMPORARY_ERROR: u32 = 201;
}

/// UNCONFIRMED of Delivery-Outcome (TS 29.368 §6.4.10).
pub(crate) const UNCONFIRMED: i32 = 4;

/// What a DAR asks for: Action-Type (TS 29.368 §6.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Trigger = 1,
    Recall = 3,
    Replace = 4,
}

/// A DAR.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) scs: Scs,
    pub(crate) action: Action,
    /// Reference-Number of the trigger that is recalled or replaced.
    pub(crate) old: Option<u32>,
    /// The trigger as T8 has it (`DeviceTriggering`), without a destination for notifications.
    pub(crate) document: Value,
}

/// Whose the triggers of an SCS are.
pub(crate) fn holder(scs: &Scs) -> String {
    format!("{PREFIX}{}", scs.host)
}

/// Reads a DAR (TS 29.368 §6.6.2).
pub(crate) fn read(message: &Message) -> Result<Asked, Fault> {
    let action = message.require(known::DEVICE_ACTION)?;
    let get = || action.clone();
    let kind = match get().require(known::ACTION_TYPE)? {
        1 => Action::Trigger,
        3 => Action::Recall,
        4 => Action::Replace,
        _ => {
            let reason = "Action-Type of a DAR: expected 1, 3 or 4 (TS 29.368 §6.4.6)";
            return Err(Fault::new(ResultCode::INVALID_AVP_VALUE, reason));
        }
    };
    let scs = Scs {
        host: message.require(known::ORIGIN_HOST)?.to_ascii_lowercase(),
        realm: message.require(known::ORIGIN_REALM)?.to_owned(),
        identity: get().get(known::SCS_IDENTITY)?.map(shape::to_base64),
        reference: get().require(known::REFERENCE_NUMBER)?,
    };
    Ok(Asked {
        scs,
        action: kind,
        old: get().get(known::OLD_REFERENCE_NUMBER)?,
        document: document(&action)?,
    })
}

/// The trigger of a Device-Action.
fn document(action: &Avps<'_>) -> Result<Value, Fault> {
    let mut document = Map::new();
    identity::copy_member(action, &mut document)?;
    let validity = action.clone().get(known::VALIDITY_TIME)?;
    document.insert("validityPeriod".to_owned(), json!(validity.unwrap_or(VALIDITY)));
    let Some(data) = action.clone().get(known::TRIGGER_DATA)? else {
        return Ok(document.into());
    };
    let payload = data.clone().require(known::PAYLOAD)?;
    document.insert("triggerPayload".to_owned(), json!(shape::to_base64(payload)));
    let urgent = data.clone().get(known::PRIORITY_INDICATION)? == Some(1);
    let priority = if urgent { "PRIORITY" } else { "NO_PRIORITY" };
    document.insert("priority".to_owned(), json!(priority));
    let port = data.get(known::APPLICATION_PORT_IDENTIFIER)?;
    document.extend(port.map(|port| ("applicationPortId".to_owned(), json!(port))));
    Ok(document.into())
}

/// Request-Status of a request that T8 would answer with this problem.
pub(crate) fn status_of(problem: &Problem, action: Action) -> u32 {
    let failed = match action {
        Action::Recall => status::RECALL_FAILED,
        Action::Replace => status::REPLACE_FAILED,
        Action::Trigger => status::PERMANENT_ERROR,
    };
    match (
        problem.status(),
        problem.details().cause.as_deref().unwrap_or_default(),
    ) {
        (_, "USER_UNKNOWN") => status::INVALID_IDENTITY,
        (_, "QUOTA_EXCEEDED") => status::QUOTA_EXCEEDED,
        (StatusCode::TOO_MANY_REQUESTS, _) => status::RATE_EXCEEDED,
        (StatusCode::FORBIDDEN, _) => status::NOT_AUTHORIZED,
        (StatusCode::NOT_FOUND, _) => status::ORIGINAL_MESSAGE_SENT,
        (StatusCode::SERVICE_UNAVAILABLE, _) => status::TEMPORARY_ERROR,
        _ => failed,
    }
}

/// Delivery-Outcome (TS 29.368 §6.4.10) of a SM-Delivery-Outcome-T4 (TS 29.337 §6.3.1).
pub(crate) fn outcome_of(outcome: i32) -> i32 {
    match outcome {
        // ABSENT_SUBSCRIBER, UE_MEMORY_CAPACITY_EXCEEDED: UNDELIVERABLE.
        0 | 1 => 3,
        // SUCCESSFUL_TRANSFER.
        2 => 0,
        // VALIDITY_TIME_EXPIRED.
        3 => 1,
        _ => 2,
    }
}

/// Appends Auth-Application-Id and Device-Notification with the status of a DAR (TS 29.368 §6.6.3).
pub(crate) fn put_status(answer: &mut AvpWriter, asked: &Asked, status: u32) {
    answer.put(known::AUTH_APPLICATION_ID, application::TSP);
    answer.group(known::DEVICE_NOTIFICATION, |group| {
        put_origin(group, &asked.document, &asked.scs);
        group
            .put(known::ACTION_TYPE, asked.action as i32)
            .put(known::REQUEST_STATUS, i32::try_from(status).unwrap_or_default());
    });
}

/// DNR that reports the delivery of a trigger (TS 29.368 §6.6.4).
pub(crate) fn report(settings: &Diameter, report: &TriggerReport) -> Option<MessageMut> {
    let which = (command::DEVICE_NOTIFICATION, application::TSP);
    let session = s6t::session_id(settings);
    let to = (Some(report.scs.host.as_str()), report.scs.realm.as_str());
    let mut request = s6t::begin(settings, which, &session, to, |request| {
        request.put(known::AUTH_APPLICATION_ID, application::TSP);
    });
    request.group(known::DEVICE_NOTIFICATION, |group| {
        put_origin(group, &report.device, &report.scs);
        group
            .put(known::ACTION_TYPE, DELIVERY_REPORT)
            .put(known::DELIVERY_OUTCOME, report.outcome);
    });
    request.finish().ok()
}

/// Device, SCS-Identity and Reference-Number as the SCS has named them.
fn put_origin(group: &mut AvpWriter, document: &Value, scs: &Scs) {
    let identity = scs.identity.as_deref().map(shape::from_base64);
    identity::put_names(group, document);
    group
        .maybe(known::SCS_IDENTITY, identity.as_deref())
        .put(known::REFERENCE_NUMBER, scs.reference);
}
