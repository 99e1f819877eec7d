//! What bodies of T8 must look like (TS 29.122 §5.3.2, §5.6.2, §5.7.2). Members that are not named here survive as they came.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::shape::Shape::{Bool, Integer, List, Rule, Text};
use model::shape::{Fault, Object, Shape, opt, req, rules};
use sbi::problem::{Cause, Problem};
use serde_json::{Map, Value};

type Verdict = Result<(), Cow<'static, str>>;
type Blame = Result<(), (&'static str, &'static str)>;

/// A number that Unsigned32 of Diameter holds.
const U32: Shape = Integer(0, 0xffff_ffff);

fn external_id(text: &str) -> Verdict {
    let is_printable = |text: &str| !text.chars().any(|c| c.is_control() || c.is_whitespace());
    match text.split_once('@') {
        Some((local, domain))
            if text.len() <= 255 && !local.is_empty() && !domain.is_empty() && is_printable(text) =>
        {
            Ok(())
        }
        _ => Err("expected an External Identifier such as meter-7@iot.example.org".into()),
    }
}

fn msisdn(text: &str) -> Verdict {
    rules::number5to15(text.strip_prefix('+').unwrap_or(text))
}

fn octets(text: &str) -> Verdict {
    let decoded = STANDARD.decode(text).map(drop);
    decoded.map_err(|_| "expected octets in Base64".into())
}

/// A value of an enumeration that S6t has as well. What it has not would be something else than what was asked for.
fn one_of(text: &str, served: &'static [&'static str], expected: &'static str) -> Verdict {
    if served.contains(&text) {
        return Ok(());
    }
    Err(expected.into())
}

fn reachability_type(text: &str) -> Verdict {
    one_of(text, &["SMS", "DATA"], "expected SMS or DATA")
}

fn location_type(text: &str) -> Verdict {
    let served = &["CURRENT_LOCATION", "LAST_KNOWN_LOCATION"];
    one_of(text, served, "expected CURRENT_LOCATION or LAST_KNOWN_LOCATION")
}

fn accuracy(text: &str) -> Verdict {
    let served = &["CGI_ECGI", "ENODEB", "TA_RA", "PLMN"];
    one_of(text, served, "expected CGI_ECGI, ENODEB, TA_RA or PLMN")
}

fn association_type(text: &str) -> Verdict {
    one_of(text, &["IMEI", "IMEISV"], "expected IMEI or IMEISV")
}

/// A device, or a group of devices, is named once (TS 29.122 table 5.3.2.1.2-1, note 2).
fn one_device_or_group(members: &Map<String, Value>) -> Blame {
    if !members.contains_key("externalGroupId") {
        return one_device(members);
    }
    let other = ["externalId", "msisdn"]
        .into_iter()
        .find(|name| members.contains_key(*name));
    other.map_or(Ok(()), |name| {
        Err((name, "expected a device or a group, not both"))
    })
}

/// A device is named once (TS 29.122 table 5.6.2.1.2-1, note 2).
fn one_device(members: &Map<String, Value>) -> Blame {
    if members.contains_key("externalGroupId") {
        return Err((
            "externalGroupId",
            "expected a single device: no group is triggered",
        ));
    }
    match (members.contains_key("externalId"), members.contains_key("msisdn")) {
        (true, true) => Err(("msisdn", "expected externalId or msisdn, not both")),
        (false, false) => Err(("externalId", "expected externalId or msisdn")),
        _ => Ok(()),
    }
}

fn monitored(members: &Map<String, Value>) -> Blame {
    one_device_or_group(members)?;
    let ends = ["maximumNumberOfReports", "monitorExpireTime"];
    if !ends.iter().any(|name| members.contains_key(*name)) {
        return Err((
            "monitorExpireTime",
            "expected maximumNumberOfReports or monitorExpireTime",
        ));
    }
    Ok(())
}

