//! Gx: CCR to documents, decisions to AVPs.

use diameter_proto::ResultCode;
use diameter_proto::known::{application, command};
use pcc::gx::{Features, Request, RequestKind, put_change, put_release, read_report};
use pcc::{Mapping, decision, event, media};
use serde_json::{Value, json};

use super::{parse, written};

const INITIAL: &str = r#"CCR app=16777238 {
  Session-Id = "pgw;1;1"
  Auth-Application-Id = 16777238
  Origin-Host = "pgw.example"
  Origin-Realm = "example"
  Destination-Realm = "example"
  CC-Request-Type = INITIAL_REQUEST
  CC-Request-Number = 0
  Subscription-Id = { Subscription-Id-Type = END_USER_IMSI Subscription-Id-Data = "001010000000001" }
  Subscription-Id = { Subscription-Id-Type = END_USER_E164 Subscription-Id-Data = "491700000001" }
  Supported-Features = { Vendor-Id = 10415 Feature-List-ID = 1 Feature-List = 16785407 }
  Network-Request-Support = NETWORK_REQUEST_SUPPORTED
  Framed-IP-Address = 0x0a2d0001
  Framed-IPv6-Prefix = 0x004020010db800000001
  IP-CAN-Type = 3GPP-EPS
  RAT-Type = EUTRAN
  User-Equipment-Info = { User-Equipment-Info-Type = IMEISV User-Equipment-Info-Value = 0x33353330303030303030303030303031 }
  QoS-Information = { APN-Aggregate-Max-Bitrate-UL = 50000000 APN-Aggregate-Max-Bitrate-DL = 4294967295 Extended-APN-AMBR-DL = 6000000 }
  Default-EPS-Bearer-QoS = {
    QoS-Class-Identifier = QCI_9
    Allocation-Retention-Priority = { Priority-Level = 8 Pre-emption-Capability = PRE-EMPTION_CAPABILITY_DISABLED }
  }
  3GPP-SGSN-MCC-MNC = "00101"
  3GPP-User-Location-Info = 0x8200f110000100f11000000065
  Called-Station-Id = "internet"
  Online = ENABLE_ONLINE
  Access-Network-Charging-Address = 192.0.2.7
  Access-Network-Charging-Identifier-Gx = { Access-Network-Charging-Identifier-Value = 0x00000010 }
}"#;

#[test]
fn a_session_that_begins_has_the_members_of_sm_policy_context_data() {
    let request = parse(INITIAL);
    let request = Request::read(request.view()).unwrap();
    assert_eq!(
        (request.kind, request.number, &*request.session),
        (RequestKind::Initial, 0, "pgw;1;1")
    );
    assert_eq!(request.features.unwrap().common(Features::OURS), Features::OURS);
    let plmn = json!({"mcc": "001", "mnc": "01"});
    assert_eq!(
        request.document,
        json!({
            "supi": "imsi-001010000000001", "gpsi": "msisdn-491700000001",
            "ipv4Address": "10.45.0.1", "ipv6AddressPrefix": "2001:db8:0:1::/64", "pduSessionType": "IPV4V6",
            "pei": "imeisv-3530000000000001", "dnn": "internet", "online": true,
            "accessType": "3GPP_ACCESS", "ratType": "EUTRA", "servingNetwork": plmn,
            "subsSessAmbr": {"uplink": "50 Mbps", "downlink": "6 Gbps"},
            "subsDefQos": {"5qi": 9, "arp": {"priorityLevel": 8, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}},
            "userLocationInfo": {"eutraLocation": {
                "tai": {"plmnId": plmn, "tac": "0001"}, "ecgi": {"plmnId": plmn, "eutraCellId": "0000065"}}},
            "chargEntityAddr": {"anChargIpv4Addr": "192.0.2.7"},
            "accNetChId": {"accNetChaIdValue": 16, "sessionChScope": true},
            "gx": {"networkRequestSupport": true, "ipCanType": 5},
        })
    );
}

