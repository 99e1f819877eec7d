//! S6t (TS 29.336 §7, §8): what T8 asks of the HSS, and what HSS, MME and SGSN report.

use std::time::Duration;

use diameter::proto::kind::{Grouped, Tag, TimeValue};
use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpWriter, Avps, Fault, Message, MessageBuilder, MessageMut, ResultCode};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::Diameter;
use crate::identity;
use crate::record::Subscription;
use crate::shape;

/// NO_STATE_MAINTAINED (RFC 6733 §8.11): sessions end with their answer.
const NO_STATE: i32 = 1;

/// DIAMETER_ERROR_SCEF_REFERENCE_ID_UNKNOWN (TS 29.336 §8.3).
pub(crate) const REFERENCE_UNKNOWN: ResultCode = ResultCode(5515);

/// Monitoring types of T8 that are served, with their Monitoring-Type (TS 29.336 §8.4.7).
const TYPES: [(&str, u32); 7] = [
    ("LOSS_OF_CONNECTIVITY", 0),
    ("UE_REACHABILITY", 1),
    ("LOCATION_REPORTING", 2),
    ("CHANGE_OF_IMSI_IMEI_ASSOCIATION", 3),
    ("ROAMING_STATUS", 4),
    ("COMMUNICATION_FAILURE", 5),
    ("AVAILABILITY_AFTER_DDN_FAILURE", 6),
];

/// A request, begun: a new Session-Id, Auth-Session-State, origin and destination.
pub(crate) fn begin(
    settings: &Diameter,
    (command, application): (u32, u32),
    session: &str,
    (host, realm): (Option<&str>, &str),
    fixed: impl FnOnce(&mut AvpWriter),
) -> MessageBuilder {
    let mut request = MessageBuilder::request(command, application);
    request.put(known::SESSION_ID, session);
    fixed(&mut request);
    request
        .put(known::AUTH_SESSION_STATE, NO_STATE)
        .put(known::ORIGIN_HOST, &settings.host)
        .put(known::ORIGIN_REALM, &settings.realm)
        .maybe(known::DESTINATION_HOST, host)
        .put(known::DESTINATION_REALM, realm);
    request
}

/// A new Session-Id (RFC 6733 §8.8).
pub(crate) fn session_id(settings: &Diameter) -> String {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    format!("{};{};{}", settings.host, high as u32, low as u32)
}

/// The Monitoring-Type of a subscription, if it is served.
pub(crate) fn monitoring_type(document: &Value) -> Option<u32> {
    let name = document.get("monitoringType").and_then(Value::as_str)?;
    let (_, code) = TYPES.iter().find(|(known, _)| *known == name)?;
    let idle = document.get("idleStatusIndication") == Some(&Value::Bool(true));
    Some(match (code, idle) {
        // …_AND_IDLE_STATUS_INDICATION.
        (1, true) => 8,
        (6, true) => 9,
        (code, _) => *code,
    })
}

/// The feature of the API that the monitoring type of a subscription is, if it is served: 1 to 7 of TS 29.122 table 5.3.4-1, which
/// has the types in the order of their codes.
pub(crate) fn feature(document: &Value) -> Option<usize> {
    let name = document.get("monitoringType").and_then(Value::as_str)?;
    let place = TYPES.iter().position(|(known, _)| *known == name)?;
    Some(place + 1)
}

/// The last Time, 2^31 - 1 seconds after 2036-02-07T06:28:16Z (RFC 6733 §4.3.1, RFC 5905 §6).
pub(crate) const LAST_TIME: &str = "2104-02-26T09:42:23Z";

fn number(document: &Value, name: &str) -> Option<u32> {
    document.get(name).and_then(Value::as_u64)?.try_into().ok()
}

/// Time of microseconds since 1970.
pub(crate) fn time(micros: u64) -> Option<TimeValue> {
    TimeValue::from_unix_seconds(i64::try_from(micros / 1_000_000).ok()?)
}

/// Whether a Time holds this one (RFC 6733 §4.3.1): none after [`LAST_TIME`].
pub(crate) fn is_held(micros: Option<u64>) -> bool {
    micros.is_none_or(|micros| time(micros).is_some())
}

/// CIR that configures the event of a subscription, in place of an earlier one with the same reference.
pub(crate) fn configure(settings: &Diameter, subscription: &Subscription) -> Option<MessageMut> {
    let document = &subscription.document;
    configuration(settings, document, |event| {
        event
            .put(known::SCEF_REFERENCE_ID, subscription.reference)
            .put(known::SCEF_ID, &settings.host)
            .put(
                known::MONITORING_TYPE,
                monitoring_type(document).unwrap_or_default(),
            )
            .maybe(known::MAXIMUM_NUMBER_OF_REPORTS, maximum_reports(document))
            .maybe(known::MONITORING_DURATION, subscription.expires.and_then(time))
            .maybe(
                known::MAXIMUM_DETECTION_TIME,
                number(document, "maximumDetectionTime"),
            );
        put_details(event, document);
    })
}

