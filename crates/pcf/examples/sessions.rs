//! Prints policy associations of PDU sessions as `signalbox import pcf` reads them, one a line: `sessions 2000000`.
//!
//! Each has the size of an operator's: about 12 KB with a dozen PCC rules, their QoS and charging. Identities and addresses
//! of any two differ, and the same number always gives the same session.

use std::io::{BufWriter, Write as _};

use serde_json::{Map, Value, json};

/// PCC rules of a session.
const RULES: u64 = 12;

fn session(number: u64) -> Value {
    let [.., a, b, c, d] = number.to_be_bytes();
    let (mut rules, mut qos, mut charging) = (Map::new(), Map::new(), Map::new());
    for rule in 0..RULES {
        let (server, port) = (format!("198.51.{}.{}", rule + 1, number % 250), 8_000 + rule * 16);
        let flow = |direction: &str, description: String| {
            json!({"flowDescription": description, "flowDirection": direction, "packetFilterUsage": true,
                "tosTrafficClass": "2800", "flowLabel": format!("{:06x}", rule)})
        };
        rules.insert(
            format!("rule-{rule}"),
            json!({"pccRuleId": format!("rule-{rule}"), "precedence": 100 + rule, "appId": format!("app-{}-{rule}", number % 40),
                "flowInfos": [
                    flow("DOWNLINK", format!("permit out 17 from {server} {port}-{} to 10.{b}.{c}.{d}", port + 15)),
                    flow("UPLINK", format!("permit out 17 from 10.{b}.{c}.{d} to {server} {port}-{}", port + 15)),
                ],
                "refQosData": [format!("qos-{rule}")], "refChgData": [format!("chg-{rule}")]}),
        );
        qos.insert(
            format!("qos-{rule}"),
            json!({"qosId": format!("qos-{rule}"), "5qi": 1 + rule % 9, "maxbrUl": format!("{} Kbps", 400 + rule),
                "maxbrDl": format!("{} Mbps", 20 + number % 30), "gbrUl": "64 Kbps", "gbrDl": "128 Kbps",
                "arp": {"priorityLevel": 1 + rule % 15, "preemptCap": "MAY_PREEMPT", "preemptVuln": "NOT_PREEMPTABLE"},
                "qnc": true, "averWindow": 2000, "maxDataBurstVol": 1354}),
        );
        charging.insert(
            format!("chg-{rule}"),
            json!({"chgId": format!("chg-{rule}"), "meteringMethod": "DURATION_VOLUME", "offline": true, "online": false,
                "ratingGroup": 100 + rule, "reportingLevel": "SER_ID_LEVEL", "serviceId": 4_000 + rule}),
        );
    }
    json!({
        "associationId": format!("{number:08x}-0000-4000-8000-{:012x}", number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff_ffff),
        "kind": "sm",
        "context": {
            "supi": format!("imsi-00101{number:010}"), "gpsi": format!("msisdn-1555{number:09}"), "pduSessionId": 5,
            "pei": format!("imeisv-{:016}", 8_600_000_000_000_000 + number), "pduSessionType": "IPV4V6", "dnn": "internet",
            "notificationUri": format!("http://smf{}.example.org:8080/nsmf-callback/sm-policies/{number}", number % 16),
            "accessType": "3GPP_ACCESS", "ratType": "NR", "servingNetwork": {"mcc": "001", "mnc": "01"},
            "userLocationInfo": {"nrLocation": {"tai": {"plmnId": {"mcc": "001", "mnc": "01"}, "tac": format!("{:06x}", number % 4_000)},
                "ncgi": {"plmnId": {"mcc": "001", "mnc": "01"}, "nrCellId": format!("{:09x}", number % 90_000)},
                "ageOfLocationInformation": 3, "ueLocationTimestamp": "2026-01-01T00:00:00Z"}},
            "ueTimeZone": "+01:00", "sliceInfo": {"sst": 1, "sd": "00000a"}, "ipv4Address": format!("{}.{b}.{c}.{d}", a.wrapping_add(10)),
            "ipv6AddressPrefix": format!("2001:db8:{:x}:{:x}::/64", number >> 16, number & 0xffff),
            "subsSessAmbr": {"uplink": "300 Mbps", "downlink": "1 Gbps"},
            "subsDefQos": {"5qi": 8, "arp": {"priorityLevel": 7, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}},
            "chargEntityAddr": {"anChargIpv4Addr": "192.0.2.9"}, "chargingcharacteristics": "0800", "online": false, "offline": true,
            "3gppPsDataOffStatus": false, "suppFeat": "ffff"},
        "policy": {
            "pccRules": rules, "qosDecs": qos, "chgDecs": charging,
            "sessRules": {"default": {"sessRuleId": "default", "authSessAmbr": {"uplink": "300 Mbps", "downlink": "1 Gbps"},
                "authDefQos": {"5qi": 8, "arp": {"priorityLevel": 7, "preemptCap": "NOT_PREEMPT", "preemptVuln": "PREEMPTABLE"}}}},
            "policyCtrlReqTriggers": ["PLMN_CH", "RES_MO_RE", "AC_TY_CH", "UE_IP_CH", "DEF_QOS_CH", "SE_AMBR_CH", "SAREA_CH"]},
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args()
        .nth(1)
        .ok_or("the number of sessions is missing: sessions 2000000")?;
    let count: u64 = count.parse().map_err(|error| format!("{count}: {error}"))?;
    let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    for number in 1..=count {
        serde_json::to_writer(&mut out, &session(number))?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
