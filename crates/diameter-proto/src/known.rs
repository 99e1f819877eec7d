//! Commands, applications, vendors and the AVPs that our own code uses, as typed constants. All others are found by
//! name in the [`crate::dictionary`]; a test compares the two.

use crate::avp::AvpKey;
use crate::kind::{
    Address, AvpType, DiameterIdentity, DiameterUri, Enumerated, Grouped, Integer32, IpFilterRule, Kind,
    OctetString, Tag, Time, Unsigned32, Unsigned64, Utf8String,
};

/// Vendor-Id of 3GPP.
pub const VENDOR_3GPP: u32 = 10415;
/// Vendor-Id of ETSI.
pub const VENDOR_ETSI: u32 = 13019;

/// Command codes.
pub mod command {
    /// Capabilities-Exchange (RFC 6733 §5.3).
    pub const CAPABILITIES_EXCHANGE: u32 = 257;
    /// Re-Auth (§8.3).
    pub const RE_AUTH: u32 = 258;
    /// AA (RFC 7155).
    pub const AA: u32 = 265;
    /// Accounting (§9.7).
    pub const ACCOUNTING: u32 = 271;
    /// Credit-Control (RFC 8506); Gx too.
    pub const CREDIT_CONTROL: u32 = 272;
    /// Abort-Session (§8.5).
    pub const ABORT_SESSION: u32 = 274;
    /// Session-Termination (§8.4).
    pub const SESSION_TERMINATION: u32 = 275;
    /// Device-Watchdog (§5.5).
    pub const DEVICE_WATCHDOG: u32 = 280;
    /// Disconnect-Peer (§5.4).
    pub const DISCONNECT_PEER: u32 = 282;
    /// Update-Location (TS 29.272).
    pub const UPDATE_LOCATION: u32 = 316;
    /// Cancel-Location (TS 29.272).
    pub const CANCEL_LOCATION: u32 = 317;
    /// Authentication-Information (TS 29.272).
    pub const AUTHENTICATION_INFORMATION: u32 = 318;
    /// Purge-UE (TS 29.272).
    pub const PURGE_UE: u32 = 321;
    /// ME-Identity-Check (TS 29.272, S13).
    pub const ME_IDENTITY_CHECK: u32 = 324;
    /// Spending-Limit (TS 29.219, Sy).
    pub const SPENDING_LIMIT: u32 = 8_388_635;
    /// Spending-Status-Notification (TS 29.219, Sy).
    pub const SPENDING_STATUS_NOTIFICATION: u32 = 8_388_636;
    /// TDF-Session (TS 29.212, Sd).
    pub const TDF_SESSION: u32 = 8_388_637;
    /// Device-Action (TS 29.368, Tsp).
    pub const DEVICE_ACTION: u32 = 8_388_639;
    /// Device-Notification (TS 29.368, Tsp).
    pub const DEVICE_NOTIFICATION: u32 = 8_388_640;
    /// Subscriber-Information (TS 29.336, S6m).
    pub const SUBSCRIBER_INFORMATION: u32 = 8_388_641;
    /// Device-Trigger (TS 29.337, T4).
    pub const DEVICE_TRIGGER: u32 = 8_388_643;
    /// Delivery-Report (TS 29.337, T4).
    pub const DELIVERY_REPORT: u32 = 8_388_644;
    /// Configuration-Information (TS 29.336, S6t; TS 29.128, T6a).
    pub const CONFIGURATION_INFORMATION: u32 = 8_388_718;
    /// Reporting-Information (TS 29.336, S6t; TS 29.128, T6a).
    pub const REPORTING_INFORMATION: u32 = 8_388_719;
    /// NIDD-Information (TS 29.336, S6t).
    pub const NIDD_INFORMATION: u32 = 8_388_726;
    /// Connection-Management (TS 29.128, T6a).
    pub const CONNECTION_MANAGEMENT: u32 = 8_388_732;
    /// MO-Data (TS 29.128, T6a).
    pub const MO_DATA: u32 = 8_388_733;
    /// MT-Data (TS 29.128, T6a).
    pub const MT_DATA: u32 = 8_388_734;
}

/// Application ids.
pub mod application {
    /// Diameter common messages.
    pub const COMMON: u32 = 0;
    /// NASREQ (RFC 7155).
    pub const NASREQ: u32 = 1;
    /// Base accounting.
    pub const ACCOUNTING: u32 = 3;
    /// Credit control (RFC 8506); Gy, Ro.
    pub const CREDIT_CONTROL: u32 = 4;
    /// Relays announce this instead of the applications they relay.
    pub const RELAY: u32 = 0xffff_ffff;
    /// Cx and Dx.
    pub const CX: u32 = 16_777_216;
    /// Sh and Dh.
    pub const SH: u32 = 16_777_217;
    /// Rx.
    pub const RX: u32 = 16_777_236;
    /// Gx.
    pub const GX: u32 = 16_777_238;
    /// S6a and S6d.
    pub const S6A: u32 = 16_777_251;
    /// S13 and S13'.
    pub const S13: u32 = 16_777_252;
    /// SLg.
    pub const SLG: u32 = 16_777_255;
    /// S9.
    pub const S9: u32 = 16_777_267;
    /// SLh.
    pub const SLH: u32 = 16_777_291;
    /// Sy.
    pub const SY: u32 = 16_777_302;
    /// Sd.
    pub const SD: u32 = 16_777_303;
    /// Tsp.
    pub const TSP: u32 = 16_777_309;
    /// S6m and S6n.
    pub const S6M: u32 = 16_777_310;
    /// T4.
    pub const T4: u32 = 16_777_311;
    /// S6c.
    pub const S6C: u32 = 16_777_312;
    /// S6t.
    pub const S6T: u32 = 16_777_345;
    /// T6a and T6b.
    pub const T6A: u32 = 16_777_346;

