//! What PCEFs report, in CCR-U, CCR-T and RAA.

use diameter_proto::kind::{Enumerated, Utf8String};
use diameter_proto::known::{self, key};
use diameter_proto::{Avp, Avps, Fault, MessageRef};
use serde_json::{Value, json};

use super::request::RequestKind;
use super::{location, triggers, usage};
use crate::avp::{self, Names, push};
use crate::json::{self, Object};

/// Rule-Failure-Code (TS 29.212 §5.3.38) and `FailureCode` (TS 29.512).
pub(super) const FAILURE_CODE: Names = &[
    (1, "UNK_RULE_ID"),
    (2, "RA_GR_ERR"),
    (3, "SER_ID_ERR"),
    (4, "NF_MAL"),
    (5, "RES_LIM"),
    (6, "MAX_NR_QoS_FLOW"),
    (9, "MISS_FLOW_INFO"),
    (10, "RES_ALLO_FAIL"),
    (11, "UNSUCC_QOS_VAL"),
    (12, "INCOR_FLOW_INFO"),
    (13, "PS_TO_CS_HAN"),
    (14, "APP_ID_ERR"),
    (15, "NO_QOS_FLOW_BOUND"),
    (16, "FILTER_RES"),
    (17, "AN_GW_FAILE"),
    (18, "MISS_REDI_SER_ADDR"),
    (19, "CM_END_USER_SER_DENIED"),
    (20, "CM_CREDIT_CON_NOT_APP"),
    (21, "CM_AUTH_REJ"),
    (22, "CM_USER_UNK"),
    (23, "CM_RAT_FAILED"),
];
const FINAL_UNIT_ACTION: Names = &[(0, "TERMINATE"), (1, "REDIRECT"), (2, "RESTRICT_ACCESS")];
/// Packet-Filter-Operation and `RuleOperation`, as the standard spells it.
const RULE_OPERATION: Names = &[
    (0, "MODIFY_ PCC_RULE_AND_DELETE_PACKET_FILTERS"),
    (1, "CREATE_PCC_RULE"),
    (2, "MODIFY_ PCC_RULE_AND_REPLACE_PACKET_FILTERS"),
];
const FLOW_DIRECTION: Names = &[
    (0, "UNSPECIFIED"),
    (1, "DOWNLINK"),
    (2, "UPLINK"),
    (3, "BIDIRECTIONAL"),
];

/// Member of `gx` with the IP-CAN-Type as a number, which Rx answers repeat.
pub(crate) const IP_CAN_MEMBER: &str = "ipCanType";

/// `ruleStatus` of a rule that is kept while its bearer is lost.
const TEMPORARILY_INACTIVE: &str = "TEMPORARILY_INACTIVE";
/// Member that stands while a message is read: it reports RECOVERY_OF_BEARER.
const RECOVERED: &str = "recovered";

/// What an RAA reports, as `SmPolicyUpdateContextData`.
///
/// # Errors
/// A [`Fault`] where an AVP is wrong.
pub fn read_report(message: MessageRef<'_>) -> Result<Value, Fault> {
    let mut document = Object::new();
    read(message.walk(), &mut document, RequestKind::Update)?;
    Ok(Value::Object(document))
}

/// Reads what Gx messages have in common.
pub(crate) fn read(avps: Avps<'_>, document: &mut Object, kind: RequestKind) -> Result<(), Fault> {
    let whole = avps.clone();
    avp::walk(avps, |avp| {
        read_access(avp, document)?;
        read_default(avp, document)?;
        read_report_avp(avp, document, kind)
    })?;
    add_guarantees(document);
    if let Some(operation) = whole.clone().get(known::PACKET_FILTER_OPERATION)? {
        let request = resource_request(whole, operation)?;
        document.insert("ueInitResReq".to_owned(), request);
    }
    Ok(())
}