#[test]
fn a_session_without_subscriber_or_network_is_refused() {
    for line in ["Called-Station-Id", "Subscription-Id"] {
        let text: Vec<&str> = INITIAL
            .lines()
            .filter(|text| !text.trim_start().starts_with(line))
            .collect();
        let text = text.join("\n");
        let read = Request::read(parse(&text).view());
        let fault = read.and_then(|request| request.require_subscriber()).unwrap_err();
        assert_eq!((fault.code, fault.vendor), (ResultCode(5140), 10415), "{line}");
    }
    let event = INITIAL.replace("INITIAL_REQUEST", "EVENT_REQUEST");
    let fault = Request::read(parse(&event).view()).unwrap_err();
    assert_eq!(fault.code, ResultCode::INVALID_AVP_VALUE);
}

#[test]
fn reports_have_the_members_of_sm_policy_update_context_data() {
    let request = parse(
        r#"CCR app=16777238 {
  Session-Id = "pgw;1;1"
  Auth-Application-Id = 16777238
  Origin-Host = "pgw.example"
  Origin-Realm = "example"
  Destination-Realm = "example"
  CC-Request-Type = UPDATE_REQUEST
  CC-Request-Number = 3
  Event-Trigger = RAT_CHANGE
  Event-Trigger = USAGE_REPORT
  Event-Trigger = UE_IP_ADDRESS_ALLOCATE
  Event-Trigger = UE_IP_ADDRESS_RELEASE
  Event-Trigger = PGW_TRACE_CONTROL
  RAT-Type = NR
  Charging-Rule-Report = {
    Charging-Rule-Name = 0x61662d732d312d31
    Charging-Rule-Name = 0x61662d732d312d32
    PCC-Rule-Status = INACTIVE
    Rule-Failure-Code = RESOURCE_ALLOCATION_FAILURE
  }
  Usage-Monitoring-Information = {
    Monitoring-Key = 0x6d
    Used-Service-Unit = { CC-Total-Octets = 900 }
    Used-Service-Unit = { CC-Total-Octets = 50 Monitoring-Time = time 1700000000 }
  }
  Access-Network-Charging-Identifier-Gx = {
    Access-Network-Charging-Identifier-Value = 0x00000011
    Charging-Rule-Name = 0x61662d732d312d31
  }
}"#,
    );
    let request = Request::read(request.view()).unwrap();
    assert_eq!(
        request.document,
        json!({
            "repPolicyCtrlReqTriggers": ["RAT_TY_CH", "US_RE", "UE_IP_CH"], "ratType": "NR",
            "ruleReports": [{"pccRuleIds": ["af-s-1-1", "af-s-1-2"], "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"}],
            "accuUsageReports": [{"refUmIds": "m", "volUsage": 900, "nextVolUsage": 50}],
            "accNetChIds": [{"accNetChaIdValue": 17, "refPccRuleIds": ["af-s-1-1"], "sessionChScope": false}],
            "gx": {"eventTriggers": [24]},
        })
    );
    let mut call = super::media::call();
    call["evSubsc"] =
        json!({"events": [{"event": "FAILED_RESOURCES_ALLOCATION"}, {"event": "CHARGING_CORRELATION"}]});
    let flows = json!([{"medCompN": 1, "fNums": [1, 2]}]);
    assert_eq!(
        event::notification("s", &call, &request.document).unwrap(),
        json!({
            "failedResourcAllocReports": [{"mcResourcStatus": "INACTIVE", "flows": flows}],
            "anChargIds": [{"accNetChaIdValue": 17, "flows": [{"medCompN": 1, "fNums": [1]}]}],
            "evNotifs": [{"event": "FAILED_RESOURCES_ALLOCATION", "flows": flows}, {"event": "CHARGING_CORRELATION"}],
        })
    );
    assert_eq!(event::notification("other", &call, &request.document), None);
    assert_eq!(event::inactive_rules(&request.document).count(), 2);
}

