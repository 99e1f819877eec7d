//! Bodies of Npcf_PolicyAuthorization (TS 29.514 §5.6.2). `pcc::media` judges media components, which Rx has too.

use model::shape::Shape::{self, Bool, Integer, List, Map, Of, Rule, Text};
use model::shape::{ObjectRule, opt, req, rules};

use super::common::{ANY_OBJECT, NAME, SNSSAI, callback, mac48, name};
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

static EVENT_ITEM: Shape = Of(&EVENT);
static TEXT: Shape = Text;
static COUNT: Shape = Integer(0, i64::MAX);
static NUMBER_32: Shape = Integer(0, u32::MAX as i64);
/// Tenths of a percent (TS 29.571 `PacketLossRate`).
static LOSS: Shape = Integer(0, 1000);

// `pcc::media` judges numbers, bit rates and gates of components and flows (`INVALID_SERVICE_INFORMATION`) and the texts of
// flow descriptions (`FILTER_RESTRICTIONS`); the types of the rest, which the SMF gets as they are, are judged here.
object! {
    /// `EthFlowDescription`, `RouteToLocation` and others, which the SMF judges.
    OBJECT_LIST_ITEM = [];
    EVENT = [
        req("event", Rule(rules::token)),
        opt("notifMethod", Rule(rules::token)),
        opt("repPeriod", Of(&COUNT)),
        opt("waitTime", Of(&COUNT)),
    ];
    /// `UsageThreshold` (TS 29.122).
    THRESHOLD = [
        opt("duration", Of(&COUNT)),
        opt("totalVolume", Of(&COUNT)),
        opt("uplinkVolume", Of(&COUNT)),
        opt("downlinkVolume", Of(&COUNT)),
    ];
    /// `AfRoutingRequirement`.
    ROUTING = [
        opt("appReloc", Bool),
        opt("routeToLocs", List(&OBJECT_LIST_ITEM)),
        opt("spVal", Of(&ANY_OBJECT)),
        opt("tempVals", List(&OBJECT_LIST_ITEM)),
        opt("upPathChgSub", Of(&ANY_OBJECT)),
        opt("addrPreserInd", Bool),
        opt("simConnInd", Bool),
        opt("simConnTerm", Of(&COUNT)),
        opt("easIpReplaceInfos", List(&OBJECT_LIST_ITEM)),
        opt("easRedisInd", Bool),
        opt("maxAllowedUpLat", Of(&COUNT)),
    ];
    /// `MediaSubComponent`.
    FLOW = [
        opt("afSigProtocol", Rule(rules::token)),
        opt("ethfDescs", List(&OBJECT_LIST_ITEM)),
        opt("fDescs", List(&TEXT)),
        opt("tosTrCl", Text),
        opt("flowUsage", Rule(rules::token)),
    ];
    /// `MediaComponent`.
    COMPONENT = [
        opt("afAppId", Text),
        opt("afRoutReq", Of(&ROUTING)),
        opt("qosReference", Text),
        opt("disUeNotif", Bool),
        opt("altSerReqs", List(&TEXT)),
        opt("altSerReqsData", List(&OBJECT_LIST_ITEM)),
        opt("contVer", Of(&COUNT)),
        opt("codecs", List(&TEXT)),
        opt("flusId", Text),
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
        opt("tsnQos", Of(&ANY_OBJECT)),
        opt("tscaiInputDl", Of(&ANY_OBJECT)),
        opt("tscaiInputUl", Of(&ANY_OBJECT)),
        opt("tscaiTimeDom", Of(&COUNT)),
    ];
    /// `EventsSubscReqData`.
    pub(crate) AF_EVENTS = [
        req("events", List(&EVENT_ITEM)),
        opt("notifUri", Rule(callback)),
        opt("reqAnis", List(&NAME)),
        opt("usgThres", Of(&THRESHOLD)),
        opt("notifCorreId", Text),
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
    pub(crate) AF_SESSION = [req("ascReqData", Of(&ANY_OBJECT))];
    /// `AppSessionContextUpdateDataPatch`. Members that are null are removed.
    pub(crate) AF_PATCH = [opt("ascReqData", Of(&ANY_OBJECT))];
}
