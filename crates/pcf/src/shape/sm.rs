//! Bodies of Npcf_SMPolicyControl (TS 29.512 §5.6.2).

use model::shape::Shape::{self, Bool, Integer, List, Map, Nullable, Of, Rule, Text};
use model::shape::{ObjectRule, opt, req, rules};

use super::common::{
    AMBR, ANY_INTEGER, COUNT, DEFAULT_QOS, GROUP, GUAMI, NAME, PLMN, PREFIX, ROUTE4, SNSSAI, TRIGGER,
    callback, mac48, name,
};
use super::detail::{
    AN_GW_ADDRESS, BRIDGE_MANAGEMENT_CONTAINER, DDD_TRAFFIC_DESCRIPTOR, FLOW_INFORMATION, INVALID_PARAM,
    IP_MULTICAST_ADDRESS_INFO, NWDAF_DATA, PACKET_FILTER_INFO, PORT_MANAGEMENT_CONTAINER, RAN_NAS_REL_CAUSE,
    SERVER_ADDRESSING_INFO, SGSN_ADDRESS, TRACE_DATA, TSN_BRIDGE_INFO, VPLMN_QOS,
};
use super::location::{PRESENCE_INFO, USER_LOCATION};
use super::object;

static CONTENT_VERSION: Shape = ANY_INTEGER;
static DELAY: Shape = ANY_INTEGER;
static NWDAF_DATAS: Shape = List(&NWDAF_DATA);

/// `oneOf` in the OpenAPI file.
const ONE_CHARGING_ID: ObjectRule = |members| match (
    members.contains_key("accNetChaIdValue"),
    members.contains_key("accNetChargId"),
) {
    (true, true) | (false, false) => Err((
        "accNetChaIdValue",
        "expected either accNetChaIdValue or accNetChargId",
    )),
    _ => Ok(()),
};

const SOME_ADDRESS: ObjectRule =
    |members| match members.contains_key("anChargIpv4Addr") || members.contains_key("anChargIpv6Addr") {
        true => Ok(()),
        false => Err(("anChargIpv4Addr", "expected anChargIpv4Addr or anChargIpv6Addr")),
    };

