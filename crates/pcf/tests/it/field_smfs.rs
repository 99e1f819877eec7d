//! SMFs of the field at a PCF without a project of one's own: the requests of Open5GS and free5GC as their public sources build
//! them, and answers that their parsers take. What an SMF cannot take ends its process (Open5GS asserts) or the session.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::support::{SM_POLICIES, local, path_of, start};

/// `SmPolicyContextData` of Open5GS 2.8 (`src/smf/npcf-build.c`).
fn open5gs(root: &str) -> Value {
    json!({
        "supi": "imsi-999700000000001", "pduSessionId": 1, "pduSessionType": "IPV4V6", "dnn": "internet",
        "notificationUri": format!("{root}/nsmf-callback/v1/sm-policy-notify/1"),
        "ipv4Address": "10.45.0.2", "ipv6AddressPrefix": "2001:db8:cafe::/64",
        "subsSessAmbr": {"uplink": "1000000 Kbps", "downlink": "1000000 Kbps"},
        "subsDefQos": {"5qi": 9, "arp": {"priorityLevel": 8, "preemptCap": "NOT_PREEMPT", "preemptVuln": "NOT_PREEMPTABLE"},
            "priorityLevel": 8},
        "sliceInfo": {"sst": 1}, "suppFeat": "4000000",
    })
}

/// `SmPolicyContextData` of free5GC (`internal/sbi/consumer/pcf_service.go`), whose texts are empty where the subscription
/// has nothing.
fn free5gc(root: &str) -> Value {
    json!({
        "supi": "imsi-208930000000001", "pduSessionId": 10, "pduSessionType": "IPV4", "dnn": "internet",
        "notificationUri": format!("{root}/nsmf-callback/v1/sm-policies/urn:uuid:0cd0b1ca-7a83-4d3c-b09f-7e7b7a9a2b5e"),
        "accessType": "3GPP_ACCESS", "ratType": "NR", "servingNetwork": {"mcc": "208", "mnc": "93"},
        "ipv4Address": "10.60.0.1",
        "subsSessAmbr": {"uplink": "1000 Kbps", "downlink": "1000 Kbps"},
        "subsDefQos": {"5qi": 9, "arp": {"priorityLevel": 8, "preemptCap": "", "preemptVuln": ""}, "priorityLevel": 8},
        "sliceInfo": {"sst": 1, "sd": "010203"}, "suppFeat": "F",
    })
}

fn members<'v>(decision: &'v Value, section: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let section = decision.get(section).and_then(Value::as_object);
    section
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(_, entry)| !entry.is_null())
}

/// An ARP is whole: Open5GS asserts on one without its members and encodes priority 0 without one, which NGAP does not have.
fn has_arp(qos: &Value) -> bool {
    let arp = &qos["arp"];
    (1..=15).contains(&arp["priorityLevel"].as_u64().unwrap_or(0))
        && matches!(arp["preemptCap"].as_str(), Some("NOT_PREEMPT" | "MAY_PREEMPT"))
        && matches!(
            arp["preemptVuln"].as_str(),
            Some("NOT_PREEMPTABLE" | "PREEMPTABLE")
        )
}

/// A whole number and a unit: free5GC reads no fractions.
fn is_bit_rate(rate: &Value) -> bool {
    let parts = rate.as_str().and_then(|rate| rate.split_once(' '));
    parts.is_some_and(|(number, unit)| {
        number.parse::<u32>().is_ok() && matches!(unit, "bps" | "Kbps" | "Mbps" | "Gbps" | "Tbps")
    })
}

