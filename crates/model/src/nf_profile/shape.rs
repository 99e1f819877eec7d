//! What an NF profile must look like (TS 29.510 §6.1.6.2, and the OpenAPI file of Nnrf_NFManagement).
//!
//! Enumerations are open unless the OpenAPI file closes them, so most are just texts here.

use serde_json::{Map, Value};

use crate::shape::Shape::{
    Any, Bool, Integer, List, Map as MapOf, MaybeEmpty, MaybeEmptyMap, Of, Rule, Spelled, Text,
};
use crate::shape::{Object, Shape, opt, req, rules, soft, spellings};

macro_rules! object {
    ($($(#[$meta:meta])* $vis:vis $name:ident = [$($member:expr),* $(,)?] $(where $rule:expr)?;)+) => {
        $($(#[$meta])* $vis static $name: Shape = Shape::Object(&Object {
            members: &[$($member),*],
            rule: object!(@rule $($rule)?),
        });)+
    };
    (@rule) => { None };
    (@rule $rule:expr) => { Some($rule) };
}

static TEXT: Shape = Text;
static TOKEN: Shape = Rule(rules::token);
static TEXTS: Shape = List(&TEXT);
static FQDN: Shape = Rule(rules::fqdn);
static IPV4: Shape = Rule(rules::ipv4);
static IPV6: Shape = ADDRESS6;
static IPV6_PREFIX: Shape = PREFIX6;
static PATTERN: Shape = Rule(rules::pattern);
static DOMAIN: Shape = Rule(rules::domain_pattern);
static TIME: Shape = DATE_TIME;
static ACCESS_TYPE: Shape = Rule(rules::access_type);
static ROUTING: Shape = Rule(rules::routing_indicator);
static GMLC_NUMBER: Shape = Rule(rules::number5to15);
static GROUP_ID: Shape = Rule(rules::group_id);
static INTEGER: Shape = Integer(i64::MIN, i64::MAX);
static PORT: Shape = Integer(0, 65535);
static ANY: Shape = Any;
static VENDOR_FEATURES: Shape = List(&VENDOR_FEATURE);
static IDENTITY_RANGES: Shape = List(&IDENTITY_RANGE);

/// Consumers get addresses as the pattern of TS 29.571 has them, and times that each library reads.
const ADDRESS6: Shape = Spelled(rules::ipv6, spellings::ipv6);
const PREFIX6: Shape = Spelled(rules::ipv6_prefix, spellings::ipv6_prefix);
const DATE_TIME: Shape = Spelled(rules::date_time, spellings::date_time);

const U16: Shape = Integer(0, 65535);
const LOAD: Shape = Integer(0, 100);

fn has(map: &Map<String, Value>, name: &str) -> bool {
    map.contains_key(name)
}

/// Either start and end in order, or pattern; the order only where digits say it.
fn range(map: &Map<String, Value>) -> Result<(), (&'static str, &'static str)> {
    match (map.get("start"), map.get("end"), map.get("pattern")) {
        (Some(_), Some(_), None) | (None, None, Some(_)) => Ok(()),
        (Some(_), None, _) => Err(("end", "expected end beside start")),
        (None, Some(_), _) => Err(("start", "expected start beside end")),
        (Some(_), Some(_), Some(_)) => {
            Err(("pattern", "expected either start and end, or pattern, not both"))
        }
        (None, None, None) => Err(("", "expected start and end, or pattern")),
    }
}

/// As [`range`], and the digits must be able to match something.
fn number_range(map: &Map<String, Value>) -> Result<(), (&'static str, &'static str)> {
    range(map)?;
    match (
        map.get("start").and_then(Value::as_str),
        map.get("end").and_then(Value::as_str),
    ) {
        // Of ends that differ in length the shorter one counts as if zeros followed it (TS 29.510 §6.1.6.2.34).
        (Some(start), Some(end)) if start.len() > end.len() || start.trim_end_matches('0') > end => Err((
            "end",
            "expected at least as many digits as start has, and a number that is not below it",
        )),
        _ => Ok(()),
    }
}

object! {
    pub(super) PLMN = [req("mcc", Rule(rules::mcc)), req("mnc", Rule(rules::mnc)), opt("nid", Rule(rules::nid))];
    SD_RANGE = [req("start", Rule(rules::hex6)), req("end", Rule(rules::hex6))];
    EXT_SNSSAI = [
        req("sst", Integer(0, 255)),
        opt("sd", Rule(rules::hex6)),
        opt("sdRanges", List(&SD_RANGE)),
        opt("wildcardSd", Bool),
    ] where |map| if has(map, "sdRanges") && has(map, "wildcardSd") {
        Err(("wildcardSd", "expected either sdRanges or wildcardSd, not both"))
    } else {
        Ok(())
    };
    PLMN_SNSSAI = [req("plmnId", Of(&PLMN)), req("sNssaiList", List(&EXT_SNSSAI)), opt("nid", Rule(rules::nid))];
    TAI = [req("plmnId", Of(&PLMN)), req("tac", Rule(rules::tac)), opt("nid", Rule(rules::nid))];
    TAC_RANGE = [opt("start", Rule(rules::tac)), opt("end", Rule(rules::tac)), opt("pattern", Rule(rules::pattern))] where range;
    TAI_RANGE = [req("plmnId", Of(&PLMN)), req("tacRangeList", List(&TAC_RANGE)), opt("nid", Rule(rules::nid))];
    GUAMI = [req("plmnId", Of(&PLMN)), req("amfId", Rule(rules::hex6))];
    IDENTITY_RANGE = [opt("start", Rule(rules::digits)), opt("end", Rule(rules::digits)), opt("pattern", Rule(rules::pattern))]
        where number_range;
    GROUP_RANGE = [opt("start", Rule(rules::group_id)), opt("end", Rule(rules::group_id)), opt("pattern", Rule(rules::pattern))]
        where range;
    PATTERN_RANGE = [opt("pattern", Rule(rules::pattern))];
    PLMN_RANGE = [opt("start", Rule(rules::plmn_digits)), opt("end", Rule(rules::plmn_digits)), opt("pattern", Rule(rules::pattern))]
        where number_range;
    IPV4_RANGE = [req("start", Rule(rules::ipv4)), req("end", Rule(rules::ipv4))];
    IPV6_RANGE = [req("start", PREFIX6), req("end", PREFIX6)];
    IP_ADDR = [opt("ipv4Addr", Rule(rules::ipv4)), opt("ipv6Addr", ADDRESS6), opt("ipv6Prefix", PREFIX6)]
        where |map| match ["ipv4Addr", "ipv6Addr", "ipv6Prefix"].iter().filter(|name| has(map, name)).count() {
            1 => Ok(()),
            _ => Err(("", "expected exactly one of ipv4Addr, ipv6Addr, ipv6Prefix")),
        };
    IP_END_POINT = [
        opt("ipv4Address", Rule(rules::ipv4)),
        opt("ipv6Address", ADDRESS6),
        opt("transport", Text),
        opt("port", U16),
    ];
    VERSION = [req("apiVersionInUri", Text), req("apiFullVersion", Text), soft("expiry", DATE_TIME)];
    VENDOR_FEATURE = [req("featureName", Text), req("featureVersion", Text)];
    DEFAULT_NOTIFICATION = [
        req("notificationType", Text),
        req("callbackUri", Rule(rules::uri)),
        opt("interPlmnCallbackUri", Rule(rules::uri)),
        opt("n1MessageClass", Text),
        opt("n2InformationClass", Text),
        opt("versions", List(&TEXT)),
        opt("binding", Text),
        opt("acceptedEncoding", Text),
        opt("supportedFeatures", Rule(rules::features)),
        opt("serviceInfoList", MapOf(&SERVICE_INFO)),
    ];
    SERVICE_INFO = [opt("versions", List(&TEXT)), opt("supportedFeatures", Rule(rules::features))];
    PLMN_OAUTH = [opt("oauth2RequiredPlmnIdList", List(&PLMN)), opt("oauth2NotRequiredPlmnIdList", List(&PLMN))];
    COLLOCATED = [req("nfInstanceId", Rule(rules::uuid)), req("nfType", Rule(rules::token))];

    /// A service (TS 29.510 §6.1.6.2.3).
    SERVICE = [
        req("serviceInstanceId", Rule(rules::not_empty)),
        req("serviceName", Rule(rules::token)),
        req("versions", List(&VERSION)),
        req("scheme", Text),
        req("nfServiceStatus", Rule(rules::token)),
        opt("fqdn", Rule(rules::fqdn)),
        opt("interPlmnFqdn", Rule(rules::fqdn)),
        opt("ipEndPoints", List(&IP_END_POINT)),
        opt("apiPrefix", Rule(rules::api_prefix)),
        opt("defaultNotificationSubscriptions", List(&DEFAULT_NOTIFICATION)),
        opt("allowedPlmns", List(&PLMN)),
        opt("allowedSnpns", List(&PLMN)),
        opt("allowedNfTypes", List(&TOKEN)),
        opt("allowedNfDomains", List(&PATTERN)),
        opt("allowedNssais", List(&EXT_SNSSAI)),
        opt("allowedOperationsPerNfType", MapOf(&TEXTS)),
        opt("allowedOperationsPerNfInstance", MapOf(&TEXTS)),
        opt("priority", U16),
        opt("capacity", U16),
        opt("load", LOAD),
        opt("loadTimeStamp", DATE_TIME),
        soft("recoveryTime", DATE_TIME),
        opt("supportedFeatures", Rule(rules::features)),
        opt("nfServiceSetIdList", List(&TEXT)),
        opt("sNssais", List(&EXT_SNSSAI)),
        opt("perPlmnSnssaiList", List(&PLMN_SNSSAI)),
        soft("vendorId", Rule(rules::vendor)),
        opt("supportedVendorSpecificFeatures", MapOf(&VENDOR_FEATURES)),
        opt("oauth2Required", Bool),
        opt("perPlmnOauth2ReqList", Of(&PLMN_OAUTH)),
    ];

    NSACF_CAPABILITY = [opt("supportUeSAC", Bool), opt("supportPduSAC", Bool)];
    V2X_CAPABILITY = [opt("lteV2x", Bool), opt("nrV2x", Bool)];
    NWDAF_CAPABILITY = [opt("analyticsAggregation", Bool), opt("analyticsMetadataProvisioning", Bool)];
    PROSE_CAPABILITY = [
        opt("proseDirectDiscovey", Bool),
        opt("proseDirectCommunication", Bool),
        opt("proseL2UetoNetworkRelay", Bool),
        opt("proseL3UetoNetworkRelay", Bool),
        opt("proseL2RemoteUe", Bool),
        opt("proseL3RemoteUe", Bool),
    ];

    UDR = [
        opt("groupId", Text),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
        opt("externalGroupIdentifiersRanges", List(&IDENTITY_RANGE)),
        opt("supportedDataSets", List(&TEXT)),
        opt("sharedDataIdRanges", List(&PATTERN_RANGE)),
    ];
    SUCI = [opt("routingInds", List(&ROUTING)), opt("hNwPubKeyIds", List(&INTEGER))];
    UDM = [
        opt("groupId", Text),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
        opt("externalGroupIdentifiersRanges", List(&IDENTITY_RANGE)),
        opt("routingIndicators", List(&ROUTING)),
        opt("internalGroupIdentifiersRanges", List(&GROUP_RANGE)),
        opt("suciInfos", List(&SUCI)),
    ];
    AUSF = [
        opt("groupId", Text),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("routingIndicators", List(&ROUTING)),
        opt("suciInfos", List(&SUCI)),
    ];
    N2_INTERFACE = [
        opt("ipv4EndpointAddress", List(&IPV4)),
        opt("ipv6EndpointAddress", List(&IPV6)),
        opt("amfName", Text),
    ];
    AMF = [
        req("amfSetId", Rule(rules::amf_set)),
        req("amfRegionId", Rule(rules::hex2)),
        req("guamiList", List(&GUAMI)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("backupInfoAmfFailure", List(&GUAMI)),
        opt("backupInfoAmfRemoval", List(&GUAMI)),
        opt("n2InterfaceAmfInfo", Of(&N2_INTERFACE)),
        opt("amfOnboardingCapability", Bool),
        opt("highLatencyCom", Bool),
    ];
    DNN_ITEM = [
        req("dnn", Rule(rules::not_empty)),
        opt("dnaiList", List(&TEXT)),
        opt("pduSessionTypes", List(&TEXT)),
        opt("ipv4AddressRanges", List(&IPV4_RANGE)),
        opt("ipv6PrefixRanges", List(&IPV6_RANGE)),
        opt("ipv4IndexList", List(&ANY)),
        opt("ipv6IndexList", List(&ANY)),
        opt("dnaiNwInstanceList", MapOf(&TEXT)),
    ];
    SMF_SLICE = [req("sNssai", Of(&EXT_SNSSAI)), req("dnnSmfInfoList", List(&DNN_ITEM))];
    UPF_SLICE = [req("sNssai", Of(&EXT_SNSSAI)), req("dnnUpfInfoList", List(&DNN_ITEM)), opt("redundantTransport", Bool)];
    EASDF_SLICE = [req("sNssai", Of(&EXT_SNSSAI)), req("dnnEasdfInfoList", List(&DNN_ITEM))];
    DNN_SLICE = [req("sNssai", Of(&EXT_SNSSAI)), req("dnnInfoList", List(&DNN_ITEM))];
    SMF = [
        req("sNssaiSmfInfoList", List(&SMF_SLICE)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("pgwFqdn", Rule(rules::fqdn)),
        opt("pgwFqdnList", List(&FQDN)),
        opt("pgwIpAddrList", List(&IP_ADDR)),
        opt("accessType", List(&ACCESS_TYPE)),
        opt("priority", U16),
        opt("vsmfSupportInd", Bool),
        opt("ismfSupportInd", Bool),
        opt("smfOnboardingCapability", Bool),
        opt("smfUPRPCapability", Bool),
    ];
    ATSSS = [opt("atsssLL", Bool), opt("mptcp", Bool), opt("rttWithoutPmf", Bool)];
    INTERFACE = [
        req("interfaceType", Text),
        opt("ipv4EndpointAddresses", List(&IPV4)),
        opt("ipv6EndpointAddresses", List(&IPV6)),
        opt("endpointFqdn", Rule(rules::fqdn)),
        opt("networkInstance", Text),
    ];
    pub(super) ENDPOINTS = [
        opt("ipv4EndpointAddresses", List(&IPV4)),
        opt("ipv6EndpointAddresses", List(&IPV6)),
        opt("endpointFqdn", Rule(rules::fqdn)),
    ];
    UPF = [
        req("sNssaiUpfInfoList", List(&UPF_SLICE)),
        opt("smfServingArea", List(&TEXT)),
        opt("interfaceUpfInfoList", List(&INTERFACE)),
        opt("iwkEpsInd", Bool),
        opt("pduSessionTypes", List(&TEXT)),
        opt("atsssCapability", Of(&ATSSS)),
        opt("ueIpAddrInd", Bool),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("wAgfInfo", Of(&ENDPOINTS)),
        opt("tngfInfo", Of(&ENDPOINTS)),
        opt("twifInfo", Of(&ENDPOINTS)),
        opt("priority", U16),
        opt("redundantGtpu", Bool),
        opt("ipups", Bool),
        opt("dataForwarding", Bool),
        opt("supportedPfcpFeatures", Text),
    ];
    PCF = [
        opt("groupId", Text),
        opt("dnnList", List(&TEXT)),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
        opt("rxDiamHost", Rule(rules::fqdn)),
        opt("rxDiamRealm", Rule(rules::fqdn)),
        opt("v2xSupportInd", Bool),
        opt("proseSupportInd", Bool),
        opt("proseCapability", Of(&PROSE_CAPABILITY)),
        opt("v2xCapability", Of(&V2X_CAPABILITY)),
    ];
    BSF = [
        opt("dnnList", List(&TEXT)),
        opt("ipDomainList", List(&TEXT)),
        opt("ipv4AddressRanges", List(&IPV4_RANGE)),
        opt("ipv6PrefixRanges", List(&IPV6_RANGE)),
        opt("rxDiamHost", Rule(rules::fqdn)),
        opt("rxDiamRealm", Rule(rules::fqdn)),
        opt("groupId", Text),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
    ];
    CHF = [
        opt("supiRangeList", List(&IDENTITY_RANGE)),
        opt("gpsiRangeList", List(&IDENTITY_RANGE)),
        opt("plmnRangeList", List(&PLMN_RANGE)),
        opt("groupId", Text),
        opt("primaryChfInstance", Rule(rules::uuid)),
        opt("secondaryChfInstance", Rule(rules::uuid)),
    ] where |map| if has(map, "primaryChfInstance") && has(map, "secondaryChfInstance") {
        Err(("secondaryChfInstance", "expected either primaryChfInstance or secondaryChfInstance, not both"))
    } else {
        Ok(())
    };
    UDSF = [
        opt("groupId", Text),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("storageIdRanges", MapOf(&IDENTITY_RANGES)),
    ];
    NWDAF = [
        opt("eventIds", List(&TEXT)),
        opt("nwdafEvents", List(&TEXT)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("nwdafCapability", Of(&NWDAF_CAPABILITY)),
        opt("analyticsDelay", Integer(0, u32::MAX as i64)),
        opt("servingNfSetIdList", List(&TEXT)),
        opt("servingNfTypeList", List(&TOKEN)),
        opt("mlAnalyticsList", List(&ML_ANALYTICS)),
    ];
    pub(super) ML_ANALYTICS = [
        opt("mlAnalyticsIds", List(&TEXT)),
        opt("snssaiList", List(&EXT_SNSSAI)),
        opt("trackingAreaList", List(&TAI)),
    ];
    PFD_DATA = [opt("appIds", List(&TEXT)), opt("afIds", List(&TEXT))];
    AF_EVENTS = [req("afEvents", List(&TEXT)), opt("afIds", List(&TEXT)), opt("appIds", List(&TEXT))];
    UNTRUSTED_AF = [req("afId", Text), opt("sNssaiInfoList", List(&DNN_SLICE)), opt("mappingInd", Bool)];
    NEF = [
        opt("nefId", Text),
        opt("pfdData", Of(&PFD_DATA)),
        opt("afEeData", Of(&AF_EVENTS)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
        opt("externalGroupIdentifiersRanges", List(&IDENTITY_RANGE)),
        opt("servedFqdnList", List(&TEXT)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("dnaiList", List(&TEXT)),
        opt("unTrustAfInfoList", List(&UNTRUSTED_AF)),
        opt("uasNfFunctionalityInd", Bool),
    ];
    PCSCF = [
        opt("accessType", List(&ACCESS_TYPE)),
        opt("dnnList", List(&TEXT)),
        opt("gmFqdn", Rule(rules::fqdn)),
        opt("gmIpv4Addresses", List(&IPV4)),
        opt("gmIpv6Addresses", List(&IPV6)),
        opt("mwFqdn", Rule(rules::fqdn)),
        opt("mwIpv4Addresses", List(&IPV4)),
        opt("mwIpv6Addresses", List(&IPV6)),
        opt("servedIpv4AddressRanges", List(&IPV4_RANGE)),
        opt("servedIpv6PrefixRanges", List(&IPV6_RANGE)),
    ];
    HSS = [
        opt("groupId", Text),
        opt("imsiRanges", List(&IDENTITY_RANGE)),
        opt("imsPrivateIdentityRanges", List(&IDENTITY_RANGE)),
        opt("imsPublicIdentityRanges", List(&IDENTITY_RANGE)),
        opt("msisdnRanges", List(&IDENTITY_RANGE)),
        opt("externalGroupIdentifiersRanges", List(&IDENTITY_RANGE)),
        opt("hssDiameterAddress", Of(&DIAMETER_ADDRESS)),
    ];
    DIAMETER_ADDRESS = [req("name", Rule(rules::fqdn)), req("realm", Rule(rules::fqdn))];
    LMF = [
        opt("servingClientTypes", List(&TEXT)),
        opt("lmfId", Text),
        opt("servingAccessTypes", List(&ACCESS_TYPE)),
        opt("servingAnNodeTypes", List(&TEXT)),
        opt("servingRatTypes", List(&TEXT)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("supportedGADShapes", List(&TEXT)),
    ];
    GMLC = [opt("servingClientTypes", List(&TEXT)), opt("gmlcNumbers", List(&GMLC_NUMBER))];
    SCP_DOMAIN = [
        opt("scpFqdn", Rule(rules::fqdn)),
        opt("scpIpEndPoints", List(&IP_END_POINT)),
        opt("scpPrefix", Rule(rules::api_prefix)),
        opt("scpPorts", MapOf(&PORT)),
    ];
    SCP = [
        opt("scpDomainInfoList", MapOf(&SCP_DOMAIN)),
        opt("scpPrefix", Rule(rules::api_prefix)),
        opt("scpPorts", MapOf(&PORT)),
        opt("addressDomains", List(&DOMAIN)),
        opt("ipv4Addresses", List(&IPV4)),
        opt("ipv6Prefixes", List(&IPV6_PREFIX)),
        opt("ipv4AddrRanges", List(&IPV4_RANGE)),
        opt("ipv6PrefixRanges", List(&IPV6_RANGE)),
        opt("servedNfSetIdList", List(&TEXT)),
        opt("remotePlmnList", List(&PLMN)),
        opt("remoteSnpnList", List(&PLMN)),
        opt("ipReachability", Text),
        opt("scpCapabilities", MaybeEmpty(&TEXT)),
    ];
    SEPP = [
        opt("seppPrefix", Rule(rules::api_prefix)),
        opt("seppPorts", MapOf(&PORT)),
        opt("remotePlmnList", List(&PLMN)),
        opt("remoteSnpnList", List(&PLMN)),
    ];
    AANF = [opt("routingIndicators", List(&ROUTING))];
    COLLECTOR = [
        opt("servingNfTypeList", List(&TOKEN)),
        opt("servingNfSetIdList", List(&TEXT)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
    ];
    EASDF = [
        opt("sNssaiEasdfInfoList", List(&EASDF_SLICE)),
        opt("easdfN6IpAddressList", List(&IP_ADDR)),
        opt("upfN6IpAddressList", List(&IP_ADDR)),
    ];
    NSACF = [
        req("nsacfCapability", Of(&NSACF_CAPABILITY)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("nsacSaiList", List(&TEXT)),
    ];
    TMGI_RANGE = [
        req("mbsServiceIdStart", Rule(rules::hex6)),
        req("mbsServiceIdEnd", Rule(rules::hex6)),
        req("plmnId", Of(&PLMN)),
        opt("nid", Rule(rules::nid)),
    ];
    TMGI = [req("mbsServiceId", Rule(rules::hex6)), req("plmnId", Of(&PLMN))];
    SSM = [req("sourceIpAddr", Of(&IP_ADDR)), req("destIpAddr", Of(&IP_ADDR))];
    pub(super) MBS_SESSION_ID = [
        opt("tmgi", Of(&TMGI)),
        opt("ssm", Of(&SSM)),
        opt("nid", Rule(rules::nid)),
    ] where |map| if has(map, "tmgi") || has(map, "ssm") { Ok(()) } else { Err(("tmgi", "expected tmgi or ssm")) };
    MBS_SESSION = [req("mbsSessionId", Of(&MBS_SESSION_ID)), opt("mbsAreaSessions", MapOf(&ANY))];
    MB_SMF = [
        opt("sNssaiInfoList", MapOf(&DNN_SLICE)),
        opt("tmgiRangeList", MapOf(&TMGI_RANGE)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("mbsSessionList", MapOf(&MBS_SESSION)),
    ];
    TSCTSF = [
        opt("sNssaiInfoList", MapOf(&DNN_SLICE)),
        opt("externalGroupIdentifiersRanges", List(&IDENTITY_RANGE)),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("gpsiRanges", List(&IDENTITY_RANGE)),
        opt("internalGroupIdentifiersRanges", List(&GROUP_RANGE)),
    ];
    MB_UPF = [
        req("sNssaiMbUpfInfoList", List(&UPF_SLICE)),
        opt("mbSmfServingArea", List(&TEXT)),
        opt("interfaceMbUpfInfoList", List(&INTERFACE)),
        opt("taiList", List(&TAI)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("priority", U16),
        opt("supportedPfcpFeatures", Text),
    ];
    TRUST_AF = [
        opt("sNssaiInfoList", List(&DNN_SLICE)),
        opt("afEvents", List(&TEXT)),
        opt("appIds", List(&TEXT)),
        opt("internalGroupId", List(&GROUP_ID)),
        opt("mappingInd", Bool),
    ];
    NSSAAF = [opt("supiRanges", List(&IDENTITY_RANGE)), opt("internalGroupIdentifiersRanges", List(&GROUP_RANGE))];
    IWMSC = [
        opt("msisdnRanges", List(&IDENTITY_RANGE)),
        opt("supiRanges", List(&IDENTITY_RANGE)),
        opt("taiRangeList", List(&TAI_RANGE)),
        opt("scNumber", Rule(rules::number5to15)),
    ];
    MNPF = [req("msisdnRanges", List(&IDENTITY_RANGE))];
    DDNMF = [req("plmnId", Of(&PLMN))];

    /// An NF profile as registered (TS 29.510 §6.1.6.2.2).
    pub PROFILE = [
        req("nfInstanceId", Rule(rules::uuid)),
        req("nfType", Rule(rules::token)),
        req("nfStatus", Rule(rules::token)),
        soft("nfInstanceName", Text),
        opt("collocatedNfInstances", List(&COLLOCATED)),
        opt("heartBeatTimer", Integer(1, u32::MAX as i64)),
        opt("plmnList", List(&PLMN)),
        opt("snpnList", List(&SNPN)),
        opt("sNssais", List(&EXT_SNSSAI)),
        opt("perPlmnSnssaiList", List(&PLMN_SNSSAI)),
        opt("nsiList", List(&TEXT)),
        opt("fqdn", Rule(rules::fqdn)),
        opt("interPlmnFqdn", Rule(rules::fqdn)),
        opt("ipv4Addresses", List(&IPV4)),
        opt("ipv6Addresses", List(&IPV6)),
        opt("allowedPlmns", List(&PLMN)),
        opt("allowedSnpns", List(&SNPN)),
        opt("allowedNfTypes", List(&TOKEN)),
        opt("allowedNfDomains", List(&PATTERN)),
        opt("allowedNssais", List(&EXT_SNSSAI)),
        opt("priority", U16),
        opt("capacity", U16),
        opt("load", LOAD),
        opt("loadTimeStamp", DATE_TIME),
        opt("locality", Text),
        opt("extLocality", MapOf(&TEXT)),
        soft("customInfo", Of(&ANY_OBJECT)),
        soft("recoveryTime", DATE_TIME),
        soft("nfServicePersistence", Bool),
        opt("nfServices", List(&SERVICE)),
        // Some functions register without services so.
        opt("nfServiceList", MaybeEmptyMap(&SERVICE)),
        opt("defaultNotificationSubscriptions", MaybeEmpty(&DEFAULT_NOTIFICATION)),
        opt("nfSetIdList", List(&TEXT)),
        opt("servingScope", List(&TEXT)),
        soft("lcHSupportInd", Bool),
        soft("olcHSupportInd", Bool),
        soft("nfSetRecoveryTimeList", MapOf(&TIME)),
        soft("serviceSetRecoveryTimeList", MapOf(&TIME)),
        opt("scpDomains", List(&TEXT)),
        soft("vendorId", Rule(rules::vendor)),
        opt("supportedVendorSpecificFeatures", MapOf(&VENDOR_FEATURES)),
        opt("hniList", List(&FQDN)),
        opt("nrfInfo", Of(&ANY_OBJECT)),
        opt("udrInfo", Of(&UDR)),
        opt("udrInfoList", MapOf(&UDR)),
        opt("udmInfo", Of(&UDM)),
        opt("udmInfoList", MapOf(&UDM)),
        opt("ausfInfo", Of(&AUSF)),
        opt("ausfInfoList", MapOf(&AUSF)),
        opt("amfInfo", Of(&AMF)),
        opt("amfInfoList", MapOf(&AMF)),
        opt("smfInfo", Of(&SMF)),
        opt("smfInfoList", MapOf(&SMF)),
        opt("upfInfo", Of(&UPF)),
        opt("upfInfoList", MapOf(&UPF)),
        opt("pcfInfo", Of(&PCF)),
        opt("pcfInfoList", MapOf(&PCF)),
        opt("bsfInfo", Of(&BSF)),
        opt("bsfInfoList", MapOf(&BSF)),
        opt("chfInfo", Of(&CHF)),
        opt("chfInfoList", MapOf(&CHF)),
        opt("udsfInfo", Of(&UDSF)),
        opt("udsfInfoList", MapOf(&UDSF)),
        opt("nwdafInfo", Of(&NWDAF)),
        opt("nwdafInfoList", MapOf(&NWDAF)),
        opt("pcscfInfoList", MapOf(&PCSCF)),
        opt("hssInfoList", MapOf(&HSS)),
        opt("aanfInfoList", MapOf(&AANF)),
        opt("easdfInfoList", MapOf(&EASDF)),
        opt("nsacfInfoList", MapOf(&NSACF)),
        opt("mbSmfInfoList", MapOf(&MB_SMF)),
        opt("tsctsfInfoList", MapOf(&TSCTSF)),
        opt("mbUpfInfoList", MapOf(&MB_UPF)),
        opt("nefInfo", Of(&NEF)),
        opt("lmfInfo", Of(&LMF)),
        opt("gmlcInfo", Of(&GMLC)),
        opt("scpInfo", Of(&SCP)),
        opt("seppInfo", Of(&SEPP)),
        opt("mfafInfo", Of(&COLLECTOR)),
        opt("dccfInfo", Of(&COLLECTOR)),
        opt("trustAfInfo", Of(&TRUST_AF)),
        opt("nssaafInfo", Of(&NSSAAF)),
        opt("iwmscInfo", Of(&IWMSC)),
        opt("mnpfInfo", Of(&MNPF)),
        opt("5gDdnmfInfo", Of(&DDNMF)),
    ] where profile;
    SNPN = [req("mcc", Rule(rules::mcc)), req("mnc", Rule(rules::mnc)), req("nid", Rule(rules::nid))];
    ANY_OBJECT = [];
}

/// What must hold between the members of a profile.
fn profile(map: &Map<String, Value>) -> Result<(), (&'static str, &'static str)> {
    if !["fqdn", "ipv4Addresses", "ipv6Addresses"]
        .iter()
        .any(|name| has(map, name))
    {
        return Err((
            "fqdn",
            "expected at least one of fqdn, ipv4Addresses, ipv6Addresses",
        ));
    }
    if let Some(list) = map.get("nfServices").and_then(Value::as_array) {
        let id = |service: &Value| {
            service
                .get("serviceInstanceId")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut seen = std::collections::BTreeSet::new();
        if !list.iter().all(|service| seen.insert(id(service))) {
            return Err((
                "nfServices",
                "expected a serviceInstanceId of its own for each service",
            ));
        }
    }
    if let Some(services) = map.get("nfServiceList").and_then(Value::as_object)
        && services
            .iter()
            .any(|(key, service)| service.get("serviceInstanceId").and_then(Value::as_str) != Some(key))
    {
        return Err((
            "nfServiceList",
            "expected each key to be the serviceInstanceId of its service",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        PROFILE
            .check(&serde_json::from_str(text).unwrap())
            .into_iter()
            .map(|fault| fault.pointer)
            .collect()
    }

    #[test]
    fn a_minimal_profile_needs_an_address() {
        let head =
            r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"X_NEW","nfStatus":"ODD""#;
        assert_eq!(places(&format!("{head}}}")), ["/fqdn"]);
        assert!(places(&format!(r#"{head},"ipv4Addresses":["10.0.0.1"]}}"#)).is_empty());
        assert_eq!(places("{}"), ["/nfInstanceId", "/nfType", "/nfStatus"]);
    }

    #[test]
    fn faults_deep_inside() {
        assert_eq!(
            places(
                r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"AMF","nfStatus":"REGISTERED",
                "fqdn":"a.example.com","plmnList":[],"load":101,
                "amfInfo":{"amfSetId":"400","guamiList":[{"plmnId":{"mcc":"24","mnc":"01"},"amfId":"cafe00"}]},
                "udmInfoList":{"x":{"supiRanges":[{"start":"2","end":"1"},{}]}},
                "nfServices":[{"serviceInstanceId":"1","serviceName":"namf-comm","versions":[],"scheme":"http"}]}"#
            ),
            [
                "/plmnList",
                "/load",
                "/nfServices/0/versions",
                "/nfServices/0/nfServiceStatus",
                "/udmInfoList/x/supiRanges/0/end",
                "/udmInfoList/x/supiRanges/1",
                "/amfInfo/amfSetId",
                "/amfInfo/amfRegionId",
                "/amfInfo/guamiList/0/plmnId/mcc",
            ]
        );
    }

    #[test]
    fn service_ids_are_unique_and_keys() {
        let with = |rest: &str| {
            places(&format!(
                r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"AMF","nfStatus":"REGISTERED","fqdn":"a.example.com",{rest}}}"#
            ))
        };
        let service = r#"{"serviceInstanceId":"1","serviceName":"namf-comm","versions":[{"apiVersionInUri":"v1","apiFullVersion":"1.0.0"}],"scheme":"http","nfServiceStatus":"REGISTERED"}"#;
        assert!(
            with(&format!(
                r#""nfServices":[{service}],"nfServiceList":{{"1":{service}}}"#
            ))
            .is_empty()
        );
        assert_eq!(
            with(&format!(r#""nfServices":[{service},{service}]"#)),
            ["/nfServices"]
        );
        assert_eq!(
            with(&format!(r#""nfServiceList":{{"2":{service}}}"#)),
            ["/nfServiceList"]
        );
    }
}