object! {
    CHARGING_ID = [
        opt("accNetChaIdValue", Integer(0, u32::MAX as i64)),
        opt("accNetChargId", Text),
        opt("refPccRuleIds", List(&NAME)),
        opt("sessionChScope", Bool),
    ] where ONE_CHARGING_ID;
    CHARGING_ADDRESS = [
        opt("anChargIpv4Addr", Rule(rules::ipv4)),
        opt("anChargIpv6Addr", Rule(rules::ipv6)),
    ] where SOME_ADDRESS;
    ACCESS_INFO = [req("accessType", Rule(rules::access_type)), opt("ratType", Rule(rules::token))];
    SERVING_NF = [
        opt("servNfInstId", Rule(rules::uuid)),
        opt("guami", Of(&GUAMI)),
        opt("anGwAddr", Of(&AN_GW_ADDRESS)),
        opt("sgsnAddr", Of(&SGSN_ADDRESS)),
    ];
    CALLBACK_INFO = [req("callbackUri", Rule(rules::uri)), opt("bindingInfo", Text)];
    USAGE_REPORT = [
        req("refUmIds", Rule(name)),
        opt("volUsage", COUNT),
        opt("volUsageUplink", COUNT),
        opt("volUsageDownlink", COUNT),
        opt("timeUsage", COUNT),
        opt("nextVolUsage", COUNT),
        opt("nextVolUsageUplink", COUNT),
        opt("nextVolUsageDownlink", COUNT),
        opt("nextTimeUsage", COUNT),
    ];
    APP_DETECTION = [
        req("appId", Rule(name)),
        opt("instanceId", Rule(name)),
        opt("sdfDescriptions", List(&FLOW_INFORMATION)),
    ];
    RULE_REPORT = [
        req("pccRuleIds", List(&NAME)),
        req("ruleStatus", Rule(rules::token)),
        opt("contVers", List(&CONTENT_VERSION)),
        opt("failureCode", Rule(rules::token)),
        opt("finUnitAct", Rule(rules::token)),
        opt("altQosParamId", Text),
        opt("ranNasRelCauses", List(&RAN_NAS_REL_CAUSE)),
    ];
    SESSION_RULE_REPORT = [
        req("ruleIds", List(&NAME)),
        req("ruleStatus", Rule(rules::token)),
        opt("sessRuleFailureCode", Rule(rules::token)),
        opt("policyDecFailureReports", List(&TRIGGER)),
    ];
    QNC_REPORT = [
        req("refPccRuleIds", List(&NAME)),
        req("notifType", Rule(rules::token)),
        opt("contVer", ANY_INTEGER),
        opt("altQosParamId", Text),
    ];
    QOS_MONITORING_REPORT = [
        req("refPccRuleIds", List(&NAME)),
        opt("ulDelays", List(&DELAY)),
        opt("dlDelays", List(&DELAY)),
        opt("rtDelays", List(&DELAY)),
        opt("pdmf", Bool),
    ];
    REQUESTED_QOS = [req("5qi", Integer(0, 255)), opt("gbrUl", Text), opt("gbrDl", Text)];
    UE_REQUEST = [
        opt("pccRuleId", Text),
        req("ruleOp", Rule(rules::token)),
        opt("precedence", Integer(0, i64::MAX)),
        req("packFiltInfo", List(&PACKET_FILTER_INFO)),
        opt("reqQos", Of(&REQUESTED_QOS)),
    ];
    /// `SmPolicyContextData` (§5.6.2.3).
    pub(crate) SM_CONTEXT = [
        opt("accNetChId", Of(&CHARGING_ID)),
        opt("chargEntityAddr", Of(&CHARGING_ADDRESS)),
        opt("gpsi", Rule(name)),
        req("supi", Rule(name)),
        opt("invalidSupi", Bool),
        opt("interGrpIds", List(&GROUP)),
        req("pduSessionId", Integer(0, 255)),
        req("pduSessionType", Rule(rules::token)),
        opt("chargingcharacteristics", Text),
        req("dnn", Rule(name)),
        opt("dnnSelMode", Rule(rules::token)),
        req("notificationUri", Rule(callback)),
        opt("accessType", Rule(rules::access_type)),
        opt("ratType", Rule(rules::token)),
        opt("addAccessInfo", Of(&ACCESS_INFO)),
        opt("servingNetwork", Of(&PLMN)),
        opt("userLocationInfo", Of(&USER_LOCATION)),
        opt("ueTimeZone", Text),
        opt("pei", Rule(name)),
        opt("ipv4Address", Rule(rules::ipv4)),
        opt("ipv6AddressPrefix", Rule(rules::ipv6_prefix)),
        opt("ipDomain", Rule(name)),
        opt("subsSessAmbr", Of(&AMBR)),
        opt("authProfIndex", Text),
        opt("subsDefQos", Of(&DEFAULT_QOS)),
        opt("vplmnQos", Of(&VPLMN_QOS)),
        opt("numOfPackFilter", COUNT),
        opt("online", Bool),
        opt("offline", Bool),
        opt("3gppPsDataOffStatus", Bool),
        opt("refQosIndication", Bool),
        opt("traceReq", Nullable(&TRACE_DATA)),
        req("sliceInfo", Of(&SNSSAI)),
        opt("qosFlowUsage", Rule(rules::token)),
        opt("servNfId", Of(&SERVING_NF)),
        opt("suppFeat", Rule(rules::features)),
        opt("smfId", Rule(rules::uuid)),
        opt("recoveryTime", Rule(rules::date_time)),
        opt("maPduInd", Rule(rules::token)),
        opt("atsssCapab", Rule(rules::token)),
        opt("ipv4FrameRouteList", List(&ROUTE4)),
        opt("ipv6FrameRouteList", List(&PREFIX)),
        opt("satBackhaulCategory", Rule(rules::token)),
        opt("pcfUeInfo", Nullable(&CALLBACK_INFO)),
        opt("pvsInfo", List(&SERVER_ADDRESSING_INFO)),
        opt("onboardInd", Bool),
        opt("nwdafDatas", List(&NWDAF_DATA)),
    ];
    /// `SmPolicyUpdateContextData` (§5.6.2.19).
    pub(crate) SM_UPDATE = [
        opt("repPolicyCtrlReqTriggers", List(&TRIGGER)),
        opt("accNetChIds", List(&CHARGING_ID)),
        opt("accessType", Rule(rules::access_type)),
        opt("ratType", Rule(rules::token)),
        opt("addAccessInfo", Of(&ACCESS_INFO)),
        opt("relAccessInfo", Of(&ACCESS_INFO)),
        opt("servingNetwork", Of(&PLMN)),
        opt("userLocationInfo", Of(&USER_LOCATION)),
        opt("ueTimeZone", Text),
        opt("relIpv4Address", Rule(rules::ipv4)),
        opt("ipv4Address", Rule(rules::ipv4)),
        opt("ipDomain", Rule(name)),
        opt("ipv6AddressPrefix", Rule(rules::ipv6_prefix)),
        opt("relIpv6AddressPrefix", Rule(rules::ipv6_prefix)),
        opt("addIpv6AddrPrefixes", Rule(rules::ipv6_prefix)),
        opt("addRelIpv6AddrPrefixes", Rule(rules::ipv6_prefix)),
        opt("relUeMac", Rule(mac48)),
        opt("ueMac", Rule(mac48)),
        opt("subsSessAmbr", Of(&AMBR)),
        opt("authProfIndex", Text),
        opt("subsDefQos", Of(&DEFAULT_QOS)),
        opt("vplmnQos", Of(&VPLMN_QOS)),
        opt("vplmnQosNotApp", Bool),
        opt("numOfPackFilter", COUNT),
        opt("accuUsageReports", List(&USAGE_REPORT)),
        opt("3gppPsDataOffStatus", Bool),
        opt("appDetectionInfos", List(&APP_DETECTION)),
        opt("ruleReports", List(&RULE_REPORT)),
        opt("sessRuleReports", List(&SESSION_RULE_REPORT)),
        opt("qncReports", List(&QNC_REPORT)),
        opt("qosMonReports", List(&QOS_MONITORING_REPORT)),
        opt("userLocationInfoTime", Rule(rules::date_time)),
        opt("repPraInfos", Map(&PRESENCE_INFO)),
        opt("ueInitResReq", Of(&UE_REQUEST)),
        opt("refQosIndication", Bool),
        opt("qosFlowUsage", Rule(rules::token)),
        opt("creditManageStatus", Rule(rules::token)),
        opt("servNfId", Of(&SERVING_NF)),
        opt("traceReq", Nullable(&TRACE_DATA)),
        opt("maPduInd", Rule(rules::token)),
        opt("atsssCapab", Rule(rules::token)),
        opt("tsnBridgeInfo", Of(&TSN_BRIDGE_INFO)),
        opt("tsnBridgeManCont", Of(&BRIDGE_MANAGEMENT_CONTAINER)),
        opt("tsnPortManContDstt", Of(&PORT_MANAGEMENT_CONTAINER)),
        opt("tsnPortManContNwtts", List(&PORT_MANAGEMENT_CONTAINER)),
        opt("mulAddrInfos", List(&IP_MULTICAST_ADDRESS_INFO)),
        opt("policyDecFailureReports", List(&TRIGGER)),
        opt("invalidPolicyDecs", List(&INVALID_PARAM)),
        opt("trafficDescriptors", List(&DDD_TRAFFIC_DESCRIPTOR)),
        opt("pccRuleId", Text),
        opt("typesOfNotif", List(&TRIGGER)),
        opt("interGrpIds", List(&GROUP)),
        opt("satBackhaulCategory", Rule(rules::token)),
        opt("pcfUeInfo", Nullable(&CALLBACK_INFO)),
        opt("nwdafDatas", Nullable(&NWDAF_DATAS)),
        opt("anGwStatus", Bool),
    ];
    /// `SmPolicyDeleteData` (§5.6.2.15).
    pub(crate) SM_DELETE = [
        opt("userLocationInfo", Of(&USER_LOCATION)),
        opt("ueTimeZone", Text),
        opt("servingNetwork", Of(&PLMN)),
        opt("userLocationInfoTime", Rule(rules::date_time)),
        opt("ranNasRelCauses", List(&RAN_NAS_REL_CAUSE)),
        opt("accuUsageReports", List(&USAGE_REPORT)),
        opt("pduSessRelCause", Rule(rules::token)),
    ];
}
