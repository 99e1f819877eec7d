//! A PCC rule as Gx has it: Charging-Rule-Definition, or the name of a rule that the PCEF has (TS 29.212 §5.3.2, §5.3.4).

use bytes::Bytes;
use diameter_proto::AvpWriter;
use diameter_proto::kind::{Grouped, OctetString, Tag, TimeValue};
use diameter_proto::known;
use serde_json::{Value, json};

use crate::avp::{self, Names, put_group};
use crate::json;
use crate::rule_id::RuleId;

const FLOW_DIRECTION: Names = &[
    (0, "UNSPECIFIED"),
    (1, "DOWNLINK"),
    (2, "UPLINK"),
    (3, "BIDIRECTIONAL"),
];
const METERING_METHOD: Names = &[
    (0, "DURATION"),
    (1, "VOLUME"),
    (2, "DURATION_VOLUME"),
    (3, "EVENT"),
];
const REPORTING_LEVEL: Names = &[(0, "SER_ID_LEVEL"), (1, "RAT_GR_LEVEL"), (2, "SPON_CON_LEVEL")];
const SIGNALLING_PROTOCOL: Names = &[(0, "NO_INFORMATION"), (1, "SIP")];
const REDIRECT_ADDRESS: Names = &[(0, "IPV4_ADDR"), (1, "IPV6_ADDR"), (2, "URL"), (3, "SIP_URI")];

/// The members and AVPs of a kind of rules.
pub(super) struct RuleKind {
    /// The member of a decision.
    pub(super) member: &'static str,
    pub(super) definition: Tag<Grouped>,
    pub(super) name: Tag<OctetString>,
    pub(super) install: Tag<Grouped>,
    pub(super) remove: Tag<Grouped>,
    /// Whether an installation can ask for reports of allocation and charging identifiers.
    pub(super) has_reports: bool,
    /// Whether a rule is for a bearer, which QCI and ARP name.
    pub(super) has_bearer: bool,
}

/// PCC rules (TS 29.212 §5.3.2 to §5.3.6).
pub(super) const PCC: RuleKind = RuleKind {
    member: "pccRules",
    definition: known::CHARGING_RULE_DEFINITION,
    name: known::CHARGING_RULE_NAME,
    install: known::CHARGING_RULE_INSTALL,
    remove: known::CHARGING_RULE_REMOVE,
    has_reports: true,
    has_bearer: true,
};

/// ADC rules (TS 29.212 §5b.3).
pub(super) const ADC: RuleKind = RuleKind {
    member: "adcRules",
    definition: known::ADC_RULE_DEFINITION,
    name: known::ADC_RULE_NAME,
    install: known::ADC_RULE_INSTALL,
    remove: known::ADC_RULE_REMOVE,
    has_reports: false,
    has_bearer: false,
};

/// What applies to all rules of one Charging-Rule-Install or ADC-Rule-Install.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Terms {
    pub(super) activation: Option<TimeValue>,
    pub(super) deactivation: Option<TimeValue>,
    /// The PCEF is to report successful allocation.
    pub(super) notify: bool,
    /// The PCEF is to report charging identifiers.
    pub(super) correlate: bool,
}

/// A rule, encoded.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Definition {
    pub(super) terms: Terms,
    /// Charging-Rule-Definition, or Charging-Rule-Name of a rule that the PCEF has.
    pub(super) avp: Bytes,
}

impl Definition {
    /// The rule `id` of a complete decision.
    pub(super) fn new(decision: &Value, id: &str, rule: &Value, kind: &RuleKind) -> Self {
        let condition = json::text(rule, "refCondData").and_then(|id| decision.get("conds")?.get(id));
        let time = |member| condition.and_then(|condition| avp::time_value(json::text(condition, member)?));
        let terms = Terms {
            activation: time("activationTime"),
            deactivation: time("deactivationTime"),
            notify: kind.has_reports && is_requested(decision, id, "SUCC_RES_ALLO"),
            correlate: kind.has_reports && is_requested(decision, id, "CH_ID"),
        };
        let mut out = AvpWriter::default();
        if is_predefined(rule) {
            out.put(kind.name, id.as_bytes());
        } else {
            out.group(kind.definition, |out| {
                out.put(kind.name, id.as_bytes());
                put_rule(out, decision, id, rule, kind);
            });
        }
        Self {
            terms,
            avp: out.into_bytes(),
        }
    }
}

