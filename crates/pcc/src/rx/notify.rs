//! What AFs get on Rx: AAA, RAR, ASR.

use diameter_proto::AvpWriter;
use diameter_proto::known;
use serde_json::Value;

use super::events;
use crate::avp::{self, Names};
use crate::gx;
use crate::json;

/// Abort-Cause (TS 29.214 §5.3.1) and `TerminationCause` (TS 29.514 §5.6.3.10). The first name of a code counts.
const ABORT_CAUSE: Names = &[
    (0, "PDU_SESSION_TERMINATION"),
    (0, "ALL_SDF_DEACTIVATION"),
    (1, "INSUFFICIENT_SERVER_RESOURCES"),
    (2, "INSUFFICIENT_QOS_FLOW_RESOURCES"),
    (3, "PS_TO_CS_HO"),
    (4, "SPONSORED_DATA_CONNECTIVITY_DISALLOWED"),
];

/// Appends what an AAA says of the UE's session (`SmPolicyContextData`): IP-CAN-Type, RAT-Type and where charging
/// records are (TS 29.214 §5.6.2).
pub fn put_access(out: &mut AvpWriter, context: &Value) {
    let reported = context.get("gx").and_then(|gx| json::uint(gx, gx::IP_CAN_MEMBER));
    let ip_can = match reported {
        Some(code) => i32::try_from(code).ok(),
        None => json::text(context, "accessType").map(avp::ip_can_type),
    };
    let rat = json::text(context, "ratType").and_then(|name| avp::value(avp::RAT_TYPE, name));
    let address = context.get("chargEntityAddr").and_then(avp::charging_ip);
    if let Some(identifier) = context.get("accNetChId") {
        put_charging_identifier(out, identifier);
    }
    out.maybe(known::ACCESS_NETWORK_CHARGING_ADDRESS, address.map(Into::into))
        .maybe(known::IP_CAN_TYPE, ip_can)
        .maybe(known::RAT_TYPE, rat);
}

/// Appends what a RAR notifies of: an `EventsNotification` as [`crate::event::notification`] makes it. Returns whether
/// there was an event that Rx has.
pub fn put_notification(out: &mut AvpWriter, notification: &Value, context: &Value) -> bool {
    let notified = json::items(notification, "evNotifs");
    let actions = notified
        .iter()
        .filter_map(|event| events::action(json::text(event, "event")?));
    let mut actions: Vec<i32> = actions.collect();
    actions.sort_unstable();
    actions.dedup();
    for action in &actions {
        out.put(known::SPECIFIC_ACTION, *action);
    }
    for identifier in json::items(notification, "anChargIds") {
        put_charging_identifier(out, identifier);
    }
    let mut all: Vec<&Value> = Vec::new();
    for flows in notified.iter().flat_map(|event| json::items(event, "flows")) {
        if !all.contains(&flows) {
            all.push(flows);
        }
    }
    for flows in all {
        put_flows(out, flows);
    }
    if notified
        .iter()
        .any(|event| json::text(event, "event") == Some("ACCESS_TYPE_CHANGE"))
    {
        put_access(out, context);
    }
    if let Some(location) = notification.get("ueLoc") {
        gx::put_location(out, location);
    }
    if let Some(zone) = json::text(notification, "ueTimeZone") {
        gx::put_time_zone(out, zone);
    }
    if let Some(plmn) = notification.get("plmnId")
        && let (Some(mcc), Some(mnc)) = (json::text(plmn, "mcc"), json::text(plmn, "mnc"))
    {
        out.put(known::TGPP_SGSN_MCC_MNC, &format!("{mcc}{mnc}"));
    }
    if let Some(usage) = notification.get("usgRep") {
        put_usage(out, usage);
    }
    !actions.is_empty()
}

/// Appends the Abort-Cause of an ASR for a `TerminationCause`.
pub fn put_abort(out: &mut AvpWriter, cause: &str) {
    out.put(known::ABORT_CAUSE, avp::value(ABORT_CAUSE, cause).unwrap_or(0));
}

fn put_flows(out: &mut AvpWriter, flows: &Value) {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let Some(component) = flows.get("medCompN").and_then(number) else {
        return;
    };
    out.group(known::FLOWS, |out| {
        out.put(known::MEDIA_COMPONENT_NUMBER, component);
        for flow in json::items(flows, "fNums").iter().filter_map(number) {
            out.put(known::FLOW_NUMBER, flow);
        }
    });
}

fn put_charging_identifier(out: &mut AvpWriter, identifier: &Value) {
    let number = json::uint(identifier, "accNetChaIdValue").and_then(|number| u32::try_from(number).ok());
    // N5 and N7 name it differently.
    let text =
        json::text(identifier, "accNetChargIdString").or_else(|| json::text(identifier, "accNetChargId"));
    let bytes = match (number, text) {
        (Some(number), _) => number.to_be_bytes().to_vec(),
        (None, Some(text)) => text.as_bytes().to_vec(),
        (None, None) => return,
    };
    out.group(known::ACCESS_NETWORK_CHARGING_IDENTIFIER, |out| {
        out.put(known::ACCESS_NETWORK_CHARGING_IDENTIFIER_VALUE, &bytes);
        for flows in json::items(identifier, "flows") {
            put_flows(out, flows);
        }
    });
}

/// Used units of sponsored connectivity (TS 29.214 §4.4.6.6).
fn put_usage(out: &mut AvpWriter, usage: &Value) {
    let seconds = json::uint(usage, "duration").map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
    out.group(known::SPONSORED_CONNECTIVITY_DATA, |out| {
        out.group(known::USED_SERVICE_UNIT, |out| {
            out.maybe(known::CC_TIME, seconds)
                .maybe(known::CC_TOTAL_OCTETS, json::uint(usage, "totalVolume"))
                .maybe(known::CC_INPUT_OCTETS, json::uint(usage, "uplinkVolume"))
                .maybe(known::CC_OUTPUT_OCTETS, json::uint(usage, "downlinkVolume"));
        });
    });
}
