//! Bodies that no consumer sends in earnest: each is answered, nothing grows without end.

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::sbi::{Template, mutations};

use crate::support::{SM_POLICIES, context, local, start};

/// Six thousand random mutations of valid requests.
#[test]
fn mutations_of_valid_requests_are_answered() {
    local(async {
        let pcf = start(|_| {});
        let whole = context(
            &json!({"ipDomain": "a", "interGrpIds": ["A1B2C3D4-001-01-AB12"], "pei": "imei-012345678901234",
            "ipv4FrameRouteList": ["192.0.2.0/24"], "ipv6FrameRouteList": ["2001:db8:f::/48"],
            "accNetChId": {"accNetChaIdValue": 7}, "servNfId": {"guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"}}}),
        );
        let update = json!({"repPolicyCtrlReqTriggers": ["US_RE"], "accuUsageReports": [{"refUmIds": "u", "volUsage": 7}],
            "addIpv6AddrPrefixes": "2001:db8:7::/64", "ueMac": "00-1b-21-3c-9d-f0", "ratType": "EUTRA",
            "ruleReports": [{"pccRuleIds": ["default"], "ruleStatus": "INACTIVE"}]});
        let am = json!({"notificationUri": "http://127.0.0.1:9/amf", "supi": "imsi-1", "suppFeat": "f", "rfsp": 7,
            "guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"}});
        // Another subscriber's: a session that is established again replaces the one before.
        let path = pcf.session(&json!({"supi": "imsi-001010000000009"})).await;
        let json = "application/json";
        let post =
            |path: &str, body: &serde_json::Value| Template::body(Method::POST, path, json, body.to_string());
        let templates = vec![
            post(SM_POLICIES, &whole),
            post(&format!("{path}/update"), &update),
            post("/npcf-am-policy-control/v1/policies", &am),
            post("/npcf-ue-policy-control/v1/policies", &am),
        ];
        for damaged in mutations(templates, 6_000, 29_512) {
            let shown = damaged.to_string();
            let request =
                crate::support::request(damaged.method, &damaged.path, damaged.content_type, damaged.body);
            let got = crate::support::send(&pcf.client, &pcf.origin, request)
                .await
                .unwrap();
            assert!(!got.status.is_server_error(), "{shown}: {}", got.json);
            if got.status.is_client_error() {
                assert_eq!(got.header("content-type"), "application/problem+json", "{shown}");
            }
        }
        assert_eq!(pcf.get(&path).await.status, StatusCode::OK);
    });
}

/// Members that no release knows are kept, so each update could add one.
#[test]
fn updates_do_not_make_an_association_grow_without_end() {
    local(async {
        let pcf = start(|config| config.max_body_size = settings::ByteSize::kib(4));
        let path = pcf.session(&json!({})).await;
        let update = format!("{path}/update");
        let mut refused = None;
        for number in 0..20 {
            let more = json!({format!("later{number}"): "x".repeat(500)});
            let got = pcf.post(&update, &more).await;
            if got.status != StatusCode::OK {
                refused = Some((number, got.status));
                break;
            }
        }
        let (number, status) = refused.expect("20 times 500 bytes are more than 4 KiB");
        assert!(number >= 2, "{number}");
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        let smaller = json!({"later0": null});
        assert_eq!(pcf.post(&update, &smaller).await.status, StatusCode::OK);
        assert_eq!(
            pcf.post(&format!("{path}/delete"), &json!({})).await.status,
            StatusCode::NO_CONTENT
        );
    });
}