/// A rule without any content names one that the PCEF has (TS 29.512 §4.2.6.2.1).
fn is_predefined(rule: &Value) -> bool {
    let content = [
        "flowInfos",
        "appId",
        "refQosData",
        "refTcData",
        "refChgData",
        "precedence",
    ];
    content.iter().all(|member| rule.get(member).is_none())
}

/// Whether the SMF is asked to report this of the rule.
fn is_requested(decision: &Value, id: &str, what: &str) -> bool {
    json::items(decision, "lastReqRuleData").iter().any(|request| {
        json::texts(request, "reqData").any(|data| data == what)
            && json::texts(request, "refPccRuleIds").any(|rule| rule == id)
    })
}

/// The first entry of a section that a rule refers to.
fn referred<'a>(decision: &'a Value, rule: &Value, references: &str, section: &str) -> &'a Value {
    let id = json::texts(rule, references).next();
    let entry = id.and_then(|id| decision.get(section)?.get(id));
    entry.unwrap_or(&Value::Null)
}

fn put_rule(out: &mut AvpWriter, decision: &Value, id: &str, rule: &Value, kind: &RuleKind) {
    let charging = referred(decision, rule, "refChgData", "chgDecs");
    let traffic = referred(decision, rule, "refTcData", "traffContDecs");
    let qos = referred(decision, rule, "refQosData", "qosDecs");
    let number = |value, member| json::uint(value, member).and_then(|number| u32::try_from(number).ok());
    out.maybe(known::SERVICE_IDENTIFIER, number(charging, "serviceId"))
        .maybe(known::RATING_GROUP, number(charging, "ratingGroup"));
    for flow in json::items(rule, "flowInfos") {
        put_flow(out, flow);
    }
    if rule.get("flowInfos").is_none() {
        let application = json::text(rule, "appId").map(str::as_bytes);
        out.maybe(known::TDF_APPLICATION_IDENTIFIER, application);
    }
    let status = json::text(traffic, "flowStatus").and_then(|name| avp::value(avp::FLOW_STATUS, name));
    out.maybe(known::FLOW_STATUS, status);
    let default = default_qos(decision).filter(|_| kind.has_bearer && qos.is_object());
    put_qos(out, qos, default);
    put_charging(out, id, charging);
    out.maybe(known::PRECEDENCE, number(rule, "precedence"));
    let key = json::texts(rule, "refUmData").next().map(str::as_bytes);
    out.maybe(known::MONITORING_KEY, key);
    put_redirect(out, traffic);
    let muted = json::flag(traffic, "muteNotif") == Some(true);
    let protocol = json::text(rule, "afSigProtocol").and_then(|name| avp::value(SIGNALLING_PROTOCOL, name));
    out.maybe(known::MUTE_NOTIFICATION, muted.then_some(0))
        .maybe(known::AF_SIGNALLING_PROTOCOL, protocol);
    for (data, code) in [("USER_LOC_INFO", 0), ("MS_TIME_ZONE", 1)] {
        let wanted = is_requested(decision, id, data);
        out.maybe(known::REQUIRED_ACCESS_INFO, wanted.then_some(code));
    }
    let key = |member| json::text(qos, member).and_then(|key| key.parse().ok());
    let steering = |member| json::text(traffic, member).map(str::as_bytes);
    out.maybe(known::SHARING_KEY_DL, key("sharingKeyDl"))
        .maybe(known::SHARING_KEY_UL, key("sharingKeyUl"))
        .maybe(
            known::TRAFFIC_STEERING_POLICY_IDENTIFIER_DL,
            steering("trafficSteeringPolIdDl"),
        )
        .maybe(
            known::TRAFFIC_STEERING_POLICY_IDENTIFIER_UL,
            steering("trafficSteeringPolIdUl"),
        )
        .maybe(known::CONTENT_VERSION, json::uint(rule, "contVer"));
}

fn put_flow(out: &mut AvpWriter, flow: &Value) {
    let bytes = |member| json::text(flow, member).and_then(avp::unhex);
    let (class, direction) = (bytes("tosTrafficClass"), json::text(flow, "flowDirection"));
    out.group(known::FLOW_INFORMATION, |out| {
        out.maybe(known::FLOW_DESCRIPTION, json::text(flow, "flowDescription"))
            .maybe(known::PACKET_FILTER_IDENTIFIER, bytes("packFiltId").as_deref());
        let to_ue = json::flag(flow, "packetFilterUsage") == Some(true);
        out.maybe(known::PACKET_FILTER_USAGE, to_ue.then_some(1))
            .maybe(known::TOS_TRAFFIC_CLASS, class.as_deref())
            .maybe(
                known::FLOW_DIRECTION,
                direction.and_then(|name| avp::value(FLOW_DIRECTION, name)),
            );
    });
}

