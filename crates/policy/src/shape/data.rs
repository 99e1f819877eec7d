//! The data types, as tables.

use super::Kind::{Any, BitRate, Bool, DateTime, Enum, List, Map, Shape as Of, Text, Uint, Volume};
use super::{Kind, Naming, Section, Service, Shape};

const ANY: u32 = u32::MAX;
const TEXTS: Kind = List(&Text);

const fn shape(
    name: &'static str,
    required: &'static [&'static str],
    members: &'static [(&'static str, Kind)],
) -> Shape {
    Shape {
        name,
        members,
        required,
    }
}

const fn naming(
    section: Section,
    block: &'static str,
    member: &'static str,
    shape: &'static Shape,
) -> Naming {
    Naming {
        section,
        service: Service::Sm,
        block,
        member,
        // The identifier is the first of the required members.
        id: shape.required[0],
        shape,
    }
}

pub(super) static SECTIONS: &[Naming] = &[
    naming(Section::PccRules, "pccRule", "pccRules", &PCC_RULE),
    naming(Section::SessRules, "sessionRule", "sessRules", &SESSION_RULE),
    naming(Section::QosDecs, "qosData", "qosDecs", &QOS_DATA),
    naming(Section::ChgDecs, "chargingData", "chgDecs", &CHARGING_DATA),
    naming(
        Section::TraffContDecs,
        "trafficControlData",
        "traffContDecs",
        &TRAFFIC_CONTROL_DATA,
    ),
    naming(
        Section::UmDecs,
        "usageMonitoringData",
        "umDecs",
        &USAGE_MONITORING_DATA,
    ),
    naming(Section::Conds, "conditionData", "conds", &CONDITION_DATA),
    naming(Section::AdcRules, "adcRule", "adcRules", &ADC_RULE),
    Naming {
        section: Section::UrspRules,
        service: Service::Ue,
        block: "urspRule",
        member: "urspRules",
        id: "relatPrecedence",
        shape: &URSP_RULE,
    },
];

static ARP: Shape = shape(
    "Arp",
    &["priorityLevel", "preemptCap", "preemptVuln"],
    &[
        ("priorityLevel", Uint(15)),
        ("preemptCap", Enum(&["NOT_PREEMPT", "MAY_PREEMPT"])),
        ("preemptVuln", Enum(&["NOT_PREEMPTABLE", "PREEMPTABLE"])),
    ],
);

static AMBR: Shape = shape(
    "Ambr",
    &["uplink", "downlink"],
    &[("uplink", BitRate), ("downlink", BitRate)],
);

static SNSSAI: Shape = shape("Snssai", &["sst"], &[("sst", Uint(255)), ("sd", Text)]);

static FLOW_INFORMATION: Shape = shape(
    "FlowInformation",
    &[],
    &[
        ("flowDescription", Text),
        ("ethFlowDescription", Map),
        ("packFiltId", Text),
        ("packetFilterUsage", Bool),
        ("tosTrafficClass", Text),
        ("spi", Text),
        ("flowLabel", Text),
        (
            "flowDirection",
            Enum(&["DOWNLINK", "UPLINK", "BIDIRECTIONAL", "UNSPECIFIED"]),
        ),
    ],
);

static PCC_RULE: Shape = shape(
    "PccRule",
    &["pccRuleId"],
    &[
        ("flowInfos", List(&Of(&FLOW_INFORMATION))),
        ("appId", Text),
        ("appDescriptor", Text),
        ("contVer", Uint(ANY)),
        ("pccRuleId", Text),
        ("precedence", Uint(ANY)),
        ("afSigProtocol", Enum(&["NO_INFORMATION", "SIP"])),
        ("appReloc", Bool),
        ("easRedisInd", Bool),
        ("refQosData", TEXTS),
        ("refAltQosParams", TEXTS),
        ("refTcData", TEXTS),
        ("refChgData", TEXTS),
        ("refChgN3gData", TEXTS),
        ("refUmData", TEXTS),
        ("refUmN3gData", TEXTS),
        ("refCondData", Text),
        ("refQosMon", TEXTS),
        ("addrPreserInd", Bool),
        ("tscaiInputDl", Map),
        ("tscaiInputUl", Map),
        ("tscaiTimeDom", Uint(ANY)),
        ("ddNotifCtrl", Map),
        ("ddNotifCtrl2", Map),
        ("disUeNotif", Bool),
        ("packFiltAllPrec", Uint(ANY)),
    ],
);

