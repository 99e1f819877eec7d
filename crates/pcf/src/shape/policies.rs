//! Bodies of Npcf_AMPolicyControl (TS 29.507 §5.6.2) and Npcf_UEPolicyControl (TS 29.525 §5.6.2).

use model::shape::Shape::{Bool, Integer, List, Map, MaybeEmpty, Nullable, Of, Rule, Text};
use model::shape::{Shape, opt, req, rules};

use super::common::{AMBR, COUNT, GROUP, GUAMI, PLMN, SNSSAI, TRIGGER, base64, callback, name};
use super::detail::{CANDIDATE_FOR_REPLACEMENT, MAPPING_OF_SNSSAI, NWDAF_DATA, SLICE_MBR, TRACE_DATA};
use super::location::{AREA, PRESENCE_INFO, USER_LOCATION, WIRELINE_SERVICE_AREA_RESTRICTION};
use super::object;

static ACCESS_TYPE: Shape = Rule(rules::access_type);
static IPV4: Shape = Rule(rules::ipv4);
static IPV6: Shape = Rule(rules::ipv6);
static FQDN: Shape = Rule(rules::fqdn);
static PTI: Shape = COUNT;
static NULLABLE_SLICE_RATE: Shape = Nullable(&SLICE_RATE);
static NWDAF_DATAS: Shape = List(&NWDAF_DATA);
static CANDIDATES: Shape = Map(&CANDIDATE);
static CANDIDATE: Shape = Nullable(&CANDIDATE_FOR_REPLACEMENT);

object! {
    AREA_RESTRICTION = [
        opt("restrictionType", Rule(rules::token)),
        opt("areas", MaybeEmpty(&AREA)),
        opt("maxNumOfTAs", COUNT),
        opt("maxNumOfTAsForNotAllowedAreas", COUNT),
    ];
    SLICE_RATE = [
        req("sliceMbr", Map(&SLICE_MBR)),
        req("servingSnssai", Of(&SNSSAI)),
        opt("mappedHomeSnssai", Of(&SNSSAI)),
    ];
    SELECTION = [
        opt("unsuppDnn", Bool),
        opt("candidates", Nullable(&CANDIDATES)),
        opt("dnn", Rule(name)),
        opt("snssai", Of(&SNSSAI)),
        opt("mappingSnssai", Of(&SNSSAI)),
    ];
    TRANSFER_FAILURE = [req("cause", Rule(rules::token)), req("ptis", List(&PTI))];
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
        opt("userLoc", Of(&USER_LOCATION)),
        opt("timeZone", Text),
        opt("servingPlmn", Of(&PLMN)),
        opt("ratType", Rule(rules::token)),
        opt("ratTypes", List(&TRIGGER)),
        opt("groupIds", List(&GROUP)),
        opt("servAreaRes", Of(&AREA_RESTRICTION)),
        opt("wlServAreaRes", Of(&WIRELINE_SERVICE_AREA_RESTRICTION)),
        opt("rfsp", Integer(1, 256)),
        opt("ueAmbr", Of(&AMBR)),
        opt("ueSliceMbrs", List(&NULLABLE_SLICE_RATE)),
        opt("allowedSnssais", List(&SNSSAI)),
        opt("targetSnssais", List(&SNSSAI)),
        opt("mappingSnssais", List(&MAPPING_OF_SNSSAI)),
        opt("n3gAllowedSnssais", List(&SNSSAI)),
        opt("guami", Of(&GUAMI)),
        opt("serviveName", Rule(rules::token)),
        opt("traceReq", Nullable(&TRACE_DATA)),
        opt("nwdafDatas", List(&NWDAF_DATA)),
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
        opt("wlServAreaRes", Of(&WIRELINE_SERVICE_AREA_RESTRICTION)),
        opt("rfsp", Integer(1, 256)),
        opt("smfSelInfo", Nullable(&SELECTION)),
        opt("ueAmbr", Of(&AMBR)),
        opt("ueSliceMbrs", List(&NULLABLE_SLICE_RATE)),
        opt("praStatuses", Map(&PRESENCE_INFO)),
        opt("userLoc", Of(&USER_LOCATION)),
        opt("allowedSnssais", List(&SNSSAI)),
        opt("targetSnssais", List(&SNSSAI)),
        opt("mappingSnssais", List(&MAPPING_OF_SNSSAI)),
        opt("accessTypes", List(&ACCESS_TYPE)),
        opt("ratTypes", List(&TRIGGER)),
        opt("n3gAllowedSnssais", List(&SNSSAI)),
        opt("traceReq", Nullable(&TRACE_DATA)),
        opt("guami", Of(&GUAMI)),
        opt("nwdafDatas", Nullable(&NWDAF_DATAS)),
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
        opt("userLoc", Of(&USER_LOCATION)),
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
        opt("praStatuses", Map(&PRESENCE_INFO)),
        opt("userLoc", Of(&USER_LOCATION)),
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
