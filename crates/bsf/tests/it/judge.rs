//! Validates every answer that a test gets by the OpenAPI files of 3GPP, where they are present.

use http::{Method, StatusCode};
use serde_json::Value;
use testpeer::openapi::Judge;

static JUDGE: Judge = Judge::new(env!("CARGO_MANIFEST_DIR"));

const MANAGEMENT: &str = "TS29521_Nbsf_Management.yaml";
const NRF_MANAGEMENT: &str = "TS29510_Nnrf_NFManagement.yaml";

/// Validates a body by a data type of TS 29.521.
///
/// # Panics
/// When the body is not of that data type.
pub fn is(name: &'static str, body: &Value) {
    JUDGE.assert(MANAGEMENT, name, body);
}

fn each(name: &'static str, list: &Value) {
    let all = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    all.iter().for_each(|one| is(name, one));
}

/// Validates an answer of the BSF.
///
/// # Panics
/// When the body is not of the data type that the standard requires, or a required header is absent.
pub fn answer(method: &Method, path: &str, status: StatusCode, headers: &http::HeaderMap, body: &Value) {
    if status == StatusCode::NO_CONTENT {
        assert_eq!(*body, Value::Null, "{method} {path}: a 204 has no body");
    }
    if status == StatusCode::CREATED {
        assert!(
            headers.contains_key("location"),
            "{method} {path}: a 201 has a Location"
        );
    }
    let path = path.split('?').next().unwrap_or(path);
    let mut segments = path.trim_start_matches("/nbsf-management/v1/").split('/');
    let (resource, id) = (segments.next().unwrap_or_default(), segments.next());
    let is_problem = headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/problem+json");
    if status.is_client_error() || status.is_server_error() {
        assert!(is_problem, "{method} {path}: {status} without problem details");
        JUDGE.assert("TS29571_CommonData.yaml", "ProblemDetails", body);
        assert_eq!(body["status"], status.as_u16(), "{method} {path}");
        match (resource, &body["cause"] == "EXISTING_BINDING_INFO_FOUND") {
            ("pcfBindings", true) => is("ExtProblemDetails", body),
            ("pcf-mbs-bindings", true) => is("MbsExtProblemDetails", body),
            _ => {}
        }
        return;
    }
    if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        return;
    }
    let is_list = *method == Method::GET && id.is_none();
    match resource {
        "pcfBindings" => is("PcfBinding", body),
        "pcf-ue-bindings" if is_list => each("PcfForUeBinding", body),
        "pcf-ue-bindings" => is("PcfForUeBinding", body),
        "pcf-mbs-bindings" if is_list => each("PcfMbsBinding", body),
        "pcf-mbs-bindings" => is("PcfMbsBinding", body),
        "subscriptions" => {
            // `BsfSubscriptionResp` is one of two types; ours is the subscription with the events of the other.
            is("BsfSubscription", body);
            if let Some(events) = body.get("eventNotifs") {
                each("BsfEventNotification", events);
            }
        }
        _ => {}
    }
}

/// Validates a notification to a subscriber.
///
/// # Panics
/// When the body is not of the data type that the standard requires.
pub fn notification(body: &Value) {
    is("BsfNotification", body);
}

/// Validates the profile that the BSF registers at an NRF.
///
/// # Panics
/// When the body is not of the data type that the standard requires.
pub fn profile(body: &Value) {
    JUDGE.assert(NRF_MANAGEMENT, "NFProfile", body);
}

/// Validates the subscription of the BSF at an NRF.
///
/// # Panics
/// When the body is not of the data type that the standard requires.
pub fn nrf_subscription(body: &Value) {
    JUDGE.assert(NRF_MANAGEMENT, "SubscriptionData", body);
}
