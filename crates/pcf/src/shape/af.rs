//! Bodies of Npcf_PolicyAuthorization (TS 29.514 §5.6.2). `pcc::media` judges media components, which Rx has too.

use model::shape::Shape::{self, Bool, Integer, List, Map, Nullable, Number, Of, Rule, Text};
use model::shape::{ObjectRule, opt, req, rules};

use super::common::{
    ANY_INTEGER, ANY_OBJECT, COUNT, LINES, NAME, SNSSAI, TEXT, THRESHOLD, TRIGGER, at_most_two, callback,
    mac48, name,
};
use super::detail::{BRIDGE_MANAGEMENT_CONTAINER, ETH_FLOW_DESCRIPTION, PORT_MANAGEMENT_CONTAINER};
use super::location::PRESENCE_INFO;
use super::object;

/// `oneOf` in the OpenAPI file.
const ONE_ADDRESS: ObjectRule = |members| {
    let addresses = ["ueIpv4", "ueIpv6", "ueMac"];
    match addresses
        .iter()
        .filter(|member| members.contains_key(**member))
        .count()
    {
        0 => Err(("ueIpv4", "expected one of ueIpv4, ueIpv6, ueMac")),
        1 => Ok(()),
        _ => Err(("ueIpv4", "expected one of ueIpv4, ueIpv6, ueMac, not several")),
    }
};

/// `oneOf` in the OpenAPI file.
const ONE_IP_ADDRESS: ObjectRule =
    |members| match (members.contains_key("ueIpv4"), members.contains_key("ueIpv6")) {
        (false, false) => Err(("ueIpv4", "expected ueIpv4 or ueIpv6")),
        (true, true) => Err(("ueIpv4", "expected ueIpv4 or ueIpv6, not both")),
        _ => Ok(()),
    };

/// `maxItems` of TS 29.514 §5.6.2.8: one description for uplink, one for downlink.
const ONE_FLOW_EACH_WAY: ObjectRule =
    |members| at_most_two(members, "fDescs").and_then(|()| at_most_two(members, "ethfDescs"));

/// `maxItems` of TS 29.514 §5.6.2.7: those of the offer and those of the answer.
const TWO_CODECS: ObjectRule = |members| at_most_two(members, "codecs");

static EVENT_ITEM: Shape = Of(&EVENT);
static NULLABLE_ROUTE: Shape = Nullable(&ROUTE_TO_LOCATION);
static NUMBER_32: Shape = Integer(0, u32::MAX as i64);
/// Tenths of a percent (TS 29.571 `PacketLossRate`).
static LOSS: Shape = Integer(0, 1000);