#[test]
fn a_resource_request_of_a_ue_is_read() {
    let answer = parse(
        r#"RAA app=16777238 flags=P {
  Session-Id = "pgw;1;1"
  Origin-Host = "pgw.example"
  Origin-Realm = "example"
  Result-Code = DIAMETER_SUCCESS
  Packet-Filter-Operation = ADDITION
  Packet-Filter-Information = { Packet-Filter-Identifier = 0x01 Packet-Filter-Content = "permit out 17 from any to any 80" Flow-Direction = DOWNLINK }
  QoS-Information = { QoS-Class-Identifier = QCI_1 Guaranteed-Bitrate-UL = 64000 Guaranteed-Bitrate-DL = 64000 }
}"#,
    );
    let report = read_report(answer.view()).unwrap();
    assert_eq!(
        report["ueInitResReq"],
        json!({
            "ruleOp": "CREATE_PCC_RULE",
            "packFiltInfo": [{"packFiltId": "01", "packFiltCont": "permit out 17 from any to any 80", "flowDirection": "DOWNLINK"}],
            "reqQos": {"5qi": 1, "gbrUl": "64 Kbps", "gbrDl": "64 Kbps"},
        })
    );
}

fn base() -> Value {
    json!({
        "sessRules": {"default": {
            "sessRuleId": "default", "refUmData": "m",
            "authSessAmbr": {"uplink": "50 Mbps", "downlink": "6 Gbps"},
            "authDefQos": {"5qi": 9, "arp": {"priorityLevel": 8, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}},
        }},
        "pccRules": {"predefined": {"pccRuleId": "predefined"}},
        "umDecs": {"m": {"umId": "m", "volumeThreshold": 4000, "monitoringTime": "2024-03-01T00:00:00Z", "nextVolThreshold": 10000}},
        "policyCtrlReqTriggers": ["RAT_TY_CH", "US_RE"],
        "revalidationTime": "2024-03-01T00:00:00Z",
    })
}

fn change(has: &Value, shall: &Value) -> String {
    written(command::RE_AUTH, application::GX, |out| {
        put_change(out, has, shall);
    })
}

#[test]
fn a_decision_is_written_in_avps_of_gx() {
    assert_eq!(
        change(&Value::Null, &base()),
        r#"  Event-Trigger = RAT_CHANGE
  Event-Trigger = USAGE_REPORT
  Charging-Rule-Install = {
    Charging-Rule-Name = 0x707265646566696e6564
  }
  QoS-Information = {
    APN-Aggregate-Max-Bitrate-UL = 50000000
    APN-Aggregate-Max-Bitrate-DL = 4294967295
    Extended-APN-AMBR-DL = 6000000
  }
  Default-EPS-Bearer-QoS = {
    QoS-Class-Identifier = QCI_9
    Allocation-Retention-Priority = {
      Priority-Level = 8
      Pre-emption-Capability = PRE-EMPTION_CAPABILITY_DISABLED
      Pre-emption-Vulnerability = PRE-EMPTION_VULNERABILITY_ENABLED
    }
  }
  Revalidation-Time = time 1709251200
  Usage-Monitoring-Information = {
    Monitoring-Key = 0x6d
    Granted-Service-Unit = {
      CC-Total-Octets = 4000
    }
    Granted-Service-Unit = {
      CC-Total-Octets = 10000
      Monitoring-Time = time 1709251200
    }
    Usage-Monitoring-Level = SESSION_LEVEL
  }"#
    );
    assert_eq!(change(&base(), &base()), "");
}

