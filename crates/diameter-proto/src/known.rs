//! Commands, applications, vendors and the AVPs our own code speaks of, as typed constants. Everything else
//! is reached by name through the [`crate::dictionary`]; a test holds both to the same data.

use crate::avp::AvpKey;
use crate::kind::{
    Address, AvpType, DiameterIdentity, DiameterUri, Enumerated, Grouped, Kind, OctetString, Tag, Time,
    Unsigned32, Unsigned64, Utf8String,
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
    /// S6m, S6n and S6t.
    pub const S6M: u32 = 16_777_310;
    /// S6c.
    pub const S6C: u32 = 16_777_312;
    /// T6a and T6b.
    pub const T6A: u32 = 16_777_346;
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
    // RFC 8506
    CC_REQUEST_NUMBER = "CC-Request-Number" Unsigned32 0:415 M;
    CC_REQUEST_TYPE = "CC-Request-Type" Enumerated 0:416 M;
    SUBSCRIPTION_ID = "Subscription-Id" Grouped 0:443 M;
    SUBSCRIPTION_ID_DATA = "Subscription-Id-Data" Utf8String 0:444 M;
    SUBSCRIPTION_ID_TYPE = "Subscription-Id-Type" Enumerated 0:450 M;
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
    ULA_FLAGS = "ULA-Flags" Unsigned32 10415:1406 M;
    VISITED_PLMN_ID = "Visited-PLMN-Id" OctetString 10415:1407 M;
    SUBSCRIPTION_DATA = "Subscription-Data" Grouped 10415:1400 M;
    TERMINAL_INFORMATION = "Terminal-Information" Grouped 10415:1401 M;
    IMEI = "IMEI" Utf8String 10415:1402 M;
    EQUIPMENT_STATUS = "Equipment-Status" Enumerated 10415:1445 M;
    RX_REQUEST_TYPE = "Rx-Request-Type" Enumerated 10415:533 o;
    CHARGING_RULE_INSTALL = "Charging-Rule-Install" Grouped 10415:1001 M;
    EXTERNAL_IDENTIFIER = "External-Identifier" Utf8String 10415:3111 M;
}