/// What both parsers ask of a decision.
fn is_taken(decision: &Value) {
    for (id, rule) in members(decision, "sessRules") {
        assert!(has_arp(&rule["authDefQos"]), "{id}: {rule}");
        assert!(rule["authDefQos"]["5qi"].is_u64(), "{id}: {rule}");
        for way in ["uplink", "downlink"] {
            assert!(is_bit_rate(&rule["authSessAmbr"][way]), "{id}: {rule}");
        }
    }
    for (id, qos) in members(decision, "qosDecs") {
        assert_eq!(qos["qosId"], id.as_str());
        assert!(has_arp(qos) && qos["5qi"].is_u64(), "{id}: {qos}");
        for rate in ["maxbrUl", "maxbrDl", "gbrUl", "gbrDl"] {
            assert!(qos.get(rate).is_none_or(is_bit_rate), "{id} {rate}: {qos}");
        }
    }
    for (id, rule) in members(decision, "pccRules") {
        assert_eq!(rule["pccRuleId"], id.as_str());
        let qos = rule["refQosData"][0]
            .as_str()
            .unwrap_or_else(|| panic!("{id}: {rule}"));
        assert!(decision["qosDecs"][qos].is_object(), "{id}: {decision}");
        for flow in rule["flowInfos"].as_array().into_iter().flatten() {
            // Open5GS ends its process for one that it does not know.
            assert!(
                matches!(
                    flow["flowDirection"].as_str(),
                    Some("UPLINK" | "DOWNLINK" | "BIDIRECTIONAL")
                ),
                "{id}: {flow}"
            );
            assert!(
                flow["flowDescription"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("permit out ")),
                "{flow}"
            );
        }
    }
}

#[test]
fn open5gs_and_free5gc_get_sessions_calls_and_their_end() {
    local(async {
        let pcf = start(|_| {});
        for (context, address) in [
            (open5gs as fn(&str) -> Value, "10.45.0.2"),
            (free5gc, "10.60.0.1"),
        ] {
            let smf = listener();
            let created = pcf.post(SM_POLICIES, &context(&smf.root())).await;
            let path = path_of(&created);
            // Both find the identity in the Location; free5GC by this pattern.
            assert!(created.header("location").starts_with("http://"));
            assert!(
                created
                    .header("location")
                    .contains("/npcf-smpolicycontrol/v1/sm-policies/")
            );
            is_taken(&created.json);
            assert!(members(&created.json, "sessRules").count() == 1);

            // A voice call: the dedicated flow.
            let more = json!({"ueIpv4": address});
            let session = path_of(&pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &more)).await);
            let (_, body) = notification(&smf, 1).await;
            is_taken(&body["smPolicyDecision"]);
            assert_eq!(members(&body["smPolicyDecision"], "pccRules").count(), 2);

            // The UE asks for resources (free5GC): a rule, or a refusal.
            let asked = json!({"repPolicyCtrlReqTriggers": ["RES_MO_RE"], "ueInitResReq": {
                "ruleOp": "CREATE_PCC_RULE", "precedence": 100, "reqQos": {"5qi": 9},
                "packFiltInfo": [{"packFiltCont": "permit out ip from any to assigned", "flowDirection": "BIDIRECTIONAL"}]}});
            let answered = pcf.post(&format!("{path}/update"), &asked).await;
            assert!(
                matches!(answered.status, StatusCode::OK | StatusCode::FORBIDDEN),
                "{}",
                answered.json
            );
            let ended = pcf.ask(Method::POST, &format!("{session}/delete"), "", "").await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
            // free5GC ends with an empty object, Open5GS with where the UE was.
            let end = match address {
                "10.60.0.1" => json!({}),
                _ => json!({"userLocationInfo": {"nrLocation": {
                    "tai": {"plmnId": {"mcc": "999", "mnc": "70"}, "tac": "000001"},
                    "ncgi": {"plmnId": {"mcc": "999", "mnc": "70"}, "nrCellId": "000000010"},
                    "ueLocationTimestamp": "2026-11-27T20:00:00.000000Z"}}, "ueTimeZone": "+00:00"}),
            };
            let deleted = pcf.post(&format!("{path}/delete"), &end).await;
            assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.json);
        }
        let metrics = pcf.running().handle().registry().render();
        assert!(metrics.contains("/subsDefQos/arp/preemptCap"), "{metrics}");
    });
}
