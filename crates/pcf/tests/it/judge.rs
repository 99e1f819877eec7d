//! Validates every answer that a test gets by the OpenAPI files of 3GPP, where they are present.

use http::StatusCode;
use serde_json::Value;
use testpeer::openapi::Judge;

static JUDGE: Judge = Judge::new(env!("CARGO_MANIFEST_DIR"));

/// Validates a body by a data type of a file.
///
/// # Panics
/// When the body is not of that data type.
pub fn is(file: &'static str, name: &'static str, body: &Value) {
    JUDGE.assert(file, name, body);
}

pub const AF: &str = "TS29514_Npcf_PolicyAuthorization.yaml";
pub const BDT: &str = "TS29554_Npcf_BDTPolicyControl.yaml";
pub const SM: &str = "TS29512_Npcf_SMPolicyControl.yaml";

/// Validates an answer of the PCF.
///
/// # Panics
/// When the body is not of the data type that the standard requires, or a required header is absent.
pub fn answer(path: &str, status: StatusCode, headers: &http::HeaderMap, body: &Value) {
    if status == StatusCode::NO_CONTENT {
        assert_eq!(*body, Value::Null, "{path}: a 204 has no body");
        return;
    }
    if status == StatusCode::SEE_OTHER {
        assert!(headers.contains_key("location"), "{path}: a 303 has a location");
        return;
    }
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
    if status.is_client_error() || status.is_server_error() {
        assert_eq!(content_type, Some("application/problem+json"), "{path}: {status}");
        is("TS29571_CommonData.yaml", "ProblemDetails", body);
        assert_eq!(body["status"], status.as_u16(), "{path}");
        return;
    }
    assert_eq!(content_type, Some("application/json"), "{path}: {status}");
    if status == StatusCode::CREATED {
        let location = headers.get("location").and_then(|value| value.to_str().ok());
        let location = location.unwrap_or_default();
        assert!(location.starts_with("http://"), "{path}: Location {location}");
    }
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        ["npcf-smpolicycontrol", "v1", "sm-policies", _] => is(SM, "SmPolicyControl", body),
        ["npcf-policyauthorization", .., "events-subscription"] => is(AF, "EventsSubscReqData", body),
        ["npcf-policyauthorization", ..] => is(AF, "AppSessionContext", body),
        ["npcf-bdtpolicycontrol", ..] => is(BDT, "BdtPolicy", body),
        ["npcf-smpolicycontrol", ..] => is(SM, "SmPolicyDecision", body),
        [service, "v1", "policies", rest @ ..] => {
            let file = match *service {
                "npcf-am-policy-control" => "TS29507_Npcf_AMPolicyControl.yaml",
                _ => "TS29525_Npcf_UEPolicyControl.yaml",
            };
            let name = match rest {
                [_, "update"] => "PolicyUpdate",
                _ => "PolicyAssociation",
            };
            is(file, name, body);
        }
        _ => {}
    }
}