    /// Applications of 3GPP whose messages name them by Auth-Application-Id alone, without a vendor: Rx, Gx, Gxx, S9, Sy, Sd, S9a
    /// (TS 29.214 §5.6, TS 29.212 §5.6, TS 29.215, TS 29.219). Some peers look for them among what was announced without a vendor.
    pub const NAMED_WITHOUT_VENDOR: [u32; 7] = [RX, GX, 16_777_266, S9, SY, SD, 16_777_319];
}

/// Values of Disconnect-Cause (RFC 6733 §5.4.3).
pub mod disconnect_cause {
    /// The peer restarts: connecting again soon makes sense.
    pub const REBOOTING: i32 = 0;
    /// The peer has no resources left: wait before connecting again.
    pub const BUSY: i32 = 1;
    /// The peer sees no need of messages: connect again only when there is something to send.
    pub const DO_NOT_WANT_TO_TALK_TO_YOU: i32 = 2;
}

macro_rules! tags {
    ($($const:ident = $name:literal $kind:ident $vendor:literal:$code:literal $mandatory:ident;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $const: Tag<$kind> = Tag::new($vendor, $code, tags!(@ $mandatory));
        )*

        /// Code and vendor of each constant, to match on.
        pub mod key {
            use crate::avp::AvpKey;
            $(
                #[doc = concat!("Of `", $name, "`")]
                pub const $const: AvpKey = super::$const.key;
            )*
        }

        /// Name, key, type and M flag of each constant.
        pub const ALL: &[(&str, AvpKey, AvpType, bool)] = &[
            $(($name, $const.key, <$kind as Kind>::TYPE, $const.mandatory),)*
        ];
    };
    (@ M) => { true };
    (@ o) => { false };
}