/// `MonitoringEventSubscription`.
static MONITORING: Shape = Shape::Object(&Object {
    members: &[
        opt("externalId", Rule(external_id)),
        opt("externalGroupId", Rule(external_id)),
        opt("msisdn", Rule(msisdn)),
        req("notificationDestination", Rule(rules::uri)),
        req("monitoringType", Rule(rules::not_empty)),
        opt("supportedFeatures", Rule(rules::features)),
        opt("mtcProviderId", Text),
        opt("maximumNumberOfReports", Integer(1, 0xffff_ffff)),
        opt("monitorExpireTime", Rule(rules::date_time)),
        opt("maximumDetectionTime", U32),
        opt("reachabilityType", Rule(reachability_type)),
        opt("maximumLatency", U32),
        opt("maximumResponseTime", U32),
        opt("suggestedNumberOfDlPackets", Integer(0, 0x7fff_ffff)),
        opt("idleStatusIndication", Bool),
        opt("locationType", Rule(location_type)),
        opt("accuracy", Rule(accuracy)),
        opt("associationType", Rule(association_type)),
        opt("plmnIndication", Bool),
        opt("repPeriod", U32),
        opt("groupReportGuardTime", U32),
        opt("minimumReportInterval", U32),
        opt("requestTestNotification", Bool),
    ],
    rule: Some(monitored),
});

static RDS_PORT: Shape = Shape::Object(&Object {
    members: &[
        req("portUE", Integer(0, 65_535)),
        req("portSCEF", Integer(0, 65_535)),
    ],
    rule: None,
});

/// `NiddConfiguration`.
static CONFIGURATION: Shape = Shape::Object(&Object {
    members: &[
        opt("externalId", Rule(external_id)),
        opt("externalGroupId", Rule(external_id)),
        opt("msisdn", Rule(msisdn)),
        req("notificationDestination", Rule(rules::uri)),
        opt("supportedFeatures", Rule(rules::features)),
        opt("mtcProviderId", Text),
        opt("duration", Rule(rules::date_time)),
        opt("reliableDataService", Bool),
        opt("rdsPorts", List(&RDS_PORT)),
        opt("pdnEstablishmentOption", Text),
        opt("requestTestNotification", Bool),
        opt("niddDownlinkDataTransfers", List(&DOWNLINK)),
    ],
    rule: Some(one_device_or_group),
});

fn priority(text: &str) -> Verdict {
    let served = &["NO_PRIORITY", "PRIORITY"];
    one_of(text, served, "expected NO_PRIORITY or PRIORITY")
}

/// `DeviceTriggering`.
static TRIGGER: Shape = Shape::Object(&Object {
    members: &[
        opt("externalId", Rule(external_id)),
        opt("msisdn", Rule(msisdn)),
        req("notificationDestination", Rule(rules::uri)),
        req("validityPeriod", U32),
        req("priority", Rule(priority)),
        req("applicationPortId", Integer(0, 65_535)),
        opt("appSrcPortId", Integer(0, 65_535)),
        req("triggerPayload", Rule(octets)),
        opt("supportedFeatures", Rule(rules::features)),
        opt("requestTestNotification", Bool),
    ],
    rule: Some(one_device),
});

/// A trigger of an SCS, of the members of `DeviceTriggering` that Tsp has.
static TRIGGER_OF_SCS: Shape = Shape::Object(&Object {
    members: &[
        opt("externalId", Rule(external_id)),
        opt("msisdn", Rule(msisdn)),
        req("validityPeriod", U32),
        opt("applicationPortId", Integer(0, 65_535)),
        req("triggerPayload", Rule(octets)),
    ],
    rule: Some(one_device),
});

/// `NiddDownlinkDataTransfer`.
static DOWNLINK: Shape = Shape::Object(&Object {
    members: &[
        opt("externalId", Rule(external_id)),
        opt("externalGroupId", Rule(external_id)),
        opt("msisdn", Rule(msisdn)),
        req("data", Rule(octets)),
        opt("reliableDataService", Bool),
        opt("rdsPort", Shape::Of(&RDS_PORT)),
        opt("maximumLatency", U32),
        opt("priority", Integer(i64::MIN, i64::MAX)),
        opt("pdnEstablishmentOption", Text),
    ],
    rule: Some(one_device_or_group),
});