#[test]
fn a_voice_call_installs_changes_and_removes_its_rules() {
    let mut request = super::media::call();
    let rules = |request: &Value| media::derive("s", request, &Mapping::default()).unwrap();
    let with_call = decision::compose([&base(), &rules(&request)]);
    let install = change(&base(), &with_call);
    let audio = r#"  Charging-Rule-Install = {
    Charging-Rule-Definition = {
      Charging-Rule-Name = 0x61662d732d312d31
      Flow-Information = {
        Flow-Description = "permit out 17 from 192.0.2.99 40000 to 10.45.0.1 50000"
        Packet-Filter-Usage = SEND_TO_UE
        Flow-Direction = BIDIRECTIONAL
      }
      Flow-Status = ENABLED
      QoS-Information = {
        QoS-Class-Identifier = QCI_1
        Max-Requested-Bandwidth-UL = 64000
        Max-Requested-Bandwidth-DL = 64000
        Guaranteed-Bitrate-UL = 64000
        Guaranteed-Bitrate-DL = 24000
        Allocation-Retention-Priority = {
          Priority-Level = 2
          Pre-emption-Capability = PRE-EMPTION_CAPABILITY_ENABLED
          Pre-emption-Vulnerability = PRE-EMPTION_VULNERABILITY_DISABLED
        }
      }
      AF-Charging-Identifier = 0x696369642d31
      Flows = {
        Media-Component-Number = 1
        Flow-Number = 1
      }
      Precedence = 51
    }"#;
    assert!(install.contains(audio), "{install}");
    assert!(
        install.contains("    Resource-Allocation-Notification = ENABLE_NOTIFICATION\n"),
        "{install}"
    );
    assert_eq!(
        install.matches("Charging-Rule-Install").count(),
        1,
        "both on the same terms"
    );
    assert!(
        !install.contains("predefined") && !install.contains("Revalidation-Time"),
        "{install}"
    );

    media::merge(
        &mut request,
        &json!({"medComponents": {"1": {"fStatus": "DISABLED"}}}),
    );
    let held = decision::compose([&base(), &rules(&request)]);
    let hold = change(&with_call, &held);
    assert_eq!(hold.matches("Charging-Rule-Definition").count(), 2);
    assert!(
        hold.contains("Flow-Status = DISABLED") && !hold.contains("Event-Trigger"),
        "{hold}"
    );

    assert_eq!(
        change(&held, &base()),
        r#"  Event-Trigger = RAT_CHANGE
  Event-Trigger = USAGE_REPORT
  Charging-Rule-Remove = {
    Charging-Rule-Name = 0x61662d732d312d31
    Charging-Rule-Name = 0x61662d732d312d32
  }"#
    );
}

#[test]
fn conditions_usage_and_release_have_their_avps() {
    let mut shall = base();
    shall["conds"] = json!({"night": {"condId": "night", "activationTime": "2024-03-01T00:00:00Z"}});
    shall["pccRules"]["a"] = json!({"pccRuleId": "a", "appId": "netvideo", "precedence": 7, "refCondData": "night", "refUmData": ["m"]});
    shall["umDecs"] = json!({});
    shall["policyCtrlReqTriggers"] = json!([]);
    assert_eq!(
        change(&base(), &shall),
        r#"  Event-Trigger = NO_EVENT_TRIGGERS
  Charging-Rule-Install = {
    Charging-Rule-Definition = {
      Charging-Rule-Name = 0x61
      TDF-Application-Identifier = 0x6e6574766964656f
      Precedence = 7
      Monitoring-Key = 0x6d
    }
    Rule-Activation-Time = time 1709251200
  }
  Usage-Monitoring-Information = {
    Monitoring-Key = 0x6d
    Usage-Monitoring-Level = SESSION_LEVEL
    Usage-Monitoring-Support = USAGE_MONITORING_DISABLED
  }"#
    );
    let release = written(command::RE_AUTH, application::GX, |out| {
        put_release(out, "UE_SUBSCRIPTION");
    });
    assert_eq!(release, "  Session-Release-Cause = UE_SUBSCRIPTION_REASON");
}