/// ADC-Rule-Definition (TS 29.212 §5b.3.2) with the members of a `PccRule`; without any but its identifier the name of a
/// rule that the TDF has.
static ADC_RULE: Shape = shape(
    "AdcRule",
    &["adcRuleId"],
    &[
        ("adcRuleId", Text),
        ("appId", Text),
        ("flowInfos", List(&Of(&FLOW_INFORMATION))),
        ("precedence", Uint(ANY)),
        ("refQosData", TEXTS),
        ("refTcData", TEXTS),
        ("refChgData", TEXTS),
        ("refUmData", TEXTS),
        ("refCondData", Text),
    ],
);

static AUTHORIZED_DEFAULT_QOS: Shape = shape(
    "AuthorizedDefaultQos",
    &[],
    &[
        ("5qi", Uint(255)),
        ("arp", Of(&ARP)),
        ("priorityLevel", Uint(127)),
        ("averWindow", Uint(4095)),
        ("maxDataBurstVol", Uint(4095)),
        ("maxbrUl", BitRate),
        ("maxbrDl", BitRate),
        ("gbrUl", BitRate),
        ("gbrDl", BitRate),
        ("extMaxDataBurstVol", Uint(2_000_000)),
    ],
);

static SESSION_RULE: Shape = shape(
    "SessionRule",
    &["sessRuleId"],
    &[
        ("authSessAmbr", Of(&AMBR)),
        ("authDefQos", Of(&AUTHORIZED_DEFAULT_QOS)),
        ("sessRuleId", Text),
        ("refUmData", Text),
        ("refUmN3gData", Text),
        ("refCondData", Text),
    ],
);

static QOS_DATA: Shape = shape(
    "QosData",
    &["qosId"],
    &[
        ("qosId", Text),
        ("5qi", Uint(255)),
        ("maxbrUl", BitRate),
        ("maxbrDl", BitRate),
        ("gbrUl", BitRate),
        ("gbrDl", BitRate),
        ("arp", Of(&ARP)),
        ("qnc", Bool),
        ("priorityLevel", Uint(127)),
        ("averWindow", Uint(4095)),
        ("maxDataBurstVol", Uint(4095)),
        ("reflectiveQos", Bool),
        ("sharingKeyDl", Text),
        ("sharingKeyUl", Text),
        ("maxPacketLossRateDl", Uint(1000)),
        ("maxPacketLossRateUl", Uint(1000)),
        ("defQosFlowIndication", Bool),
        ("extMaxDataBurstVol", Uint(2_000_000)),
        ("packetDelayBudget", Uint(ANY)),
        ("packetErrorRate", Text),
    ],
);

static CHARGING_DATA: Shape = shape(
    "ChargingData",
    &["chgId"],
    &[
        ("chgId", Text),
        (
            "meteringMethod",
            Enum(&["DURATION", "VOLUME", "DURATION_VOLUME", "EVENT"]),
        ),
        ("offline", Bool),
        ("online", Bool),
        ("sdfHandl", Bool),
        ("ratingGroup", Uint(ANY)),
        (
            "reportingLevel",
            Enum(&["SER_ID_LEVEL", "RAT_GR_LEVEL", "SPON_CON_LEVEL"]),
        ),
        ("serviceId", Uint(ANY)),
        ("sponsorId", Text),
        ("appSvcProvId", Text),
        ("afChargingIdentifier", Uint(ANY)),
        ("afChargId", Text),
    ],
);

static REDIRECT_INFORMATION: Shape = shape(
    "RedirectInformation",
    &[],
    &[
        ("redirectEnabled", Bool),
        (
            "redirectAddressType",
            Enum(&["IPV4_ADDR", "IPV6_ADDR", "URL", "SIP_URI"]),
        ),
        ("redirectServerAddress", Text),
    ],
);