/// QoS of the default bearer; of a decision without one the lowest priority.
fn default_qos(decision: &Value) -> Option<Value> {
    let mut rules = json::entries(decision, "sessRules");
    let given = rules.find_map(|(_, rule)| rule.get("authDefQos")).cloned();
    let mut qos = given.unwrap_or_else(|| json!({}));
    json::object(&mut qos)
        .entry("arp")
        .or_insert_with(|| json!({"priorityLevel": 15}));
    Some(qos)
}

/// QoS-Information of a rule (TS 29.212 §5.3.16). QCI and ARP together say which bearer a PCC rule is for, and PCEFs refuse one
/// without either: what the rule lacks is the default bearer's.
fn put_qos(out: &mut AvpWriter, qos: &Value, default: Option<Value>) {
    let member = |name| {
        let default = default.as_ref().and_then(|default| default.get(name));
        qos.get(name).or(default)
    };
    let class = member("5qi").and_then(Value::as_u64);
    let class = class.and_then(|class| i32::try_from(class).ok());
    put_group(out, known::QOS_INFORMATION, |out| {
        out.maybe(known::QOS_CLASS_IDENTIFIER, class);
        for (member, plain, extended) in [
            (
                "maxbrUl",
                known::MAX_REQUESTED_BANDWIDTH_UL,
                known::EXTENDED_MAX_REQUESTED_BW_UL,
            ),
            (
                "maxbrDl",
                known::MAX_REQUESTED_BANDWIDTH_DL,
                known::EXTENDED_MAX_REQUESTED_BW_DL,
            ),
            ("gbrUl", known::GUARANTEED_BITRATE_UL, known::EXTENDED_GBR_UL),
            ("gbrDl", known::GUARANTEED_BITRATE_DL, known::EXTENDED_GBR_DL),
        ] {
            avp::put_rate(out, json::text(qos, member), plain, extended);
        }
        if let Some(arp) = member("arp") {
            avp::put_arp(out, arp);
        }
    });
}

fn put_charging(out: &mut AvpWriter, id: &str, charging: &Value) {
    let value = |names, member| json::text(charging, member).and_then(|name| avp::value(names, name));
    out.maybe(known::REPORTING_LEVEL, value(REPORTING_LEVEL, "reportingLevel"))
        .maybe(known::ONLINE, json::flag(charging, "online").map(i32::from))
        .maybe(known::OFFLINE, json::flag(charging, "offline").map(i32::from))
        .maybe(known::METERING_METHOD, value(METERING_METHOD, "meteringMethod"));
    let number = json::uint(charging, "afChargingIdentifier").map(|number| number.to_string());
    let identifier = json::text(charging, "afChargId").or(number.as_deref());
    if let Some(identifier) = identifier {
        out.put(known::AF_CHARGING_IDENTIFIER, identifier.as_bytes());
        // With the AF's identifier goes which of its flows the rule is (TS 29.212 §5.3.4).
        if let Some(id) = RuleId::parse(id) {
            out.group(known::FLOWS, |out| {
                out.put(known::MEDIA_COMPONENT_NUMBER, id.component);
                out.maybe(known::FLOW_NUMBER, (id.flow != 0).then_some(id.flow));
            });
        }
    }
    out.maybe(known::SPONSOR_IDENTITY, json::text(charging, "sponsorId"))
        .maybe(
            known::APPLICATION_SERVICE_PROVIDER_IDENTITY,
            json::text(charging, "appSvcProvId"),
        );
}

fn put_redirect(out: &mut AvpWriter, traffic: &Value) {
    let Some(redirect) = traffic.get("redirectInfo") else {
        return;
    };
    let kind =
        json::text(redirect, "redirectAddressType").and_then(|name| avp::value(REDIRECT_ADDRESS, name));
    let enabled = json::flag(redirect, "redirectEnabled").unwrap_or(true);
    out.group(known::REDIRECT_INFORMATION, |out| {
        out.put(known::REDIRECT_SUPPORT, i32::from(enabled))
            .maybe(known::REDIRECT_ADDRESS_TYPE, kind)
            .maybe(
                known::REDIRECT_SERVER_ADDRESS,
                json::text(redirect, "redirectServerAddress"),
            );
    });
}
