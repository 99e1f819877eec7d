//! Bindings of UEs and of MBS sessions.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{local, start};

#[test]
fn a_ue_from_registration_to_removal() {
    local(async {
        let bsf = start(|_| {});
        let body = json!({"supi": "imsi-1", "gpsi": "msisdn-1", "pcfForUeFqdn": "pcf1.example.org", "suppFeat": "f"});
        let created = bsf.post("pcf-ue-bindings", &body).await;
        let path = bsf.path(&created);
        for (query, count) in [
            ("supi=imsi-1", 1),
            ("gpsi=msisdn-1", 1),
            ("supi=imsi-1&gpsi=msisdn-2", 0),
            ("supi=imsi-2", 0),
        ] {
            let found = bsf
                .get(&format!("/nbsf-management/v1/pcf-ue-bindings?{query}"))
                .await;
            assert_eq!(found.status, StatusCode::OK);
            assert_eq!(found.json.as_array().unwrap().len(), count, "{query}");
        }
        let patch = json!({"pcfForUeFqdn": "pcf2.example.org"}).to_string();
        let patched = bsf
            .ask(Method::PATCH, &path, "application/merge-patch+json", patch)
            .await;
        assert_eq!(patched.json["pcfForUeFqdn"], "pcf2.example.org");
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            assert_eq!(bsf.ask(Method::DELETE, &path, "", "").await.status, status);
        }
        let nothing = bsf.get("/nbsf-management/v1/pcf-ue-bindings").await;
        assert_eq!(
            (nothing.status, nothing.cause()),
            (StatusCode::BAD_REQUEST, "MANDATORY_QUERY_PARAM_MISSING")
        );
    });
}

#[test]
fn an_mbs_session_has_one_binding() {
    local(async {
        let bsf = start(|_| {});
        let session = json!({"tmgi": {"mbsServiceId": "00000A", "plmnId": {"mcc": "001", "mnc": "01"}}});
        let body = json!({"mbsSessionId": session, "pcfFqdn": "pcf1.example.org"});
        let path = bsf.path(&bsf.post("pcf-mbs-bindings", &body).await);
        let refused = bsf.post("pcf-mbs-bindings", &body).await;
        assert_eq!(
            (refused.status, refused.cause(), refused.json["pcfFqdn"].as_str()),
            (
                StatusCode::FORBIDDEN,
                "EXISTING_BINDING_INFO_FOUND",
                Some("pcf1.example.org")
            )
        );
        let query = "/nbsf-management/v1/pcf-mbs-bindings?mbs-session-id=%7B%22tmgi%22%3A%7B%22mbsServiceId%22%3A%2200000a%22%2C%22plmnId%22%3A%7B%22mcc%22%3A%22001%22%2C%22mnc%22%3A%2201%22%7D%7D%7D";
        let found = bsf.get(query).await;
        assert_eq!(found.json.as_array().map(Vec::len), Some(1), "{}", found.json);
        let patch = json!({"pcfFqdn": "pcf2.example.org"}).to_string();
        let patched = bsf
            .ask(Method::PATCH, &path, "application/merge-patch+json", patch)
            .await;
        assert_eq!(patched.json["pcfFqdn"], "pcf2.example.org");
        assert_eq!(
            bsf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(bsf.get(query).await.json, json!([]));
    });
}