static TRAFFIC_CONTROL_DATA: Shape = shape(
    "TrafficControlData",
    &["tcId"],
    &[
        ("tcId", Text),
        (
            "flowStatus",
            Enum(&[
                "ENABLED-UPLINK",
                "ENABLED-DOWNLINK",
                "ENABLED",
                "DISABLED",
                "REMOVED",
            ]),
        ),
        ("redirectInfo", Of(&REDIRECT_INFORMATION)),
        ("addRedirectInfo", List(&Of(&REDIRECT_INFORMATION))),
        ("muteNotif", Bool),
        ("trafficSteeringPolIdDl", Text),
        ("trafficSteeringPolIdUl", Text),
        ("routeToLocs", List(&Any)),
        ("maxAllowedUpLat", Uint(ANY)),
        ("easIpReplaceInfos", List(&Map)),
        ("traffCorreInd", Bool),
        ("simConnInd", Bool),
        ("simConnTerm", Uint(ANY)),
        ("upPathChgEvent", Map),
        ("steerFun", Enum(&["MPTCP", "ATSSS_LL"])),
        ("steerModeDl", Map),
        ("steerModeUl", Map),
        ("mulAccCtrl", Enum(&["ALLOWED", "NOT_ALLOWED"])),
    ],
);

static USAGE_MONITORING_DATA: Shape = shape(
    "UsageMonitoringData",
    &["umId"],
    &[
        ("umId", Text),
        ("volumeThreshold", Volume),
        ("volumeThresholdUplink", Volume),
        ("volumeThresholdDownlink", Volume),
        ("timeThreshold", Volume),
        ("monitoringTime", DateTime),
        ("nextVolThreshold", Volume),
        ("nextVolThresholdUplink", Volume),
        ("nextVolThresholdDownlink", Volume),
        ("nextTimeThreshold", Volume),
        ("inactivityTime", Volume),
        ("exUsagePccRuleIds", TEXTS),
    ],
);

static CONDITION_DATA: Shape = shape(
    "ConditionData",
    &["condId"],
    &[
        ("condId", Text),
        ("activationTime", DateTime),
        ("deactivationTime", DateTime),
        ("accessType", Enum(&["3GPP_ACCESS", "NON_3GPP_ACCESS"])),
        ("ratType", Text),
    ],
);

static ROUTE_SELECTION: Shape = shape(
    "RouteSelectionParameterSet",
    &[],
    &[
        ("dnn", Text),
        ("snssai", Of(&SNSSAI)),
        ("precedence", Uint(255)),
        ("spatialValidityAreas", List(&Map)),
        ("spatialValidityTais", List(&Map)),
    ],
);

static TRAFFIC_DESCRIPTOR: Shape = shape(
    "TrafficDescriptorComponents",
    &[],
    &[
        ("appDescs", Map),
        ("flowDescs", TEXTS),
        ("domainDescs", TEXTS),
        ("ethFlowDescs", List(&Map)),
        ("dnns", TEXTS),
        ("connCaps", TEXTS),
    ],
);

static URSP_RULE: Shape = shape(
    "UrspRuleRequest",
    &["relatPrecedence"],
    &[
        ("trafficDesc", Of(&TRAFFIC_DESCRIPTOR)),
        ("relatPrecedence", Uint(255)),
        ("routeSelParamSets", List(&Of(&ROUTE_SELECTION))),
    ],
);

static AREA: Shape = shape("Area", &[], &[("tacs", TEXTS), ("areaCode", Text)]);

static SERVICE_AREA_RESTRICTION: Shape = shape(
    "ServiceAreaRestriction",
    &[],
    &[
        ("restrictionType", Enum(&["ALLOWED_AREAS", "NOT_ALLOWED_AREAS"])),
        ("areas", List(&Of(&AREA))),
        ("maxNumOfTAs", Uint(ANY)),
        ("maxNumOfTAsForNotAllowedAreas", Uint(ANY)),
    ],
);

