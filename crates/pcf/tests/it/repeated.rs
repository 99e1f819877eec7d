//! Updates that a consumer sends again, since it has not got the answer: the second copy is answered with the whole decision.

use std::path::Path;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::sbi::Got;

use crate::policies::{AM, association};
use crate::support::{Pcf, SM_POLICIES, context, judged, local, path_of, request, start};

const INFO: &str = "3gpp-sbi-request-info";
const SENT: &str = "3gpp-sbi-sender-timestamp";

fn project(folder: &Path, service: &str, blocks: &str) {
    let text = format!("name: test\nservice: {service}\nblocks:\n{blocks}");
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

async fn update(pcf: &Pcf, path: &str, body: &Value, headers: &[(&str, &str)]) -> Got {
    let path = format!("{path}/update");
    let mut request = request(Method::POST, &path, "application/json", body.to_string());
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    judged(&pcf.client, &pcf.origin, request).await
}

#[test]
fn an_smf_that_sends_an_update_again_gets_the_whole_decision() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let blocks = "  - if: {$eq: [$request.ratType, EUTRA]}\n    then:\n      \
            - sessionRule: {sessRuleId: slow, authSessAmbr: {uplink: 1 Mbps, downlink: 1 Mbps}}\n    else:\n      \
            - sessionRule: {sessRuleId: full, authSessAmbr: {uplink: 50 Mbps, downlink: 50 Mbps}}\n";
        project(folder.path(), "sm", blocks);
        let pcf = start(|config| config.policy.sm = Some(folder.path().to_owned()));
        let change = json!({"repPolicyCtrlReqTriggers": ["RAT_TY_CH", "UE_IP_CH"], "ratType": "EUTRA",
            "relIpv4Address": "10.0.0.1", "ipv4Address": "10.0.0.9"});
        let moment = (SENT, "Wed, 04 Mar 2026 08:00:00.001 GMT");
        for (session, (first, second)) in [
            (
                (INFO, "idempotency-key=a1"),
                (INFO, "retrans=true; idempotency-key=a1"),
            ),
            ((INFO, "idempotency-key=a2"), (INFO, "idempotency-key=a2")),
            (moment, moment),
            (moment, (INFO, "retrans=true")),
        ]
        .into_iter()
        .enumerate()
        {
            let new = context(&json!({"pduSessionId": session + 1}));
            let path = path_of(&pcf.post(SM_POLICIES, &new).await);
            for headers in [first, second] {
                let got = update(&pcf, &path, &change, &[headers]).await;
                assert_eq!(got.status, StatusCode::OK, "{headers:?}: {}", got.json);
                assert!(got.json["sessRules"]["slow"].is_object(), "{headers:?}");
                assert_eq!(got.json["sessRules"]["full"], Value::Null, "{headers:?}");
                assert!(got.json["sessRules"].get("full").is_some(), "{headers:?}");
            }
            // The next update has what it changes alone.
            let got = update(&pcf, &path, &json!({}), &[(INFO, "idempotency-key=b1")]).await;
            assert_eq!(got.json, json!({}));
            // The same without a header is another update, which contradicts the session.
            let got = update(&pcf, &path, &change, &[]).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.json);
        }
        assert_eq!(pcf.running().count(pcf::Event::UsageRepeated), 0);
    });
}

#[test]
fn an_amf_that_sends_an_update_again_gets_the_whole_decision() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let blocks = "  - if: {$eq: [$request.rfsp, 8]}\n    then: [amPolicy: {rfsp: 9}]\n    \
            else: [amPolicy: {rfsp: 7}, triggers: [LOC_CH]]\n";
        project(folder.path(), "am", blocks);
        let pcf = start(|config| config.policy.am = Some(folder.path().to_owned()));
        let path = path_of(&pcf.post(AM, &association(&json!({}))).await);
        let headers = (INFO, "idempotency-key=a1");
        for headers in [headers, headers, (INFO, "retrans=true")] {
            let got = update(&pcf, &path, &json!({"rfsp": 8}), &[headers]).await;
            assert_eq!(got.status, StatusCode::OK, "{headers:?}: {}", got.json);
            assert_eq!(
                (&got.json["rfsp"], &got.json["triggers"]),
                (&json!(9), &Value::Null)
            );
            assert!(got.json.get("triggers").is_some(), "{headers:?}: {}", got.json);
        }
        let got = update(&pcf, &path, &json!({"rfsp": 8}), &[(INFO, "idempotency-key=a2")]).await;
        assert!(got.json.get("rfsp").is_none(), "{}", got.json);
    });
}