/// Maximum-Number-of-Reports, which is absent for AVAILABILITY_AFTER_DDN_FAILURE (TS 29.336 §8.4.8): there the SCEF counts.
fn maximum_reports(document: &Value) -> Option<u32> {
    match monitoring_type(document) {
        Some(6 | 9) => None,
        _ => reports_of(document),
    }
}

/// CIR that deletes the event of a subscription.
pub(crate) fn delete(settings: &Diameter, subscription: &Subscription) -> Option<MessageMut> {
    let document = &subscription.document;
    configuration(settings, document, |event| {
        event
            .put(known::SCEF_ID, &settings.host)
            .put(
                known::MONITORING_TYPE,
                monitoring_type(document).unwrap_or_default(),
            )
            .put(known::SCEF_REFERENCE_ID_FOR_DELETION, subscription.reference);
    })
}

fn configuration(
    settings: &Diameter,
    document: &Value,
    event: impl FnOnce(&mut AvpWriter),
) -> Option<MessageMut> {
    let which = (command::CONFIGURATION_INFORMATION, application::S6T);
    let mut request = begin(settings, which, &session_id(settings), settings.hss(), |_| {});
    identity::put_user(&mut request, document);
    request.group(known::MONITORING_EVENT_CONFIGURATION, event);
    if is_group(document) {
        request.maybe(known::GROUP_REPORTING_GUARD_TIMER, guard_seconds(document));
    }
    request.finish().ok()
}

/// What is particular to a type of event (TS 29.336 §8.4.9, §8.4.15, §8.4.18).
fn put_details(event: &mut AvpWriter, document: &Value) {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    match monitoring_type(document) {
        Some(1 | 8) => {
            let packets = number(document, "suggestedNumberOfDlPackets");
            let packets = packets.and_then(|packets| i32::try_from(packets).ok());
            // Bit 0: SMS, bit 1: data.
            let reachability = if text("reachabilityType") == Some("SMS") {
                1
            } else {
                2
            };
            event.group(known::UE_REACHABILITY_CONFIGURATION, |group| {
                group
                    .put(known::REACHABILITY_TYPE, reachability)
                    .maybe(known::MAXIMUM_LATENCY, number(document, "maximumLatency"))
                    .maybe(
                        known::MAXIMUM_RESPONSE_TIME,
                        number(document, "maximumResponseTime"),
                    )
                    .maybe(known::DL_BUFFERING_SUGGESTED_PACKET_COUNT, packets);
            });
        }
        Some(2) => {
            let current = text("locationType").is_none_or(|kind| kind == "CURRENT_LOCATION");
            let accuracy = match text("accuracy") {
                Some("CGI_ECGI") => Some(0),
                Some("ENODEB") => Some(1),
                Some("TA_RA") => Some(2),
                Some("PLMN") => Some(4),
                _ => None,
            };
            event.group(known::LOCATION_INFORMATION_CONFIGURATION, |group| {
                group
                    .put(known::MONTE_LOCATION_TYPE, u32::from(!current))
                    .maybe(known::ACCURACY, accuracy)
                    .maybe(known::PERIODIC_TIME, number(document, "minimumReportInterval"));
            });
        }
        Some(3) => {
            let association = u32::from(text("associationType") == Some("IMEISV"));
            event.put(known::ASSOCIATION_TYPE, association);
        }
        Some(4) => {
            // TRUE (0), which is the default, and FALSE (1) (TS 29.336 §8.4.68). T8 asks for no network by default.
            let wanted = document.get("plmnIndication") == Some(&Value::Bool(true));
            event.put(known::PLMN_ID_REQUESTED, i32::from(!wanted));
        }
        _ => {}
    }
    if let Some(provider) = text("mtcProviderId") {
        event.group(known::MTC_PROVIDER_INFO, |group| {
            group.put(known::MTC_PROVIDER_ID, provider);
        });
    }
}

/// Whether the HSS sends this many reports: one, for reachability for SMS and for the last known location (TS 29.336 §8.4.8).
pub(crate) fn permits_reports(document: &Value) -> bool {
    let is = |name: &str, value: &str| document.get(name).and_then(Value::as_str) == Some(value);
    let once = match monitoring_type(document) {
        Some(1 | 8) => is("reachabilityType", "SMS"),
        Some(2) => is("locationType", "LAST_KNOWN_LOCATION"),
        _ => false,
    };
    !once || reports_of(document).is_none_or(|reports| reports == 1)
}