// `pcc::media` judges numbers, bit rates and gates of components and flows (`INVALID_SERVICE_INFORMATION`) and the texts of
// flow descriptions (`FILTER_RESTRICTIONS`); the types of the rest, which the SMF gets as they are, are judged here.
object! {
    /// `RouteInformation`.
    ROUTE_INFORMATION = [
        opt("ipv4Addr", Text),
        opt("ipv6Addr", Text),
        opt("portNumber", COUNT),
    ];
    /// `RouteToLocation`.
    ROUTE_TO_LOCATION = [
        opt("dnai", Text),
        opt("routeInfo", Nullable(&ROUTE_INFORMATION)),
        opt("routeProfId", Nullable(&TEXT)),
    ];
    /// `SpatialValidity`.
    SPATIAL_VALIDITY = [
        opt("presenceInfoList", Map(&PRESENCE_INFO)),
    ];
    /// `TemporalValidity`.
    TEMPORAL_VALIDITY = [
        opt("startTime", Text),
        opt("stopTime", Text),
    ];
    /// `UpPathChgEvent`.
    UP_PATH_CHG_EVENT = [
        opt("notificationUri", Text),
        opt("notifCorreId", Text),
        opt("dnaiChgType", Text),
        opt("afAckInd", Bool),
    ];
    /// `IpAddr`.
    IP_ADDR = [
        opt("ipv4Addr", Text),
        opt("ipv6Addr", Text),
        opt("ipv6Prefix", Text),
    ];
    /// `EasServerAddress`.
    EAS_SERVER_ADDRESS = [
        opt("ip", Of(&IP_ADDR)),
        opt("port", COUNT),
    ];
    /// `EasIpReplacementInfo`.
    EAS_IP_REPLACEMENT_INFO = [
        opt("source", Of(&EAS_SERVER_ADDRESS)),
        opt("target", Of(&EAS_SERVER_ADDRESS)),
    ];
    /// `QosMonitoringInformation`.
    QOS_MONITORING_INFORMATION = [
        opt("repThreshDl", ANY_INTEGER),
        opt("repThreshUl", ANY_INTEGER),
        opt("repThreshRp", ANY_INTEGER),
    ];
    /// `AlternativeServiceRequirementsData`.
    ALTERNATIVE_SERVICE_REQUIREMENTS_DATA = [
        opt("altQosParamSetRef", Text),
        opt("gbrUl", Text),
        opt("gbrDl", Text),
        opt("pdb", Integer(1, i64::MAX)),
    ];
    /// `TsnQosContainer`.
    TSN_QOS_CONTAINER = [
        opt("maxTscBurstSize", Integer(4096, 2000000)),
        opt("tscPackDelay", Integer(1, i64::MAX)),
        opt("tscPrioLevel", Integer(1, 8)),
    ];
    /// `TscaiInputContainer`.
    TSCAI_INPUT_CONTAINER = [
        opt("periodicity", COUNT),
        opt("burstArrivalTime", Text),
        opt("surTimeInNumMsg", COUNT),
        opt("surTimeInTime", COUNT),
    ];
    EVENT = [
        req("event", Rule(rules::token)),
        opt("notifMethod", Rule(rules::token)),
        opt("repPeriod", COUNT),
        opt("waitTime", COUNT),
    ];
    /// `AfRoutingRequirement`.
    ROUTING = [
        opt("appReloc", Bool),
        opt("routeToLocs", List(&NULLABLE_ROUTE)),
        opt("spVal", Of(&SPATIAL_VALIDITY)),
        opt("tempVals", List(&TEMPORAL_VALIDITY)),
        opt("upPathChgSub", Nullable(&UP_PATH_CHG_EVENT)),
        opt("addrPreserInd", Bool),
        opt("simConnInd", Bool),
        opt("simConnTerm", COUNT),
        opt("easIpReplaceInfos", List(&EAS_IP_REPLACEMENT_INFO)),
        opt("easRedisInd", Bool),
        opt("maxAllowedUpLat", COUNT),
    ];
    /// `MediaSubComponent`.
    FLOW = [
        opt("afSigProtocol", Rule(rules::token)),
        opt("ethfDescs", List(&ETH_FLOW_DESCRIPTION)),
        opt("fNum", ANY_INTEGER),
        opt("fStatus", Text),
        opt("marBwDl", Text),
        opt("marBwUl", Text),
        opt("fDescs", List(&TEXT)),
        opt("tosTrCl", Text),
        opt("flowUsage", Rule(rules::token)),
    ] where ONE_FLOW_EACH_WAY;
    /// `MediaComponent`.
    COMPONENT = [
        opt("afAppId", Text),
        opt("afRoutReq", Of(&ROUTING)),
        opt("qosReference", Text),
        opt("disUeNotif", Bool),
        opt("altSerReqs", List(&TEXT)),
        opt("altSerReqsData", List(&ALTERNATIVE_SERVICE_REQUIREMENTS_DATA)),
        opt("contVer", COUNT),
        opt("codecs", List(&LINES)),
        opt("desMaxLatency", Number),
        opt("desMaxLoss", Number),
        opt("flusId", Text),
        opt("fStatus", Text),
        opt("marBwDl", Text),
        opt("marBwUl", Text),
        opt("maxSuppBwDl", Text),
        opt("maxSuppBwUl", Text),
        opt("medCompN", ANY_INTEGER),
        opt("minDesBwDl", Text),
        opt("minDesBwUl", Text),
        opt("mirBwDl", Text),
        opt("mirBwUl", Text),
        opt("rrBw", Text),
        opt("rsBw", Text),
        opt("maxPacketLossRateDl", Of(&LOSS)),
        opt("maxPacketLossRateUl", Of(&LOSS)),
        opt("medSubComps", Map(&FLOW)),
        opt("medType", Rule(rules::token)),
        opt("preemptCap", Rule(rules::token)),
        opt("preemptVuln", Rule(rules::token)),
        opt("prioSharingInd", Rule(rules::token)),
        opt("resPrio", Rule(rules::token)),
        opt("sharingKeyDl", Of(&NUMBER_32)),
        opt("sharingKeyUl", Of(&NUMBER_32)),
        opt("tsnQos", Of(&TSN_QOS_CONTAINER)),
        opt("tscaiInputDl", Of(&TSCAI_INPUT_CONTAINER)),
        opt("tscaiInputUl", Of(&TSCAI_INPUT_CONTAINER)),
        opt("tscaiTimeDom", COUNT),
    ] where TWO_CODECS;
    /// `EventsSubscReqData`.
    pub(crate) AF_EVENTS = [
        req("events", List(&EVENT_ITEM)),
        opt("notifUri", Rule(callback)),
        opt("reqQosMonParams", List(&TRIGGER)),
        opt("qosMon", Of(&QOS_MONITORING_INFORMATION)),
        opt("reqAnis", List(&NAME)),
        opt("usgThres", Of(&THRESHOLD)),
        opt("notifCorreId", Text),
        opt("afAppIds", List(&TEXT)),
        opt("directNotifInd", Bool),
    ];
    /// `EventsSubscReqData` of a deletion, which succeeds where a client sends an empty object.
    pub(crate) AF_DELETE = [
        opt("events", List(&EVENT_ITEM)),
        opt("notifUri", Rule(callback)),
        opt("reqQosMonParams", List(&TRIGGER)),
        opt("qosMon", Of(&QOS_MONITORING_INFORMATION)),
        opt("reqAnis", List(&NAME)),
        opt("usgThres", Of(&THRESHOLD)),
        opt("notifCorreId", Text),
        opt("afAppIds", List(&TEXT)),
        opt("directNotifInd", Bool),
    ];
    /// `AppSessionContextReqData`.
    pub(crate) AF_REQUEST = [
        req("notifUri", Rule(callback)),
        req("suppFeat", Rule(rules::features)),
        opt("ueIpv4", Rule(rules::ipv4)),
        opt("ueIpv6", Rule(rules::ipv6)),
        opt("ueMac", Rule(mac48)),
        opt("ipDomain", Text),
        opt("dnn", Rule(name)),
        opt("sliceInfo", Of(&SNSSAI)),
        opt("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("afAppId", Text),
        opt("afChargId", Text),
        opt("sponId", Text),
        opt("aspId", Text),
        opt("bdtRefId", Text),
        opt("mcpttId", Text),
        opt("mcVideoId", Text),
        opt("mpsAction", Rule(rules::token)),
        opt("mpsId", Text),
        opt("mcsId", Text),
        opt("preemptControlInfo", Rule(rules::token)),
        opt("servUrn", Text),
        opt("sipForkInd", Rule(rules::token)),
        opt("tsnBridgeManCont", Of(&BRIDGE_MANAGEMENT_CONTAINER)),
        opt("tsnPortManContDstt", Of(&PORT_MANAGEMENT_CONTAINER)),
        opt("tsnPortManContNwtts", List(&PORT_MANAGEMENT_CONTAINER)),
        opt("evSubsc", Of(&AF_EVENTS)),
        opt("medComponents", Map(&COMPONENT)),
        opt("afReqData", Rule(rules::token)),
        opt("afRoutReq", Of(&ROUTING)),
        opt("resPrio", Rule(rules::token)),
        opt("servInfStatus", Rule(rules::token)),
        opt("sponStatus", Rule(rules::token)),
    ] where ONE_ADDRESS;
    /// `PcscfRestorationRequestData`.
    pub(crate) PCSCF_RESTORATION = [
        opt("dnn", Rule(name)),
        opt("ipDomain", Text),
        opt("sliceInfo", Of(&SNSSAI)),
        opt("supi", Rule(name)),
        opt("ueIpv4", Rule(rules::ipv4)),
        opt("ueIpv6", Rule(rules::ipv6)),
    ] where ONE_IP_ADDRESS;
    /// `AppSessionContext` of a POST. `AF_REQUEST` judges what it asks for once nulls are removed, as after a PATCH.
    pub(crate) AF_SESSION = [
        req("ascReqData", Of(&ANY_OBJECT)),
        opt("ascRespData", Of(&ANY_OBJECT)),
        opt("evsNotif", Of(&ANY_OBJECT)),
    ];
    /// `AppSessionContextUpdateDataPatch`. Members that are null are removed.
    pub(crate) AF_PATCH = [opt("ascReqData", Of(&ANY_OBJECT))];
}