/// Members of `SmPolicyDecision` without those of the sections.
pub(crate) static SM_POLICY: Shape = shape(
    "SmPolicyDecision",
    &[],
    &[
        ("pcscfRestIndication", Bool),
        ("chargingInfo", Map),
        ("qosChars", Map),
        ("qosMonDecs", Map),
        ("reflectiveQoSTimer", Uint(ANY)),
        ("revalidationTime", DateTime),
        ("offline", Bool),
        ("online", Bool),
        ("offlineChOnly", Bool),
        ("lastReqRuleData", List(&Map)),
        ("lastReqUsageData", Map),
        ("praInfos", Map),
        ("ipv4Index", Any),
        ("ipv6Index", Any),
        ("qosFlowUsage", Enum(&["GENERAL", "IMS_SIG"])),
        ("relCause", Text),
        ("redSessIndication", Bool),
        ("tsnBridgeManCont", Map),
        ("tsnPortManContDstt", Map),
        ("tsnPortManContNwtts", List(&Map)),
    ],
);

/// Members of `PolicyAssociation` and `PolicyUpdate` of Npcf_AMPolicyControl.
pub(crate) static AM_POLICY: Shape = shape(
    "PolicyAssociation",
    &[],
    &[
        ("servAreaRes", Of(&SERVICE_AREA_RESTRICTION)),
        ("wlServAreaRes", Map),
        ("rfsp", Uint(256)),
        ("targetRfsp", Uint(256)),
        ("smfSelInfo", Map),
        ("ueAmbr", Of(&AMBR)),
        ("ueSliceMbrs", List(&Map)),
        ("pras", Map),
        ("matchPdus", List(&Map)),
        ("asTimeDisParam", Map),
    ],
);

/// Members of `PolicyAssociation` and `PolicyUpdate` of Npcf_UEPolicyControl.
pub(crate) static UE_POLICY: Shape = shape(
    "PolicyAssociation",
    &[],
    &[("n2Pc5Pol", Map), ("n2Pc5ProSePol", Map), ("pras", Map)],
);

pub(super) static SM_TRIGGERS: &[&str] = &[
    "PLMN_CH",
    "RES_MO_RE",
    "AC_TY_CH",
    "UE_IP_CH",
    "UE_MAC_CH",
    "AN_CH_COR",
    "US_RE",
    "APP_STA",
    "APP_STO",
    "AN_INFO",
    "CM_SES_FAIL",
    "PS_DA_OFF",
    "DEF_QOS_CH",
    "SE_AMBR_CH",
    "QOS_NOTIF",
    "NO_CREDIT",
    "REALLO_OF_CREDIT",
    "PRA_CH",
    "SAREA_CH",
    "SCNN_CH",
    "RE_TIMEOUT",
    "RES_RELEASE",
    "SUCC_RES_ALLO",
    "RAI_CH",
    "RAT_TY_CH",
    "REF_QOS_IND_CH",
    "NUM_OF_PACKET_FILTER",
    "UE_STATUS_RESUME",
    "UE_TZ_CH",
    "AUTH_PROF_CH",
    "QOS_MONITORING",
    "SCELL_CH",
    "USER_LOCATION_CH",
    "EPS_FALLBACK",
    "MA_PDU",
    "TSN_BRIDGE_INFO",
    "5G_RG_JOIN",
    "5G_RG_LEAVE",
    "DDN_FAILURE",
    "DDN_DELIVERY_STATUS",
    "GROUP_ID_LIST_CHG",
    "DDN_FAILURE_CANCELLATION",
    "DDN_DELIVERY_STATUS_CANCELLATION",
    "VPLMN_QOS_CH",
    "SUCC_QOS_UPDATE",
    "SAT_CATEGORY_CHG",
    "PCF_UE_NOTIF_IND",
    "NWDAF_DATA_CHG",
];

pub(super) static AM_TRIGGERS: &[&str] = &[
    "LOC_CH",
    "PRA_CH",
    "SERV_AREA_CH",
    "RFSP_CH",
    "ALLOWED_NSSAI_CH",
    "UE_AMBR_CH",
    "UE_SLICE_MBR_CH",
    "SMF_SELECT_CH",
    "ACCESS_TYPE_CH",
    "NWDAF_DATA_CH",
    "TARGET_NSSAI",
];

pub(super) static UE_TRIGGERS: &[&str] = &[
    "LOC_CH",
    "PRA_CH",
    "UE_POLICY",
    "PLMN_CH",
    "CON_STATE_CH",
    "GROUP_ID_LIST_CHG",
    "UE_CAP_CH",
];