/// NIR that asks whether a device is authorized for NIDD.
pub(crate) fn authorize(
    settings: &Diameter,
    document: &Value,
    apn: &str,
    until: Option<u64>,
) -> Option<MessageMut> {
    let which = (command::NIDD_INFORMATION, application::S6T);
    let mut request = begin(settings, which, &session_id(settings), settings.hss(), |_| {});
    identity::put_user(&mut request, document);
    request.group(known::NIDD_AUTHORIZATION_REQUEST, |group| {
        group
            .maybe(known::SERVICE_SELECTION, Some(apn).filter(|apn| !apn.is_empty()))
            .maybe(known::REQUESTED_VALIDITY_TIME, until.and_then(time));
    });
    request.finish().ok()
}

/// What an HSS has authorized.
#[derive(Debug)]
pub(crate) struct Authorized {
    /// Origin-Host of the answer.
    pub(crate) hss: String,
    pub(crate) imsi: Option<String>,
    /// Until when, in microseconds since 1970.
    pub(crate) until: Option<u64>,
}

/// What a NIA authorizes.
pub(crate) fn authorized(answer: &Message) -> Result<Authorized, Fault> {
    let hss = answer.require(known::ORIGIN_HOST)?.to_owned();
    let group = answer.get(known::NIDD_AUTHORIZATION_RESPONSE)?;
    let Some(group) = group else {
        return Ok(Authorized {
            hss,
            imsi: None,
            until: None,
        });
    };
    let granted = group.clone().get(known::GRANTED_VALIDITY_TIME)?;
    Ok(Authorized {
        hss,
        imsi: identity::imsi(group)?,
        until: granted.map(micros),
    })
}

/// A member of a group for which the HSS has authorized NIDD.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) imsi: String,
    /// `externalId` or `msisdn`.
    pub(crate) user: Map<String, Value>,
    /// Until when, in microseconds since 1970.
    pub(crate) until: Option<u64>,
}

/// The members of a group that a NIA authorizes: each has a NIDD-Authorization-Response with its IMSI and the identity that T8 knows it by.
/// Others are left out.
pub(crate) fn authorized_members(answer: &Message) -> Result<Vec<Member>, Fault> {
    let mut members = Vec::new();
    for group in groups(answer.avps(), known::NIDD_AUTHORIZATION_RESPONSE) {
        let mut user = Map::new();
        identity::copy_member(&group, &mut user)?;
        let until = group.clone().get(known::GRANTED_VALIDITY_TIME)?.map(micros);
        if let Some(imsi) = identity::imsi(group)?.filter(|_| !user.is_empty()) {
            members.push(Member { imsi, user, until });
        }
    }
    Ok(members)
}

/// A NIDD configuration whose `duration` is at most what the HSS has granted, and when it ends.
pub(crate) fn within_grant(mut document: Value, granted: Option<u64>) -> (Value, Option<u64>) {
    let asked = shape::time_of(&document, "duration");
    let Some(granted) = granted.filter(|granted| asked.is_none_or(|asked| asked > *granted)) else {
        return (document, asked);
    };
    if let Some(shown) = time(granted).and_then(date_time) {
        document["duration"] = shown.into();
    }
    (document, Some(granted))
}

/// Microseconds since 1970 of a Time.
pub(crate) fn micros(time: TimeValue) -> u64 {
    let since = time.to_system_time().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// `DateTime` of a Time.
pub(crate) fn date_time(time: TimeValue) -> Option<String> {
    OffsetDateTime::from(time.to_system_time()).format(&Rfc3339).ok()
}

/// Result-Code, or Experimental-Result-Code with its vendor, of an answer that is not a success.
pub(crate) fn refusal(answer: &Message) -> Option<(u32, u32)> {
    let code = answer.get(known::RESULT_CODE).ok().flatten();
    if let Some(code) = code {
        return (code / 1_000 != 2).then_some((0, code));
    }
    let group = answer.get(known::EXPERIMENTAL_RESULT).ok().flatten()?;
    let vendor = group
        .clone()
        .get(known::VENDOR_ID)
        .ok()
        .flatten()
        .unwrap_or_default();
    let code = group.get(known::EXPERIMENTAL_RESULT_CODE).ok().flatten()?;
    (code / 1_000 != 2).then_some((vendor, code))
}

/// Why a CIA that is a success did not configure the event: a Service-Result of Monitoring-Event-Config-Status (TS 29.336 §8.4.24).
pub(crate) fn config_refusal(answer: &Message) -> Option<(u32, u32)> {
    let mut statuses = groups(answer.avps(), known::MONITORING_EVENT_CONFIG_STATUS);
    statuses.find_map(|status| service_refusal(status).ok().flatten())
}

/// Vendor and code of the first Service-Report that is not a success; there may be several.
fn service_refusal(avps: Avps<'_>) -> Result<Option<(u32, u32)>, Fault> {
    for report in groups(avps, known::SERVICE_REPORT) {
        let Some(result) = report.get(known::SERVICE_RESULT)? else {
            continue;
        };
        let vendor = result.clone().get(known::VENDOR_ID)?.unwrap_or_default();
        let code = result.get(known::SERVICE_RESULT_CODE)?;
        if let Some(code) = code.filter(|code| code / 1_000 != 2) {
            return Ok(Some((vendor, code)));
        }
    }
    Ok(None)
}

/// The reports of a message, as long as it is whole.
pub(crate) fn reports<B: AsRef<[u8]>>(message: &Message<B>) -> impl Iterator<Item = Avps<'_>> {
    groups(message.avps(), known::MONITORING_EVENT_REPORT)
}