tags! {
    // RFC 6733
    USER_NAME = "User-Name" Utf8String 0:1 M;
    CLASS = "Class" OctetString 0:25 M;
    SESSION_TIMEOUT = "Session-Timeout" Unsigned32 0:27 M;
    PROXY_STATE = "Proxy-State" OctetString 0:33 M;
    EVENT_TIMESTAMP = "Event-Timestamp" Time 0:55 M;
    HOST_IP_ADDRESS = "Host-IP-Address" Address 0:257 M;
    AUTH_APPLICATION_ID = "Auth-Application-Id" Unsigned32 0:258 M;
    ACCT_APPLICATION_ID = "Acct-Application-Id" Unsigned32 0:259 M;
    VENDOR_SPECIFIC_APPLICATION_ID = "Vendor-Specific-Application-Id" Grouped 0:260 M;
    REDIRECT_HOST_USAGE = "Redirect-Host-Usage" Enumerated 0:261 M;
    REDIRECT_MAX_CACHE_TIME = "Redirect-Max-Cache-Time" Unsigned32 0:262 M;
    SESSION_ID = "Session-Id" Utf8String 0:263 M;
    ORIGIN_HOST = "Origin-Host" DiameterIdentity 0:264 M;
    SUPPORTED_VENDOR_ID = "Supported-Vendor-Id" Unsigned32 0:265 M;
    VENDOR_ID = "Vendor-Id" Unsigned32 0:266 M;
    FIRMWARE_REVISION = "Firmware-Revision" Unsigned32 0:267 o;
    RESULT_CODE = "Result-Code" Unsigned32 0:268 M;
    PRODUCT_NAME = "Product-Name" Utf8String 0:269 o;
    SESSION_BINDING = "Session-Binding" Unsigned32 0:270 M;
    DISCONNECT_CAUSE = "Disconnect-Cause" Enumerated 0:273 M;
    AUTH_REQUEST_TYPE = "Auth-Request-Type" Enumerated 0:274 M;
    AUTH_SESSION_STATE = "Auth-Session-State" Enumerated 0:277 M;
    ORIGIN_STATE_ID = "Origin-State-Id" Unsigned32 0:278 M;
    FAILED_AVP = "Failed-AVP" Grouped 0:279 M;
    PROXY_HOST = "Proxy-Host" DiameterIdentity 0:280 M;
    ERROR_MESSAGE = "Error-Message" Utf8String 0:281 o;
    ROUTE_RECORD = "Route-Record" DiameterIdentity 0:282 M;
    DESTINATION_REALM = "Destination-Realm" DiameterIdentity 0:283 M;
    PROXY_INFO = "Proxy-Info" Grouped 0:284 M;
    RE_AUTH_REQUEST_TYPE = "Re-Auth-Request-Type" Enumerated 0:285 M;
    REDIRECT_HOST = "Redirect-Host" DiameterUri 0:292 M;
    DESTINATION_HOST = "Destination-Host" DiameterIdentity 0:293 M;
    ERROR_REPORTING_HOST = "Error-Reporting-Host" DiameterIdentity 0:294 o;
    TERMINATION_CAUSE = "Termination-Cause" Enumerated 0:295 M;
    ORIGIN_REALM = "Origin-Realm" DiameterIdentity 0:296 M;
    EXPERIMENTAL_RESULT = "Experimental-Result" Grouped 0:297 M;
    EXPERIMENTAL_RESULT_CODE = "Experimental-Result-Code" Unsigned32 0:298 M;
    INBAND_SECURITY_ID = "Inband-Security-Id" Unsigned32 0:299 M;
    ACCOUNTING_RECORD_TYPE = "Accounting-Record-Type" Enumerated 0:480 M;
    ACCOUNTING_RECORD_NUMBER = "Accounting-Record-Number" Unsigned32 0:485 M;
    // RFC 8506
    CC_REQUEST_NUMBER = "CC-Request-Number" Unsigned32 0:415 M;
    CC_REQUEST_TYPE = "CC-Request-Type" Enumerated 0:416 M;
    CC_SESSION_FAILOVER = "CC-Session-Failover" Enumerated 0:418 M;
    SUBSCRIPTION_ID = "Subscription-Id" Grouped 0:443 M;
    SUBSCRIPTION_ID_DATA = "Subscription-Id-Data" Utf8String 0:444 M;
    SUBSCRIPTION_ID_TYPE = "Subscription-Id-Type" Enumerated 0:450 M;
    SERVICE_CONTEXT_ID = "Service-Context-Id" Utf8String 0:461 M;
    // RFC 7155 (RADIUS attributes that Gx and Rx use)
    FRAMED_IP_ADDRESS = "Framed-IP-Address" OctetString 0:8 M;
    FRAMED_IPV6_PREFIX = "Framed-IPv6-Prefix" OctetString 0:97 M;
    CALLED_STATION_ID = "Called-Station-Id" Utf8String 0:30 M;
    // RFC 7683
    OC_SUPPORTED_FEATURES = "OC-Supported-Features" Grouped 0:621 o;
    OC_FEATURE_VECTOR = "OC-Feature-Vector" Unsigned64 0:622 o;
    OC_OLR = "OC-OLR" Grouped 0:623 o;
    OC_SEQUENCE_NUMBER = "OC-Sequence-Number" Unsigned64 0:624 o;
    OC_VALIDITY_DURATION = "OC-Validity-Duration" Unsigned32 0:625 o;
    OC_REPORT_TYPE = "OC-Report-Type" Enumerated 0:626 o;
    OC_REDUCTION_PERCENTAGE = "OC-Reduction-Percentage" Unsigned32 0:627 o;
    // RFC 7944, RFC 8581, RFC 8583
    DRMP = "DRMP" Enumerated 0:301 o;
    SOURCE_ID = "SourceID" DiameterIdentity 0:649 o;
    LOAD = "Load" Grouped 0:650 o;
    LOAD_TYPE = "Load-Type" Enumerated 0:651 o;
    LOAD_VALUE = "Load-Value" Unsigned64 0:652 o;
    // TS 29.228, TS 29.229, TS 29.329, TS 29.272, TS 29.214 … (3GPP)
    PUBLIC_IDENTITY = "Public-Identity" Utf8String 10415:601 M;
    SUPPORTED_FEATURES = "Supported-Features" Grouped 10415:628 o;
    FEATURE_LIST_ID = "Feature-List-ID" Unsigned32 10415:629 o;
    FEATURE_LIST = "Feature-List" Unsigned32 10415:630 o;
    USER_IDENTITY = "User-Identity" Grouped 10415:700 M;
    MSISDN = "MSISDN" OctetString 10415:701 M;
    RAT_TYPE = "RAT-Type" Enumerated 10415:1032 o;
    ULR_FLAGS = "ULR-Flags" Unsigned32 10415:1405 M;
    CANCELLATION_TYPE = "Cancellation-Type" Enumerated 10415:1420 M;
    ULA_FLAGS = "ULA-Flags" Unsigned32 10415:1406 M;
    VISITED_PLMN_ID = "Visited-PLMN-Id" OctetString 10415:1407 M;
    SUBSCRIPTION_DATA = "Subscription-Data" Grouped 10415:1400 M;
    TERMINAL_INFORMATION = "Terminal-Information" Grouped 10415:1401 M;
    IMEI = "IMEI" Utf8String 10415:1402 M;
    EQUIPMENT_STATUS = "Equipment-Status" Enumerated 10415:1445 M;
    RX_REQUEST_TYPE = "Rx-Request-Type" Enumerated 10415:533 o;
    CHARGING_RULE_INSTALL = "Charging-Rule-Install" Grouped 10415:1001 M;
    // RFC 8506: units of service
    CC_INPUT_OCTETS = "CC-Input-Octets" Unsigned64 0:412 M;
    CC_OUTPUT_OCTETS = "CC-Output-Octets" Unsigned64 0:414 M;
    CC_TIME = "CC-Time" Unsigned32 0:420 M;
    CC_TOTAL_OCTETS = "CC-Total-Octets" Unsigned64 0:421 M;
    FINAL_UNIT_INDICATION = "Final-Unit-Indication" Grouped 0:430 M;
    GRANTED_SERVICE_UNIT = "Granted-Service-Unit" Grouped 0:431 M;
    RATING_GROUP = "Rating-Group" Unsigned32 0:432 M;
    SERVICE_IDENTIFIER = "Service-Identifier" Unsigned32 0:439 M;
    USED_SERVICE_UNIT = "Used-Service-Unit" Grouped 0:446 M;
    FINAL_UNIT_ACTION = "Final-Unit-Action" Enumerated 0:449 M;
    USER_EQUIPMENT_INFO = "User-Equipment-Info" Grouped 0:458 o;
    USER_EQUIPMENT_INFO_TYPE = "User-Equipment-Info-Type" Enumerated 0:459 o;
    USER_EQUIPMENT_INFO_VALUE = "User-Equipment-Info-Value" OctetString 0:460 o;
    REDIRECT_ADDRESS_TYPE = "Redirect-Address-Type" Enumerated 0:433 M;
    REDIRECT_SERVER_ADDRESS = "Redirect-Server-Address" Utf8String 0:435 M;
    // TS 29.061
    TGPP_SGSN_MCC_MNC = "3GPP-SGSN-MCC-MNC" Utf8String 10415:18 M;
    TGPP_USER_LOCATION_INFO = "3GPP-User-Location-Info" OctetString 10415:22 M;
    TGPP_MS_TIMEZONE = "3GPP-MS-TimeZone" OctetString 10415:23 M;
    // TS 29.214
    ABORT_CAUSE = "Abort-Cause" Enumerated 10415:500 M;
    ACCESS_NETWORK_CHARGING_ADDRESS = "Access-Network-Charging-Address" Address 10415:501 M;
    ACCESS_NETWORK_CHARGING_IDENTIFIER = "Access-Network-Charging-Identifier" Grouped 10415:502 M;
    ACCESS_NETWORK_CHARGING_IDENTIFIER_VALUE = "Access-Network-Charging-Identifier-Value" OctetString 10415:503 M;
    AF_APPLICATION_IDENTIFIER = "AF-Application-Identifier" OctetString 10415:504 M;
    AF_CHARGING_IDENTIFIER = "AF-Charging-Identifier" OctetString 10415:505 M;
    FLOW_DESCRIPTION = "Flow-Description" IpFilterRule 10415:507 M;
    FLOW_NUMBER = "Flow-Number" Unsigned32 10415:509 M;
    FLOWS = "Flows" Grouped 10415:510 M;
    FLOW_STATUS = "Flow-Status" Enumerated 10415:511 M;
    FLOW_USAGE = "Flow-Usage" Enumerated 10415:512 M;
    SPECIFIC_ACTION = "Specific-Action" Enumerated 10415:513 M;
    MAX_REQUESTED_BANDWIDTH_DL = "Max-Requested-Bandwidth-DL" Unsigned32 10415:515 M;
    MAX_REQUESTED_BANDWIDTH_UL = "Max-Requested-Bandwidth-UL" Unsigned32 10415:516 M;
    MEDIA_COMPONENT_DESCRIPTION = "Media-Component-Description" Grouped 10415:517 M;
    MEDIA_COMPONENT_NUMBER = "Media-Component-Number" Unsigned32 10415:518 M;
    MEDIA_SUB_COMPONENT = "Media-Sub-Component" Grouped 10415:519 M;
    MEDIA_TYPE = "Media-Type" Enumerated 10415:520 M;
    RR_BANDWIDTH = "RR-Bandwidth" Unsigned32 10415:521 M;
    RS_BANDWIDTH = "RS-Bandwidth" Unsigned32 10415:522 M;
    CODEC_DATA = "Codec-Data" OctetString 10415:524 M;
    SERVICE_URN = "Service-URN" OctetString 10415:525 M;
    ACCEPTABLE_SERVICE_INFO = "Acceptable-Service-Info" Grouped 10415:526 M;
    SERVICE_INFO_STATUS = "Service-Info-Status" Enumerated 10415:527 M;
    MPS_IDENTIFIER = "MPS-Identifier" OctetString 10415:528 o;
    AF_SIGNALLING_PROTOCOL = "AF-Signalling-Protocol" Enumerated 10415:529 o;
    SPONSORED_CONNECTIVITY_DATA = "Sponsored-Connectivity-Data" Grouped 10415:530 o;
    SPONSOR_IDENTITY = "Sponsor-Identity" Utf8String 10415:531 o;
    APPLICATION_SERVICE_PROVIDER_IDENTITY = "Application-Service-Provider-Identity" Utf8String 10415:532 o;
    MIN_REQUESTED_BANDWIDTH_DL = "Min-Requested-Bandwidth-DL" Unsigned32 10415:534 o;
    MIN_REQUESTED_BANDWIDTH_UL = "Min-Requested-Bandwidth-UL" Unsigned32 10415:535 o;
    REQUIRED_ACCESS_INFO = "Required-Access-Info" Enumerated 10415:536 o;
    IP_DOMAIN_ID = "IP-Domain-Id" OctetString 10415:537 o;
    SHARING_KEY_DL = "Sharing-Key-DL" Unsigned32 10415:539 o;
    SHARING_KEY_UL = "Sharing-Key-UL" Unsigned32 10415:540 o;
    SPONSORING_ACTION = "Sponsoring-Action" Enumerated 10415:542 o;
    AF_REQUESTED_DATA = "AF-Requested-Data" Unsigned32 10415:551 o;
    MEDIA_COMPONENT_STATUS = "Media-Component-Status" Unsigned32 10415:549 o;
    CONTENT_VERSION = "Content-Version" Unsigned64 10415:552 o;
    EXTENDED_MAX_REQUESTED_BW_DL = "Extended-Max-Requested-BW-DL" Unsigned32 10415:554 o;
    EXTENDED_MAX_REQUESTED_BW_UL = "Extended-Max-Requested-BW-UL" Unsigned32 10415:555 o;
    EXTENDED_MIN_REQUESTED_BW_DL = "Extended-Min-Requested-BW-DL" Unsigned32 10415:560 o;
    EXTENDED_MIN_REQUESTED_BW_UL = "Extended-Min-Requested-BW-UL" Unsigned32 10415:561 o;
    // ETSI TS 183 017
    RESERVATION_PRIORITY = "Reservation-Priority" Enumerated 13019:458 o;
    // TS 29.212
    CHARGING_RULE_REMOVE = "Charging-Rule-Remove" Grouped 10415:1002 M;
    CHARGING_RULE_DEFINITION = "Charging-Rule-Definition" Grouped 10415:1003 M;
    CHARGING_RULE_BASE_NAME = "Charging-Rule-Base-Name" Utf8String 10415:1004 M;
    CHARGING_RULE_NAME = "Charging-Rule-Name" OctetString 10415:1005 M;
    EVENT_TRIGGER = "Event-Trigger" Enumerated 10415:1006 M;
    METERING_METHOD = "Metering-Method" Enumerated 10415:1007 M;
    OFFLINE = "Offline" Enumerated 10415:1008 M;
    ONLINE = "Online" Enumerated 10415:1009 M;
    PRECEDENCE = "Precedence" Unsigned32 10415:1010 M;
    REPORTING_LEVEL = "Reporting-Level" Enumerated 10415:1011 M;
    TOS_TRAFFIC_CLASS = "ToS-Traffic-Class" OctetString 10415:1014 M;
    QOS_INFORMATION = "QoS-Information" Grouped 10415:1016 M;
    CHARGING_RULE_REPORT = "Charging-Rule-Report" Grouped 10415:1018 M;
    PCC_RULE_STATUS = "PCC-Rule-Status" Enumerated 10415:1019 M;
    ACCESS_NETWORK_CHARGING_IDENTIFIER_GX = "Access-Network-Charging-Identifier-Gx" Grouped 10415:1022 M;
    BEARER_CONTROL_MODE = "Bearer-Control-Mode" Enumerated 10415:1023 M;
    NETWORK_REQUEST_SUPPORT = "Network-Request-Support" Enumerated 10415:1024 M;
    GUARANTEED_BITRATE_DL = "Guaranteed-Bitrate-DL" Unsigned32 10415:1025 M;
    GUARANTEED_BITRATE_UL = "Guaranteed-Bitrate-UL" Unsigned32 10415:1026 M;
    IP_CAN_TYPE = "IP-CAN-Type" Enumerated 10415:1027 M;
    QOS_CLASS_IDENTIFIER = "QoS-Class-Identifier" Enumerated 10415:1028 M;
    RULE_FAILURE_CODE = "Rule-Failure-Code" Enumerated 10415:1031 M;
    EVENT_REPORT_INDICATION = "Event-Report-Indication" Grouped 10415:1033 o;
    ALLOCATION_RETENTION_PRIORITY = "Allocation-Retention-Priority" Grouped 10415:1034 M;
    APN_AGGREGATE_MAX_BITRATE_DL = "APN-Aggregate-Max-Bitrate-DL" Unsigned32 10415:1040 o;
    APN_AGGREGATE_MAX_BITRATE_UL = "APN-Aggregate-Max-Bitrate-UL" Unsigned32 10415:1041 o;
    REVALIDATION_TIME = "Revalidation-Time" Time 10415:1042 M;
    RULE_ACTIVATION_TIME = "Rule-Activation-Time" Time 10415:1043 M;
    RULE_DEACTIVATION_TIME = "Rule-Deactivation-Time" Time 10415:1044 M;
    SESSION_RELEASE_CAUSE = "Session-Release-Cause" Enumerated 10415:1045 M;
    ORIGINATION_TIME_STAMP = "Origination-Time-Stamp" Unsigned64 10415:1536 o;
    PCSCF_RESTORATION_INDICATION = "PCSCF-Restoration-Indication" Unsigned32 10415:2826 o;
    PRIORITY_LEVEL = "Priority-Level" Unsigned32 10415:1046 M;
    PRE_EMPTION_CAPABILITY = "Pre-emption-Capability" Enumerated 10415:1047 M;
    PRE_EMPTION_VULNERABILITY = "Pre-emption-Vulnerability" Enumerated 10415:1048 M;
    DEFAULT_EPS_BEARER_QOS = "Default-EPS-Bearer-QoS" Grouped 10415:1049 o;
    AN_GW_ADDRESS = "AN-GW-Address" Address 10415:1050 M;
    FLOW_INFORMATION = "Flow-Information" Grouped 10415:1058 o;
    PACKET_FILTER_CONTENT = "Packet-Filter-Content" IpFilterRule 10415:1059 o;
    PACKET_FILTER_IDENTIFIER = "Packet-Filter-Identifier" OctetString 10415:1060 o;
    PACKET_FILTER_INFORMATION = "Packet-Filter-Information" Grouped 10415:1061 o;
    PACKET_FILTER_OPERATION = "Packet-Filter-Operation" Enumerated 10415:1062 o;
    RESOURCE_ALLOCATION_NOTIFICATION = "Resource-Allocation-Notification" Enumerated 10415:1063 o;
    MONITORING_KEY = "Monitoring-Key" OctetString 10415:1066 o;
    USAGE_MONITORING_INFORMATION = "Usage-Monitoring-Information" Grouped 10415:1067 o;
    USAGE_MONITORING_LEVEL = "Usage-Monitoring-Level" Enumerated 10415:1068 o;
    USAGE_MONITORING_REPORT = "Usage-Monitoring-Report" Enumerated 10415:1069 o;
    USAGE_MONITORING_SUPPORT = "Usage-Monitoring-Support" Enumerated 10415:1070 o;
    PACKET_FILTER_USAGE = "Packet-Filter-Usage" Enumerated 10415:1072 o;
    CHARGING_CORRELATION_INDICATOR = "Charging-Correlation-Indicator" Enumerated 10415:1073 o;
    FLOW_DIRECTION = "Flow-Direction" Enumerated 10415:1080 o;
    REDIRECT_INFORMATION = "Redirect-Information" Grouped 10415:1085 o;
    REDIRECT_SUPPORT = "Redirect-Support" Enumerated 10415:1086 o;
    TDF_INFORMATION = "TDF-Information" Grouped 10415:1087 o;
    TDF_APPLICATION_IDENTIFIER = "TDF-Application-Identifier" OctetString 10415:1088 o;
    TDF_DESTINATION_HOST = "TDF-Destination-Host" DiameterIdentity 10415:1089 o;
    TDF_DESTINATION_REALM = "TDF-Destination-Realm" DiameterIdentity 10415:1090 o;
    ADC_RULE_INSTALL = "ADC-Rule-Install" Grouped 10415:1092 M;
    ADC_RULE_REMOVE = "ADC-Rule-Remove" Grouped 10415:1093 M;
    ADC_RULE_DEFINITION = "ADC-Rule-Definition" Grouped 10415:1094 M;
    ADC_RULE_BASE_NAME = "ADC-Rule-Base-Name" Utf8String 10415:1095 M;
    ADC_RULE_NAME = "ADC-Rule-Name" OctetString 10415:1096 M;
    ADC_RULE_REPORT = "ADC-Rule-Report" Grouped 10415:1097 M;
    APPLICATION_DETECTION_INFORMATION = "Application-Detection-Information" Grouped 10415:1098 o;
    TDF_APPLICATION_INSTANCE_IDENTIFIER = "TDF-Application-Instance-Identifier" OctetString 10415:2802 o;
    MUTE_NOTIFICATION = "Mute-Notification" Enumerated 10415:2809 o;
    MONITORING_TIME = "Monitoring-Time" Time 10415:2810 o;
    QUOTA_CONSUMPTION_TIME = "Quota-Consumption-Time" Unsigned32 10415:881 M;
    RAN_NAS_RELEASE_CAUSE = "RAN-NAS-Release-Cause" OctetString 10415:2819 o;
    TRAFFIC_STEERING_POLICY_IDENTIFIER_DL = "Traffic-Steering-Policy-Identifier-DL" OctetString 10415:2836 o;
    TRAFFIC_STEERING_POLICY_IDENTIFIER_UL = "Traffic-Steering-Policy-Identifier-UL" OctetString 10415:2837 o;
    RESOURCE_RELEASE_NOTIFICATION = "Resource-Release-Notification" Enumerated 10415:2841 o;
    TGPP_PS_DATA_OFF_STATUS = "3GPP-PS-Data-Off-Status" Enumerated 10415:2847 o;
    EXTENDED_APN_AMBR_DL = "Extended-APN-AMBR-DL" Unsigned32 10415:2848 o;
    EXTENDED_APN_AMBR_UL = "Extended-APN-AMBR-UL" Unsigned32 10415:2849 o;
    EXTENDED_GBR_DL = "Extended-GBR-DL" Unsigned32 10415:2850 o;
    EXTENDED_GBR_UL = "Extended-GBR-UL" Unsigned32 10415:2851 o;
    // TS 29.219
    POLICY_COUNTER_IDENTIFIER = "Policy-Counter-Identifier" Utf8String 10415:2901 M;
    POLICY_COUNTER_STATUS = "Policy-Counter-Status" Utf8String 10415:2902 M;
    POLICY_COUNTER_STATUS_REPORT = "Policy-Counter-Status-Report" Grouped 10415:2903 M;
    SL_REQUEST_TYPE = "SL-Request-Type" Enumerated 10415:2904 M;
    PENDING_POLICY_COUNTER_INFORMATION = "Pending-Policy-Counter-Information" Grouped 10415:2905 M;
    PENDING_POLICY_COUNTER_CHANGE_TIME = "Pending-Policy-Counter-Change-Time" Time 10415:2906 M;
    SN_REQUEST_TYPE = "SN-Request-Type" Unsigned32 10415:2907 M;
    // TS 29.336, TS 32.299
    USER_IDENTIFIER = "User-Identifier" Grouped 10415:3102 M;
    EXTERNAL_IDENTIFIER = "External-Identifier" Utf8String 10415:3111 M;
    SERVICE_INFORMATION = "Service-Information" Grouped 10415:873 M;
    // TS 29.336 (S6t), TS 29.128 (T6a)
    SERVICE_SELECTION = "Service-Selection" Utf8String 0:493 M;
    BEARER_IDENTIFIER = "Bearer-Identifier" OctetString 10415:1020 M;
    EPS_LOCATION_INFORMATION = "EPS-Location-Information" Grouped 10415:1496 o;
    MME_LOCATION_INFORMATION = "MME-Location-Information" Grouped 10415:1600 o;
    SGSN_LOCATION_INFORMATION = "SGSN-Location-Information" Grouped 10415:1601 o;
    E_UTRAN_CELL_GLOBAL_IDENTITY = "E-UTRAN-Cell-Global-Identity" OctetString 10415:1602 o;
    TRACKING_AREA_IDENTITY = "Tracking-Area-Identity" OctetString 10415:1603 o;
    CELL_GLOBAL_IDENTITY = "Cell-Global-Identity" OctetString 10415:1604 o;
    ROUTING_AREA_IDENTITY = "Routing-Area-Identity" OctetString 10415:1605 o;
    AGE_OF_LOCATION_INFORMATION = "Age-Of-Location-Information" Unsigned32 10415:1611 o;
    SUBSCRIBED_PERIODIC_RAU_TAU_TIMER = "Subscribed-Periodic-RAU-TAU-Timer" Unsigned32 10415:1619 o;
    MONITORING_EVENT_CONFIGURATION = "Monitoring-Event-Configuration" Grouped 10415:3122 M;
    MONITORING_EVENT_REPORT = "Monitoring-Event-Report" Grouped 10415:3123 M;
    SCEF_REFERENCE_ID = "SCEF-Reference-ID" Unsigned32 10415:3124 M;
    SCEF_ID = "SCEF-ID" DiameterIdentity 10415:3125 M;
    SCEF_REFERENCE_ID_FOR_DELETION = "SCEF-Reference-ID-for-Deletion" Unsigned32 10415:3126 M;
    MONITORING_TYPE = "Monitoring-Type" Unsigned32 10415:3127 M;
    MAXIMUM_NUMBER_OF_REPORTS = "Maximum-Number-of-Reports" Unsigned32 10415:3128 M;
    UE_REACHABILITY_CONFIGURATION = "UE-Reachability-Configuration" Grouped 10415:3129 M;
    MONITORING_DURATION = "Monitoring-Duration" Time 10415:3130 M;
    MAXIMUM_DETECTION_TIME = "Maximum-Detection-Time" Unsigned32 10415:3131 M;
    REACHABILITY_TYPE = "Reachability-Type" Unsigned32 10415:3132 M;
    MAXIMUM_LATENCY = "Maximum-Latency" Unsigned32 10415:3133 M;
    MAXIMUM_RESPONSE_TIME = "Maximum-Response-Time" Unsigned32 10415:3134 M;
    LOCATION_INFORMATION_CONFIGURATION = "Location-Information-Configuration" Grouped 10415:3135 M;
    MONTE_LOCATION_TYPE = "MONTE-Location-Type" Unsigned32 10415:3136 M;
    ACCURACY = "Accuracy" Unsigned32 10415:3137 M;
    ASSOCIATION_TYPE = "Association-Type" Unsigned32 10415:3138 M;
    ROAMING_INFORMATION = "Roaming-Information" Unsigned32 10415:3139 M;
    REACHABILITY_INFORMATION = "Reachability-Information" Unsigned32 10415:3140 M;
    IMEI_CHANGE = "IMEI-Change" Unsigned32 10415:3141 M;
    MONITORING_EVENT_CONFIG_STATUS = "Monitoring-Event-Config-Status" Grouped 10415:3142 M;
    SERVICE_RESULT = "Service-Result" Grouped 10415:3146 M;
    SERVICE_RESULT_CODE = "Service-Result-Code" Unsigned32 10415:3147 M;
    NIDD_AUTHORIZATION_REQUEST = "NIDD-Authorization-Request" Grouped 10415:3150 M;
    NIDD_AUTHORIZATION_RESPONSE = "NIDD-Authorization-Response" Grouped 10415:3151 M;
    SERVICE_REPORT = "Service-Report" Grouped 10415:3152 M;
    REQUESTED_VALIDITY_TIME = "Requested-Validity-Time" Time 10415:3159 M;
    GRANTED_VALIDITY_TIME = "Granted-Validity-Time" Time 10415:3160 M;
    LOSS_OF_CONNECTIVITY_REASON = "Loss-Of-Connectivity-Reason" Unsigned32 10415:3162 M;
    GROUP_REPORTING_GUARD_TIMER = "Group-Reporting-Guard-Timer" Unsigned32 10415:3163 o;
    GROUP_REPORT = "Group-Report" Grouped 10415:3165 o;
    GROUP_REPORT_ITEM = "Group-Report-Item" Grouped 10415:3166 o;
    TYPE_OF_EXTERNAL_IDENTIFIER = "Type-Of-External-Identifier" Unsigned32 10415:3168 o;
    PLMN_ID_REQUESTED = "PLMN-ID-Requested" Enumerated 10415:3172 o;
    REPORTING_TIME_STAMP = "Reporting-Time-Stamp" Time 10415:3175 o;
    MTC_PROVIDER_INFO = "MTC-Provider-Info" Grouped 10415:3178 o;
    MTC_PROVIDER_ID = "MTC-Provider-ID" Utf8String 10415:3179 o;
    MAXIMUM_UE_AVAILABILITY_TIME = "Maximum-UE-Availability-Time" Time 10415:3329 o;
    MAXIMUM_RETRANSMISSION_TIME = "Maximum-Retransmission-Time" Time 10415:3330 o;
    REQUESTED_RETRANSMISSION_TIME = "Requested-Retransmission-Time" Time 10415:3331 o;
    COMMUNICATION_FAILURE_INFORMATION = "Communication-Failure-Information" Grouped 10415:4300 M;
    CAUSE_TYPE = "Cause-Type" Unsigned32 10415:4301 M;
    S1AP_CAUSE = "S1AP-Cause" Unsigned32 10415:4302 M;
    RANAP_CAUSE = "RANAP-Cause" Unsigned32 10415:4303 M;
    GMM_CAUSE = "GMM-Cause" Unsigned32 10415:4304 M;
    SM_CAUSE = "SM-Cause" Unsigned32 10415:4305 M;
    BSSGP_CAUSE = "BSSGP-Cause" Unsigned32 10415:4309 M;
    CONNECTION_ACTION = "Connection-Action" Unsigned32 10415:4314 M;
    NON_IP_DATA = "Non-IP-Data" OctetString 10415:4315 M;
    SCEF_WAIT_TIME = "SCEF-Wait-Time" Time 10415:4316 M;
    CMR_FLAGS = "CMR-Flags" Unsigned32 10415:4317 M;
    TDA_FLAGS = "TDA-Flags" Unsigned32 10415:4321 o;
    IDLE_STATUS_INDICATION = "Idle-Status-Indication" Grouped 10415:4322 o;
    IDLE_STATUS_TIMESTAMP = "Idle-Status-Timestamp" Time 10415:4323 o;
    ACTIVE_TIME = "Active-Time" Unsigned32 10415:4324 o;
    DL_BUFFERING_SUGGESTED_PACKET_COUNT = "DL-Buffering-Suggested-Packet-Count" Integer32 10415:1674 o;
    PERIODIC_TIME = "Periodic-Time" Unsigned32 10415:3117 M;
    NIDD_AUTHORIZATION_UPDATE = "NIDD-Authorization-Update" Grouped 10415:3161 M;
    APN_VALIDITY_TIME = "APN-Validity-Time" Grouped 10415:3169 o;
    // TS 29.336 (S6m), TS 29.337 (T4), TS 29.368 (Tsp)
    VALIDITY_TIME = "Validity-Time" Unsigned32 0:448 M;
    SERVING_NODE = "Serving-Node" Grouped 10415:2401 M;
    ADDITIONAL_SERVING_NODE = "Additional-Serving-Node" Grouped 10415:2406 M;
    DEVICE_ACTION = "Device-Action" Grouped 10415:3001 M;
    DEVICE_NOTIFICATION = "Device-Notification" Grouped 10415:3002 M;
    TRIGGER_DATA = "Trigger-Data" Grouped 10415:3003 M;
    PAYLOAD = "Payload" OctetString 10415:3004 M;
    ACTION_TYPE = "Action-Type" Enumerated 10415:3005 M;
    PRIORITY_INDICATION = "Priority-Indication" Enumerated 10415:3006 M;
    REFERENCE_NUMBER = "Reference-Number" Unsigned32 10415:3007 M;
    REQUEST_STATUS = "Request-Status" Enumerated 10415:3008 M;
    DELIVERY_OUTCOME = "Delivery-Outcome" Enumerated 10415:3009 M;
    APPLICATION_PORT_IDENTIFIER = "Application-Port-Identifier" Unsigned32 10415:3010 M;
    OLD_REFERENCE_NUMBER = "Old-Reference-Number" Unsigned32 10415:3011 o;
    SERVICE_ID = "Service-ID" Enumerated 10415:3103 M;
    SCS_IDENTITY = "SCS-Identity" OctetString 10415:3104 M;
    SERVICE_PARAMETERS = "Service-Parameters" Grouped 10415:3105 M;
    T4_PARAMETERS = "T4-Parameters" Grouped 10415:3106 M;
    SERVICE_DATA = "Service-Data" Grouped 10415:3107 M;
    T4_DATA = "T4-Data" Grouped 10415:3108 M;
    HSS_CAUSE = "HSS-Cause" Unsigned32 10415:3109 M;
    SIR_FLAGS = "SIR-Flags" Unsigned32 10415:3110 M;
    SM_DELIVERY_OUTCOME_T4 = "SM-Delivery-Outcome-T4" Enumerated 10415:3200 M;
    ABSENT_SUBSCRIBER_DIAGNOSTIC_T4 = "Absent-Subscriber-Diagnostic-T4" Enumerated 10415:3201 M;
    TRIGGER_ACTION = "Trigger-Action" Unsigned32 10415:3202 o;
    SM_RP_SMEA = "SM-RP-SMEA" OctetString 10415:3309 M;
}
