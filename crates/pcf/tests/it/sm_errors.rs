//! Requests about PDU sessions that cannot be carried out.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{SM_POLICIES, context, local, start};

#[test]
fn wrong_members_are_named() {
    local(async {
        let pcf = start(|_| {});
        for (more, cause, pointer) in [
            (json!({"supi": null}), "MANDATORY_IE_MISSING", "/supi"),
            (
                json!({"notificationUri": null}),
                "MANDATORY_IE_MISSING",
                "/notificationUri",
            ),
            (json!({"sliceInfo": {}}), "MANDATORY_IE_MISSING", "/sliceInfo/sst"),
            (json!({"supi": ""}), "MANDATORY_IE_INCORRECT", "/supi"),
            (
                json!({"pduSessionId": "5"}),
                "MANDATORY_IE_INCORRECT",
                "/pduSessionId",
            ),
            (
                json!({"pduSessionId": 256}),
                "MANDATORY_IE_INCORRECT",
                "/pduSessionId",
            ),
            (
                json!({"notificationUri": "/relative"}),
                "MANDATORY_IE_INCORRECT",
                "/notificationUri",
            ),
            (
                json!({"accessType": "WIFI"}),
                "OPTIONAL_IE_INCORRECT",
                "/accessType",
            ),
            (
                json!({"ipv6AddressPrefix": "2001:db8::1"}),
                "OPTIONAL_IE_INCORRECT",
                "/ipv6AddressPrefix",
            ),
            (json!({"suppFeat": "xyz"}), "OPTIONAL_IE_INCORRECT", "/suppFeat"),
        ] {
            let refused = pcf.post(SM_POLICIES, &context(&more)).await;
            assert_eq!(
                (refused.status, refused.cause()),
                (StatusCode::BAD_REQUEST, cause),
                "{more}"
            );
            assert_eq!(refused.json["invalidParams"][0]["param"], pointer, "{more}");
        }
        for body in ["", "{", "[]", "7", "\"x\""] {
            let refused = pcf.ask(Method::POST, SM_POLICIES, "application/json", body).await;
            assert_eq!(
                (refused.status, refused.cause()),
                (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT"),
                "{body}"
            );
        }
    });
}

#[test]
fn requests_that_no_resource_takes_are_refused() {
    local(async {
        let pcf = start(|config| config.max_body_size = settings::ByteSize::kib(4));
        let path = pcf.session(&json!({})).await;
        for (method, path, allowed) in [
            (Method::GET, SM_POLICIES.to_owned(), "POST"),
            (Method::DELETE, SM_POLICIES.to_owned(), "POST"),
            (Method::DELETE, path.clone(), "GET"),
            (Method::PUT, path.clone(), "GET"),
            (Method::GET, format!("{path}/update"), "POST"),
            (Method::DELETE, format!("{path}/delete"), "POST"),
        ] {
            let refused = pcf.ask(method.clone(), &path, "", "").await;
            assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_eq!(refused.header("allow"), allowed, "{method} {path}");
        }
        let body = context(&json!({})).to_string();
        let typed = pcf
            .ask(Method::POST, SM_POLICIES, "text/plain", body.clone())
            .await;
        assert_eq!(typed.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let large = pcf
            .post(SM_POLICIES, &context(&json!({"vendorExtra": "x".repeat(5_000)})))
            .await;
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
        for (path, status, cause) in [
            (
                "/npcf-smpolicycontrol/v2/sm-policies",
                StatusCode::BAD_REQUEST,
                "INVALID_API",
            ),
            (
                "/npcf-smpolicycontrl/v1/sm-policies",
                StatusCode::BAD_REQUEST,
                "INVALID_API",
            ),
            (
                "/nnrf-disc/v1/nf-instances",
                StatusCode::BAD_REQUEST,
                "INVALID_API",
            ),
            (
                "/favicon.ico",
                StatusCode::NOT_FOUND,
                "RESOURCE_URI_STRUCTURE_NOT_FOUND",
            ),
            (
                "/npcf-smpolicycontrol/v1/other",
                StatusCode::NOT_FOUND,
                "RESOURCE_URI_STRUCTURE_NOT_FOUND",
            ),
            ("/", StatusCode::NOT_FOUND, "RESOURCE_URI_STRUCTURE_NOT_FOUND"),
            (
                "/npcf-smpolicycontrol/v1/sm-policies/not-a-uuid/update",
                StatusCode::NOT_FOUND,
                "CONTEXT_NOT_FOUND",
            ),
        ] {
            let refused = pcf.post(path, &json!({})).await;
            assert_eq!((refused.status, refused.cause()), (status, cause), "{path}");
        }
    });
}

#[test]
fn updates_that_contradict_the_session_are_refused_and_change_nothing() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let before: Value = pcf.get(&path).await.json;
        for (update, status, cause) in [
            (
                json!({"relIpv4Address": "10.9.9.9"}),
                StatusCode::BAD_REQUEST,
                "ERROR_TRIGGER_EVENT",
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["RES_MO_RE"]}),
                StatusCode::BAD_REQUEST,
                "ERROR_TRIGGER_EVENT",
            ),
            (
                json!({"accuUsageReports": [{"volUsage": 7}]}),
                StatusCode::BAD_REQUEST,
                "MANDATORY_IE_MISSING",
            ),
        ] {
            let refused = pcf.post(&format!("{path}/update"), &update).await;
            assert_eq!((refused.status, refused.cause()), (status, cause), "{update}");
        }
        assert_eq!(pcf.get(&path).await.json, before);
    });
}