/// `qncReports` of rules whose bearer is lost for a time or is back (LOSS_OF_BEARER, RECOVERY_OF_BEARER, TS 29.212 §5.3.7, §4.5.6): what
/// AFs hear of both over Rx and N5.
fn add_guarantees(document: &mut Object) {
    let recovered = document.shift_remove(RECOVERED).is_some();
    let reports = document.get("ruleReports").and_then(Value::as_array);
    let guarantees = reports.into_iter().flatten().filter_map(|report| {
        let kind = match json::text(report, "ruleStatus")? {
            TEMPORARILY_INACTIVE => "NOT_GUARANTEED",
            "ACTIVE" if recovered => "GUARANTEED",
            _ => return None,
        };
        Some(json!({"refPccRuleIds": report.get("pccRuleIds")?, "notifType": kind}))
    });
    let guarantees: Vec<Value> = guarantees.collect();
    if !guarantees.is_empty() {
        document.insert("qncReports".to_owned(), Value::Array(guarantees));
    }
}

/// The access and where the UE is.
fn read_access(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    match avp.key() {
        key::IP_CAN_TYPE => {
            let ip_can = avp.read::<Enumerated>()?;
            document.insert("accessType".to_owned(), avp::access_type(ip_can).into());
            gx(document).insert(IP_CAN_MEMBER.to_owned(), ip_can.into());
        }
        key::RAT_TYPE => json::put(document, "ratType", avp::named(avp, avp::RAT_TYPE)?),
        key::TGPP_SGSN_MCC_MNC => {
            let digits = avp.read::<Utf8String>()?;
            if (5..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let (mcc, mnc) = digits.split_at(3);
                document.insert("servingNetwork".to_owned(), json!({"mcc": mcc, "mnc": mnc}));
            }
        }
        key::TGPP_USER_LOCATION_INFO => match location::location(avp.data) {
            Some(location) => drop(document.insert("userLocationInfo".to_owned(), location)),
            None => drop(gx(document).insert("userLocationInfo".to_owned(), avp::hex(avp.data).into())),
        },
        key::TGPP_MS_TIMEZONE => json::put(document, "ueTimeZone", location::time_zone(avp.data)),
        key::AN_GW_ADDRESS => {
            let address = avp.read::<diameter_proto::kind::Address>()?.ip();
            if let Some(address) = address {
                push(gx(document), "anGwAddresses", address.to_string().into());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Quality of service of the session.
fn read_default(avp: &Avp<'_>, document: &mut Object) -> Result<(), Fault> {
    match avp.key() {
        key::DEFAULT_EPS_BEARER_QOS => {
            let group = avp.group();
            let mut qos = Object::new();
            json::put(&mut qos, "5qi", group.clone().get(known::QOS_CLASS_IDENTIFIER)?);
            if let Some(arp) = group.find(known::ALLOCATION_RETENTION_PRIORITY)? {
                qos.insert("arp".to_owned(), avp::arp(&arp)?);
            }
            document.insert("subsDefQos".to_owned(), Value::Object(qos));
        }
        key::QOS_INFORMATION => {
            let group = avp.group();
            let up = avp::get_rate(
                &group,
                known::APN_AGGREGATE_MAX_BITRATE_UL,
                known::EXTENDED_APN_AMBR_UL,
            )?;
            let down = avp::get_rate(
                &group,
                known::APN_AGGREGATE_MAX_BITRATE_DL,
                known::EXTENDED_APN_AMBR_DL,
            )?;
            if let (Some(up), Some(down)) = (up, down) {
                document.insert("subsSessAmbr".to_owned(), json!({"uplink": up, "downlink": down}));
            }
        }
        key::NETWORK_REQUEST_SUPPORT => {
            let supported = avp.read::<Enumerated>()? == 1;
            gx(document).insert("networkRequestSupport".to_owned(), supported.into());
        }
        _ => {}
    }
    Ok(())
}

fn read_report_avp(avp: &Avp<'_>, document: &mut Object, kind: RequestKind) -> Result<(), Fault> {
    match avp.key() {
        key::EVENT_TRIGGER => {
            let code = avp.read::<Enumerated>()?;
            gx_event(document, code);
        }
        key::EVENT_REPORT_INDICATION => {
            avp::walk(avp.group(), |inner| {
                read_access(inner, document)?;
                if inner.is(known::EVENT_TRIGGER) {
                    gx_event(document, inner.read::<Enumerated>()?);
                }
                Ok(())
            })?;
        }
        key::CHARGING_RULE_REPORT => push(document, "ruleReports", rule_report(avp)?),
        key::USAGE_MONITORING_INFORMATION => {
            if let Some(report) = usage::read(avp)? {
                push(document, "accuUsageReports", report);
            }
        }
        key::APPLICATION_DETECTION_INFORMATION => {
            push(document, "appDetectionInfos", detection(avp)?);
        }
        key::ACCESS_NETWORK_CHARGING_ADDRESS => {
            json::put(document, "chargEntityAddr", avp::charging_address(avp)?);
        }
        key::ACCESS_NETWORK_CHARGING_IDENTIFIER_GX => {
            let identifier = charging_identifier(avp)?;
            if kind == RequestKind::Initial {
                document.entry("accNetChId").or_insert(identifier);
            } else {
                push(document, "accNetChIds", identifier);
            }
        }
        key::TGPP_PS_DATA_OFF_STATUS => {
            let active = avp.read::<Enumerated>()? == 0;
            document.insert("3gppPsDataOffStatus".to_owned(), active.into());
        }
        key::TERMINATION_CAUSE => {
            gx(document).insert("terminationCause".to_owned(), avp.read::<Enumerated>()?.into());
        }
        _ => {}
    }
    Ok(())
}

/// An event: its trigger of N7, or its number where it has none there.
fn gx_event(document: &mut Object, code: i32) {
    const RECOVERY_OF_BEARER: i32 = 6;
    if code == RECOVERY_OF_BEARER {
        document.insert(RECOVERED.to_owned(), true.into());
    }
    match triggers::trigger(code) {
        Some(trigger) => {
            let known = document.get("repPolicyCtrlReqTriggers").and_then(Value::as_array);
            if !known.is_some_and(|known| known.iter().any(|known| known == trigger)) {
                push(document, "repPolicyCtrlReqTriggers", trigger.into());
            }
        }
        None => push(gx(document), "eventTriggers", code.into()),
    }
}

/// Members that only Gx has.
fn gx(document: &mut Object) -> &mut Object {
    json::object(document.entry("gx").or_insert_with(|| json!({})))
}

/// `RuleReport`.
fn rule_report(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut report = Object::new();
    report.insert("pccRuleIds".to_owned(), json!([]));
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::CHARGING_RULE_NAME | key::CHARGING_RULE_BASE_NAME => {
                push(&mut report, "pccRuleIds", avp::text(inner).into());
            }
            key::PCC_RULE_STATUS => {
                // TS 29.212 §5.3.19. N7 has no word for a rule that the PCEF keeps while its bearer is lost.
                let status = match inner.read::<Enumerated>()? {
                    0 => "ACTIVE",
                    2 => TEMPORARILY_INACTIVE,
                    _ => "INACTIVE",
                };
                report.insert("ruleStatus".to_owned(), status.into());
            }
            key::RULE_FAILURE_CODE => {
                json::put(&mut report, "failureCode", avp::named(inner, FAILURE_CODE)?);
            }
            key::FINAL_UNIT_INDICATION => {
                let action = inner.group().get(known::FINAL_UNIT_ACTION)?;
                let name = action.and_then(|action| avp::name(FINAL_UNIT_ACTION, action));
                json::put(&mut report, "finUnitAct", name);
            }
            key::RAN_NAS_RELEASE_CAUSE => {
                push(
                    &mut report,
                    "ranNasRelCauses",
                    json!({"epsCause": avp::hex(inner.data)}),
                );
            }
            key::CONTENT_VERSION => {
                let version = inner.read::<diameter_proto::kind::Unsigned64>()?;
                push(&mut report, "contVers", version.into());
            }
            _ => {}
        }
        Ok(())
    })?;
    report.entry("ruleStatus").or_insert_with(|| "ACTIVE".into());
    Ok(Value::Object(report))
}

/// `AccNetChId`. Four bytes are the number of a 3GPP access.
fn charging_identifier(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut out = Object::new();
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::ACCESS_NETWORK_CHARGING_IDENTIFIER_VALUE => match <[u8; 4]>::try_from(inner.data) {
                Ok(bytes) => {
                    out.insert("accNetChaIdValue".to_owned(), u32::from_be_bytes(bytes).into());
                }
                Err(_) => {
                    out.insert("accNetChargId".to_owned(), avp::text(inner).into());
                }
            },
            key::CHARGING_RULE_NAME | key::CHARGING_RULE_BASE_NAME => {
                push(&mut out, "refPccRuleIds", avp::text(inner).into());
            }
            _ => {}
        }
        Ok(())
    })?;
    let whole = !out.contains_key("refPccRuleIds");
    out.insert("sessionChScope".to_owned(), whole.into());
    Ok(Value::Object(out))
}

