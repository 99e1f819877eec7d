//! Rx: AAR to documents, notifications to AVPs.

use diameter_proto::known::{application, command};
use pcc::rx::{Request, RequestKind, fault, put_abort, put_access, put_notification};
use pcc::{Cause, Mapping, media};
use serde_json::json;

use super::{parse, written};

const AAR: &str = r#"AAR app=16777236 {
  Session-Id = "pcscf;1;1"
  Auth-Application-Id = 16777236
  Origin-Host = "pcscf.example"
  Origin-Realm = "example"
  Destination-Realm = "example"
  AF-Application-Identifier = 0x494d53
  AF-Charging-Identifier = 0x696369642d31
  Media-Component-Description = {
    Media-Component-Number = 1
    Media-Sub-Component = {
      Flow-Number = 1
      Flow-Description = "permit in 17 from 10.45.0.1 50000 to 192.0.2.99 40000"
      Flow-Description = "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000"
      Flow-Status = ENABLED
      Flow-Usage = NO_INFORMATION
    }
    Media-Sub-Component = {
      Flow-Number = 2
      Flow-Usage = RTCP
    }
    Media-Type = AUDIO
    Max-Requested-Bandwidth-UL = 64000
    Max-Requested-Bandwidth-DL = 4294967295
    Extended-Max-Requested-BW-DL = 5000000
    RS-Bandwidth = 800
    RR-Bandwidth = 2400
    Reservation-Priority = PRIORITY-FIFTEEN
    Codec-Data = 0x75706c696e6b0a6f666665720a
  }
  Specific-Action = INDICATION_OF_RELEASE_OF_BEARER
  Specific-Action = ACCESS_NETWORK_INFO_REPORT
  Subscription-Id = { Subscription-Id-Type = END_USER_SIP_URI Subscription-Id-Data = "sip:a@ims.example" }
  Subscription-Id = { Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = "001010000000001" }
  Framed-IP-Address = 0x0a2d0001
  IP-Domain-Id = 0x6e6f727468
  Called-Station-Id = "ims"
  Rx-Request-Type = INITIAL_REQUEST
  Required-Access-Info = USER_LOCATION
  Sponsored-Connectivity-Data = { Sponsor-Identity = "shop" Application-Service-Provider-Identity = "video" Granted-Service-Unit = { CC-Total-Octets = 5000 } }
}"#;

#[test]
fn an_aar_has_the_members_of_app_session_context_req_data() {
    let request = Request::read(parse(AAR).view()).unwrap();
    assert_eq!(
        (request.kind, &*request.session),
        (Some(RequestKind::Initial), "pcscf;1;1")
    );
    assert!(request.has_address());
    assert_eq!(
        request.document,
        json!({
            "afAppId": "IMS", "afChargId": "icid-1", "supi": "imsi-001010000000001",
            "ueIpv4": "10.45.0.1", "ipDomain": "north", "dnn": "ims", "sponId": "shop", "aspId": "video",
            "medComponents": {"1": {
                "medCompN": 1, "medType": "AUDIO", "marBwUl": "64 Kbps", "marBwDl": "5 Gbps", "rsBw": "800 bps",
                "rrBw": "2400 bps", "resPrio": "PRIO_16", "codecs": ["uplink\noffer\n"],
                "medSubComps": {
                    "1": {
                        "fNum": 1, "fStatus": "ENABLED", "flowUsage": "NO_INFO",
                        "fDescs": [
                            "permit in 17 from 10.45.0.1 50000 to 192.0.2.99 40000",
                            "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000",
                        ],
                    },
                    "2": {"fNum": 2, "flowUsage": "RTCP"},
                },
            }},
            "evSubsc": {
                "events": [{"event": "INDICATION_OF_RELEASE_OF_BEARER"}, {"event": "ANI_REPORT"}],
                "reqAnis": ["USER_LOCATION"], "usgThres": {"totalVolume": 5000},
            },
        })
    );
    let rules = media::derive("s", &request.document, &Mapping::default()).unwrap();
    assert_eq!(rules["qosDecs"]["af-s-1-1"]["arp"]["priorityLevel"], 1);
    assert_eq!(rules["lastReqRuleData"][0]["reqData"], json!(["USER_LOC_INFO"]));
}

#[test]
fn refusals_are_experimental_results() {
    let text = AAR.replace("permit in 17", "deny in 17");
    let request = Request::read(parse(&text).view()).unwrap();
    let refusal = media::derive("s", &request.document, &Mapping::default()).unwrap_err();
    assert_eq!(refusal.cause, Cause::FilterRestrictions);
    let fault = fault(&refusal);
    assert_eq!((fault.code.0, fault.vendor), (5062, 10415));
}

#[test]
fn notifications_are_written_in_avps_of_rx() {
    let flows = json!([{"medCompN": 1, "fNums": [1, 2]}]);
    let notification = json!({
        "evNotifs": [
            {"event": "INDICATION_OF_RELEASE_OF_BEARER", "flows": flows}, {"event": "FAILED_RESOURCES_ALLOCATION", "flows": flows},
            {"event": "CHARGING_CORRELATION"}, {"event": "ACCESS_TYPE_CHANGE"}, {"event": "QOS_NOTIF"},
        ],
        "anChargIds": [{"accNetChaIdValue": 17, "flows": flows}],
        "plmnId": {"mcc": "001", "mnc": "01"}, "ueTimeZone": "+01:00",
    });
    let context = json!({"accessType": "3GPP_ACCESS", "ratType": "NR"});
    let mut any = false;
    let text = written(command::RE_AUTH, application::RX, |out| {
        any = put_notification(out, &notification, &context);
    });
    assert!(any);
    assert_eq!(
        text,
        r#"  Specific-Action = CHARGING_CORRELATION_EXCHANGE
  Specific-Action = INDICATION_OF_RELEASE_OF_BEARER
  Specific-Action = IP-CAN_CHANGE
  Specific-Action = INDICATION_OF_FAILED_RESOURCES_ALLOCATION
  Access-Network-Charging-Identifier = {
    Access-Network-Charging-Identifier-Value = 0x00000011
    Flows = {
      Media-Component-Number = 1
      Flow-Number = 1
      Flow-Number = 2
    }
  }
  Flows = {
    Media-Component-Number = 1
    Flow-Number = 1
    Flow-Number = 2
  }
  IP-CAN-Type = 3GPP-5GS
  RAT-Type = NR
  3GPP-MS-TimeZone = 0x4000
  3GPP-SGSN-MCC-MNC = "00101""#
    );
    let gx = json!({"gx": {"ipCanType": 5}, "ratType": "EUTRA", "chargEntityAddr": {"anChargIpv4Addr": "192.0.2.7"}});
    let text = written(command::ABORT_SESSION, application::RX, |out| {
        put_abort(out, "INSUFFICIENT_QOS_FLOW_RESOURCES");
    });
    assert_eq!(text, "  Abort-Cause = INSUFFICIENT_BEARER_RESOURCES");
    let text = written(command::RE_AUTH, application::RX, |out| {
        put_notification(out, &json!({"evNotifs": [{"event": "PLMN_CHG"}]}), &gx);
        put_access(out, &gx);
    });
    assert!(
        text.contains(
            "Access-Network-Charging-Address = 192.0.2.7\n  IP-CAN-Type = 3GPP-EPS\n  RAT-Type = EUTRAN"
        ),
        "{text}"
    );
}