/// Checks a `MonitoringEventSubscription`.
pub(crate) fn monitoring(value: &Value) -> Result<(), Problem> {
    check(&MONITORING, value)?;
    let reason = "expected no period: an HSS reports an event when it happens (S6t has no AVP for it)";
    refuse(value, "repPeriod", reason)
}

/// Checks a `NiddConfiguration`.
pub(crate) fn configuration(value: &Value) -> Result<(), Problem> {
    check(&CONFIGURATION, value)
}

/// Checks a `NiddDownlinkDataTransfer`.
pub(crate) fn downlink(value: &Value) -> Result<(), Problem> {
    check(&DOWNLINK, value)
}

/// Checks a `DeviceTriggering`.
pub(crate) fn trigger(value: &Value) -> Result<(), Problem> {
    check(&TRIGGER, value)?;
    let reason = "expected applicationPortId alone: T4 has no AVP for the port of the sender";
    refuse(value, "appSrcPortId", reason)
}

/// Checks a trigger of an SCS.
pub(crate) fn trigger_of_scs(value: &Value) -> Result<(), Problem> {
    check(&TRIGGER_OF_SCS, value)
}

/// Refuses an optional member that the network has nothing for.
fn refuse(value: &Value, name: &str, reason: &'static str) -> Result<(), Problem> {
    if value.get(name).is_none() {
        return Ok(());
    }
    let pointer = format!("/{name}");
    let problem = Problem::new(Cause::OptionalIeIncorrect).detail(format!("{pointer}: {reason}"));
    Err(problem.invalid_param(pointer, reason))
}

/// The octets of a member in Base64 that was checked.
pub(crate) fn octets_of(document: &Value, name: &str) -> Vec<u8> {
    let text = document.get(name).and_then(Value::as_str);
    text.and_then(|text| STANDARD.decode(text).ok())
        .unwrap_or_default()
}

/// The octets of a text that [`to_base64`] has written.
pub(crate) fn from_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// A `DateTime` of a document that was checked, in microseconds since 1970.
pub(crate) fn time_of(document: &Value, name: &str) -> Option<u64> {
    let time = document.get(name).and_then(Value::as_str).and_then(rules::time)?;
    // A time before 1970 is over, as 1970 is.
    Some(u64::try_from(time.unix_timestamp_nanos() / 1_000).unwrap_or_default())
}

/// Octets in Base64.
pub(crate) fn to_base64(octets: &[u8]) -> String {
    STANDARD.encode(octets)
}

fn check(shape: &Shape, value: &Value) -> Result<(), Problem> {
    let faults = shape.check(value);
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let cause = match first {
        Fault { missing: true, .. } => Cause::MandatoryIeMissing,
        Fault { optional: true, .. } => Cause::OptionalIeIncorrect,
        _ => Cause::MandatoryIeIncorrect,
    };
    let problem = Problem::new(cause).detail(format!("{}: {}", first.pointer, first.expected));
    let params = faults.into_iter();
    Err(params.fold(problem, |problem, fault| {
        problem.invalid_param(fault.pointer, fault.expected)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_names_one_device_and_an_end() {
        let right = json!({"externalId": "a@b", "notificationDestination": "http://as.example/n",
            "monitoringType": "LOSS_OF_CONNECTIVITY", "maximumNumberOfReports": 1, "vendorExtra": [null]});
        assert!(monitoring(&right).is_ok());
        for (member, wrong) in [
            ("externalId", json!("ab")),
            ("externalId", json!(7)),
            ("msisdn", json!("43660123456")),
            ("externalGroupId", json!("g@b")),
            ("repPeriod", json!(60)),
            ("notificationDestination", json!(null)),
            ("monitoringType", json!(1)),
            ("maximumNumberOfReports", json!(0)),
            ("maximumNumberOfReports", json!("1")),
            ("monitorExpireTime", json!("tomorrow")),
            ("maximumDetectionTime", json!(-1)),
            ("idleStatusIndication", json!("true")),
        ] {
            let mut body = right.clone();
            body[member] = wrong;
            assert!(monitoring(&body).is_err(), "{body}");
        }
        let data = |text: &str| json!({"msisdn": "43660123456", "data": text});
        assert!(downlink(&data("AAE=")).is_ok());
        assert!(downlink(&data("A")).is_err());
    }
}
