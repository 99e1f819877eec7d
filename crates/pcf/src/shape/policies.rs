//! Bodies of Npcf_AMPolicyControl (TS 29.507 §5.6.2) and Npcf_UEPolicyControl (TS 29.525 §5.6.2).

use model::shape::Shape::{Any, Integer, List, Map, Of, Rule, Text};
use model::shape::{Shape, opt, req, rules};

use super::common::{AMBR, ANY_OBJECT, GROUP, GUAMI, PLMN, SNSSAI, TRIGGER, base64, callback, name};
use super::object;

static ACCESS_TYPE: Shape = Rule(rules::access_type);
static IPV4: Shape = Rule(rules::ipv4);
static IPV6: Shape = Rule(rules::ipv6);
static FQDN: Shape = Rule(rules::fqdn);
static COUNT: Shape = Integer(0, i64::MAX);

object! {
    AREA_RESTRICTION = [
        opt("restrictionType", Rule(rules::token)),
        opt("areas", List(&ANY_OBJECT)),
        opt("maxNumOfTAs", COUNT_OF_AREAS),
        opt("maxNumOfTAsForNotAllowedAreas", COUNT_OF_AREAS),
    ];
    SLICE_RATE = [req("sliceMbr", Map(&ANY_OBJECT)), req("servingSnssai", Of(&SNSSAI))];
    SELECTION = [opt("dnn", Rule(name)), opt("snssai", Of(&SNSSAI)), opt("mappingSnssai", Of(&SNSSAI))];
    TRANSFER_FAILURE = [req("cause", Rule(rules::token)), req("ptis", List(&COUNT))];
    /// `PolicyAssociationRequest` (TS 29.507 §5.6.2.3).
    pub(crate) AM_REQUEST = [
        req("notificationUri", Rule(callback)),
        opt("altNotifIpv4Addrs", List(&IPV4)),
        opt("altNotifIpv6Addrs", List(&IPV6)),
        opt("altNotifFqdns", List(&FQDN)),
        req("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("accessType", Rule(rules::access_type)),
        opt("accessTypes", List(&ACCESS_TYPE)),
        opt("pei", Rule(name)),
        opt("userLoc", Of(&ANY_OBJECT)),
        opt("timeZone", Text),
        opt("servingPlmn", Of(&PLMN)),
        opt("ratType", Rule(rules::token)),
        opt("ratTypes", List(&TRIGGER)),
        opt("groupIds", List(&GROUP)),
        opt("servAreaRes", Of(&AREA_RESTRICTION)),
        opt("wlServAreaRes", Of(&ANY_OBJECT)),
        opt("rfsp", Integer(1, 256)),
        opt("ueAmbr", Of(&AMBR)),
        opt("ueSliceMbrs", List(&SLICE_RATE)),
        opt("allowedSnssais", List(&SNSSAI)),
        opt("targetSnssais", List(&SNSSAI)),
        opt("mappingSnssais", List(&ANY_OBJECT)),
        opt("n3gAllowedSnssais", List(&SNSSAI)),
        opt("guami", Of(&GUAMI)),
        opt("serviveName", Rule(rules::token)),
        opt("traceReq", Any),
        opt("nwdafDatas", List(&ANY_OBJECT)),
        req("suppFeat", Rule(rules::features)),
    ];
    /// `PolicyAssociationUpdateRequest` (TS 29.507 §5.6.2.4).
    pub(crate) AM_UPDATE = [
        opt("notificationUri", Rule(callback)),
        opt("altNotifIpv4Addrs", List(&IPV4)),
        opt("altNotifIpv6Addrs", List(&IPV6)),
        opt("altNotifFqdns", List(&FQDN)),
        opt("triggers", List(&TRIGGER)),
        opt("servAreaRes", Of(&AREA_RESTRICTION)),
        opt("wlServAreaRes", Of(&ANY_OBJECT)),
        opt("rfsp", Integer(1, 256)),
        opt("smfSelInfo", Of(&SELECTION)),
        opt("ueAmbr", Of(&AMBR)),
        opt("ueSliceMbrs", List(&SLICE_RATE)),
        opt("praStatuses", Map(&ANY_OBJECT)),
        opt("userLoc", Of(&ANY_OBJECT)),
        opt("allowedSnssais", List(&SNSSAI)),
        opt("targetSnssais", List(&SNSSAI)),
        opt("mappingSnssais", List(&ANY_OBJECT)),
        opt("accessTypes", List(&ACCESS_TYPE)),
        opt("ratTypes", List(&TRIGGER)),
        opt("n3gAllowedSnssais", List(&SNSSAI)),
        opt("traceReq", Any),
        opt("guami", Of(&GUAMI)),
        opt("nwdafDatas", Any),
    ];
    /// `PolicyAssociationRequest` (TS 29.525 §5.6.2.3).
    pub(crate) UE_REQUEST = [
        req("notificationUri", Rule(callback)),
        opt("altNotifIpv4Addrs", List(&IPV4)),
        opt("altNotifIpv6Addrs", List(&IPV6)),
        opt("altNotifFqdns", List(&FQDN)),
        req("supi", Rule(name)),
        opt("gpsi", Rule(name)),
        opt("accessType", Rule(rules::access_type)),
        opt("pei", Rule(name)),
        opt("userLoc", Of(&ANY_OBJECT)),
        opt("timeZone", Text),
        opt("servingPlmn", Of(&PLMN)),
        opt("ratType", Rule(rules::token)),
        opt("groupIds", List(&GROUP)),
        opt("hPcfId", Rule(rules::uuid)),
        opt("uePolReq", Rule(base64)),
        opt("guami", Of(&GUAMI)),
        opt("serviceName", Rule(rules::token)),
        opt("servingNfId", Rule(rules::uuid)),
        opt("pc5Capab", Rule(rules::token)),
        opt("proSeCapab", List(&TRIGGER)),
        req("suppFeat", Rule(rules::features)),
    ];
    /// `PolicyAssociationUpdateRequest` (TS 29.525 §5.6.2.4).
    pub(crate) UE_UPDATE = [
        opt("notificationUri", Rule(callback)),
        opt("altNotifIpv4Addrs", List(&IPV4)),
        opt("altNotifIpv6Addrs", List(&IPV6)),
        opt("altNotifFqdns", List(&FQDN)),
        opt("triggers", List(&TRIGGER)),
        opt("praStatuses", Map(&ANY_OBJECT)),
        opt("userLoc", Of(&ANY_OBJECT)),
        opt("uePolDelResult", Rule(base64)),
        opt("uePolTransFailNotif", Of(&TRANSFER_FAILURE)),
        opt("uePolReq", Rule(base64)),
        opt("guami", Of(&GUAMI)),
        opt("servingNfId", Rule(rules::uuid)),
        opt("plmnId", Of(&PLMN)),
        opt("connectState", Rule(rules::token)),
        opt("groupIds", List(&GROUP)),
        opt("proSeCapab", List(&TRIGGER)),
    ];
}

const COUNT_OF_AREAS: Shape = Integer(0, i64::MAX);