/// The groups of this kind, as long as what they are in is whole.
pub(crate) fn groups<'a>(avps: Avps<'a>, tag: Tag<Grouped>) -> impl Iterator<Item = Avps<'a>> {
    let avps = avps.map_while(Result::ok);
    avps.filter(move |avp| avp.is(tag)).map(|avp| avp.group())
}

/// Why the HSS or an MME has not configured the event for a member of a group: a Service-Result of a Group-Report-Item.
pub(crate) fn item_refusal(item: &Avps<'_>) -> Result<Option<u32>, Fault> {
    Ok(service_refusal(item.clone())?.map(|(_, code)| code))
}

/// Event-Handling of a report (TS 29.336 §8.4.43): what the network has done with the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// SUSPEND or RESUME, which T8 has no word for.
    Paused,
    /// CANCEL.
    Cancelled,
}

/// What a report says of the event itself; none: it reports the event.
pub(crate) fn handling(content: &Avps<'_>) -> Option<Handling> {
    const EVENT_HANDLING: (u32, u32) = (known::VENDOR_3GPP, 3149);
    let mut avps = content.clone().map_while(Result::ok);
    let found = avps.find(|avp| (avp.vendor, avp.code) == EVENT_HANDLING)?;
    match found.data {
        [0, 0, 0, 0 | 1] => Some(Handling::Paused),
        [0, 0, 0, 2] => Some(Handling::Cancelled),
        _ => None,
    }
}

/// Whether a Group-Report-Item says that the event is configured for the member, and has no event: User-Identifier and successful
/// Service-Reports alone.
pub(crate) fn is_confirmation(item: &Avps<'_>) -> bool {
    let mut avps = item.clone().map_while(Result::ok);
    let is_plain = avps.all(|avp| avp.is(known::USER_IDENTIFIER) || avp.is(known::SERVICE_REPORT));
    is_plain && item_refusal(item).is_ok_and(|refusal| refusal.is_none())
}

/// Refuses a report of an event without what the event consists of, with DIAMETER_MISSING_AVP. Why a connection was lost may be unknown
/// (TS 29.122 table 5.3.2.3.2-1).
pub(crate) fn check_report(document: &Value, content: &Avps<'_>) -> Result<(), Fault> {
    let get = || content.clone();
    match monitoring_type(document) {
        Some(8) if get().get(known::IDLE_STATUS_INDICATION)?.is_some() => Ok(()),
        Some(1 | 8) => get().require(known::REACHABILITY_INFORMATION).map(drop),
        Some(2) => get().require(known::EPS_LOCATION_INFORMATION).map(drop),
        Some(3) => get().require(known::IMEI_CHANGE).map(drop),
        Some(4) => get().require(known::ROAMING_INFORMATION).map(drop),
        Some(5) => get().require(known::COMMUNICATION_FAILURE_INFORMATION).map(drop),
        _ => Ok(()),
    }
}