/// `AppDetectionInfo`.
fn detection(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut out = Object::new();
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::TDF_APPLICATION_IDENTIFIER => {
                out.insert("appId".to_owned(), avp::text(inner).into());
            }
            key::TDF_APPLICATION_INSTANCE_IDENTIFIER => {
                out.insert("instanceId".to_owned(), avp::text(inner).into());
            }
            key::FLOW_INFORMATION => push(&mut out, "sdfDescriptions", flow_information(inner)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Value::Object(out))
}

/// `FlowInformation` of a Flow-Information.
fn flow_information(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut out = Object::new();
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::FLOW_DESCRIPTION => {
                out.insert("flowDescription".to_owned(), avp::text(inner).into());
            }
            key::TOS_TRAFFIC_CLASS => {
                out.insert("tosTrafficClass".to_owned(), avp::hex(inner.data).into());
            }
            key::FLOW_DIRECTION => {
                json::put(&mut out, "flowDirection", avp::named(inner, FLOW_DIRECTION)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(Value::Object(out))
}

/// `UeInitiatedResourceRequest`: what the UE wants of a dedicated bearer (TS 29.212 §4.5.4).
fn resource_request(avps: Avps<'_>, operation: i32) -> Result<Value, Fault> {
    let mut request = Object::new();
    let operation = avp::name(RULE_OPERATION, operation).unwrap_or("CREATE_PCC_RULE");
    request.insert("ruleOp".to_owned(), operation.into());
    request.insert("packFiltInfo".to_owned(), json!([]));
    avp::walk(avps, |avp| {
        match avp.key() {
            key::PACKET_FILTER_INFORMATION => push(&mut request, "packFiltInfo", packet_filter(avp)?),
            key::QOS_INFORMATION => {
                let group = avp.group();
                let mut qos = Object::new();
                json::put(&mut qos, "5qi", group.clone().get(known::QOS_CLASS_IDENTIFIER)?);
                let up = avp::get_rate(&group, known::GUARANTEED_BITRATE_UL, known::EXTENDED_GBR_UL)?;
                let down = avp::get_rate(&group, known::GUARANTEED_BITRATE_DL, known::EXTENDED_GBR_DL)?;
                json::put(&mut qos, "gbrUl", up);
                json::put(&mut qos, "gbrDl", down);
                if qos.contains_key("5qi") {
                    request.insert("reqQos".to_owned(), Value::Object(qos));
                }
            }
            key::CHARGING_RULE_REPORT => {
                if let Some(name) = avp.group().find(known::CHARGING_RULE_NAME)? {
                    request.insert("pccRuleId".to_owned(), avp::text(&name).into());
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(Value::Object(request))
}

/// `PacketFilterInfo`.
fn packet_filter(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut out = Object::new();
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::PACKET_FILTER_IDENTIFIER => {
                out.insert("packFiltId".to_owned(), avp::hex(inner.data).into());
            }
            key::PACKET_FILTER_CONTENT => {
                out.insert("packFiltCont".to_owned(), avp::text(inner).into());
            }
            key::TOS_TRAFFIC_CLASS => {
                out.insert("tosTrafficClass".to_owned(), avp::hex(inner.data).into());
            }
            key::FLOW_DIRECTION => {
                json::put(&mut out, "flowDirection", avp::named(inner, FLOW_DIRECTION)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(Value::Object(out))
}