/// `MonitoringEventReport` (TS 29.122 §5.3.2.3.2) of a Monitoring-Event-Report about a subscription, or of a Group-Report-Item. `user` is
/// the device that is reported of, where the subscription is to a group.
pub(crate) fn report(document: &Value, user: Option<&Avps<'_>>, group: &Avps<'_>) -> Result<Value, Fault> {
    let mut report = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        report.extend(value.map(|value| (name.to_owned(), value)));
    };
    let get = || group.clone();
    add("monitoringType", document.get("monitoringType").cloned());
    let reason = get().get(known::LOSS_OF_CONNECTIVITY_REASON)?;
    add("lossOfConnectReason", reason.map(Value::from));
    let reachable = get().get(known::REACHABILITY_INFORMATION)?;
    let reachable = reachable.map(|kind| if kind == 0 { "SMS" } else { "DATA" });
    add("reachabilityType", reachable.map(Value::from));
    let roaming = get().get(known::ROAMING_INFORMATION)?;
    // SUBSCRIBER_ROAMING (0).
    add("roamingStatus", roaming.map(|status| Value::Bool(status == 0)));
    let plmn = get().get(known::VISITED_PLMN_ID)?;
    add("plmnId", plmn.and_then(identity::plmn_id));
    let change = get().get(known::IMEI_CHANGE)?;
    // Bit 0: the IMEI, bit 1: the software version alone.
    let change = change.map(|bits| if bits & 1 == 1 { "IMEI" } else { "IMEISV" });
    add("imeiChange", change.map(Value::from));
    let eps = get().get(known::EPS_LOCATION_INFORMATION)?;
    let place = eps.as_ref().map(identity::location).transpose()?.flatten();
    add("locationInfo", place);
    let until = get().get(known::MAXIMUM_UE_AVAILABILITY_TIME)?;
    add(
        "maxUEAvailabilityTime",
        until.and_then(date_time).map(Value::from),
    );
    let at = get().get(known::REPORTING_TIME_STAMP)?;
    add("eventTime", at.and_then(date_time).map(Value::from));
    let failure = get().get(known::COMMUNICATION_FAILURE_INFORMATION)?;
    add(
        "failureCause",
        failure.map(|group| failure_cause(&group)).transpose()?,
    );
    let idle = get().get(known::IDLE_STATUS_INDICATION)?;
    add(
        "idleStatusInfo",
        idle.map(|group| idle_status(&group)).transpose()?,
    );
    match user.filter(|_| is_group(document)) {
        Some(user) => identity::copy_member(user, &mut report)?,
        None => identity::copy_user(document, &mut report),
    }
    Ok(Value::Object(report))
}

/// `FailureCause` (TS 29.122 §5.3.2.3.6).
fn failure_cause(group: &Avps<'_>) -> Result<Value, Fault> {
    let mut cause = Map::new();
    for (name, tag) in [
        ("causeType", known::CAUSE_TYPE),
        ("s1ApCause", known::S1AP_CAUSE),
        ("ranapCause", known::RANAP_CAUSE),
        ("bssgpCause", known::BSSGP_CAUSE),
        ("gmmCause", known::GMM_CAUSE),
        ("smCause", known::SM_CAUSE),
    ] {
        let value = group.clone().get(tag)?;
        cause.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    Ok(Value::Object(cause))
}

/// `IdleStatusInfo` (TS 29.122 §5.3.2.3.3).
fn idle_status(group: &Avps<'_>) -> Result<Value, Fault> {
    let mut idle = Map::new();
    for (name, tag) in [
        ("activeTime", known::ACTIVE_TIME),
        ("periodicAUTimer", known::SUBSCRIBED_PERIODIC_RAU_TAU_TIMER),
    ] {
        let value = group.clone().get(tag)?;
        idle.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    let at = group.clone().get(known::IDLE_STATUS_TIMESTAMP)?;
    let at = at.and_then(date_time);
    idle.extend(at.map(|at| ("idleStatusTimestamp".to_owned(), json!(at))));
    Ok(Value::Object(idle))
}

/// When a subscription ends by itself, in microseconds since 1970.
pub(crate) fn ends(document: &Value) -> Option<u64> {
    shape::time_of(document, "monitorExpireTime")
}

/// Whether a subscription is to the events of a group of devices.
pub(crate) fn is_group(document: &Value) -> bool {
    document.get("externalGroupId").is_some()
}

fn guard_seconds(document: &Value) -> Option<u32> {
    number(document, "groupReportGuardTime").filter(|seconds| *seconds > 0)
}

/// For how long reports of a group are gathered (TS 23.682 §5.6.0); none: not at all.
pub(crate) fn guard_time(document: &Value) -> Option<Duration> {
    let seconds = guard_seconds(document).filter(|_| is_group(document));
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// How many reports end a subscription. That to a group has as many of each member (TS 23.682 §5.6.0), of which HSS, MME and SGSN
/// keep count.
pub(crate) fn last_report(document: &Value) -> Option<u32> {
    reports_of(document).filter(|_| !is_group(document))
}

/// How many reports a subscription has.
fn reports_of(document: &Value) -> Option<u32> {
    number(document, "maximumNumberOfReports")
}
