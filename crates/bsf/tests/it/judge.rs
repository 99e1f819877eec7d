//! Judges every answer that a test gets by the OpenAPI file of 3GPP, where it is present.

use std::sync::LazyLock;

use http::{Method, StatusCode};
use serde_json::Value;
use testpeer::openapi::{DataType, OpenApi};

struct Judge {
    session: DataType,
    existing_session: DataType,
    ue: DataType,
    mbs: DataType,
    existing_mbs: DataType,
    subscription: DataType,
    notification: DataType,
    event: DataType,
    problem: DataType,
    profile: DataType,
    nrf_subscription: DataType,
}

static JUDGE: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let Some(files) = OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
        eprintln!("answers are not judged: no OpenAPI files (SIGNALBOX_SPECS)");
        return None;
    };
    let management = |name| files.data_type("TS29521_Nbsf_Management.yaml", name);
    Some(Judge {
        session: management("PcfBinding"),
        existing_session: management("ExtProblemDetails"),
        ue: management("PcfForUeBinding"),
        mbs: management("PcfMbsBinding"),
        existing_mbs: management("MbsExtProblemDetails"),
        subscription: management("BsfSubscription"),
        notification: management("BsfNotification"),
        event: management("BsfEventNotification"),
        problem: files.data_type("TS29571_CommonData.yaml", "ProblemDetails"),
        profile: files.data_type("TS29510_Nnrf_NFManagement.yaml", "NFProfile"),
        nrf_subscription: files.data_type("TS29510_Nnrf_NFManagement.yaml", "SubscriptionData"),
    })
});

/// Judges an answer of the BSF.
///
/// # Panics
/// When it is not of the data type that the standard wants, or lacks what it wants beside the body.
pub fn answer(method: &Method, path: &str, status: StatusCode, headers: &http::HeaderMap, body: &Value) {
    let Some(judge) = &*JUDGE else { return };
    if status == StatusCode::NO_CONTENT {
        assert_eq!(*body, Value::Null, "{method} {path}: a 204 has no body");
    }
    if status == StatusCode::CREATED {
        assert!(
            headers.contains_key("location"),
            "{method} {path}: a 201 says where"
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
        judge.problem.assert(body);
        assert_eq!(body["status"], status.as_u16(), "{method} {path}");
        match (resource, &body["cause"] == "EXISTING_BINDING_INFO_FOUND") {
            ("pcfBindings", true) => judge.existing_session.assert(body),
            ("pcf-mbs-bindings", true) => judge.existing_mbs.assert(body),
            _ => {}
        }
        return;
    }
    if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        return;
    }
    let is_list = *method == Method::GET && id.is_none();
    match resource {
        "pcfBindings" => judge.session.assert(body),
        "pcf-ue-bindings" if is_list => each(&judge.ue, body),
        "pcf-ue-bindings" => judge.ue.assert(body),
        "pcf-mbs-bindings" if is_list => each(&judge.mbs, body),
        "pcf-mbs-bindings" => judge.mbs.assert(body),
        "subscriptions" => {
            // `BsfSubscriptionResp` is one or the other; ours is the one with the events of the other.
            judge.subscription.assert(body);
            if let Some(events) = body.get("eventNotifs") {
                each(&judge.event, events);
            }
        }
        _ => {}
    }
}

fn each(data_type: &DataType, list: &Value) {
    let all = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    all.iter().for_each(|one| data_type.assert(one));
}

/// Judges what a subscriber is told.
///
/// # Panics
/// When it is not what the standard wants.
pub fn notification(body: &Value) {
    if let Some(judge) = &*JUDGE {
        judge.notification.assert(body);
    }
}

/// Judges what the BSF registers at an NRF.
///
/// # Panics
/// When it is not what the standard wants.
pub fn profile(body: &Value) {
    if let Some(judge) = &*JUDGE {
        judge.profile.assert(body);
    }
}

/// Judges what the BSF subscribes to at an NRF.
///
/// # Panics
/// When it is not what the standard wants.
pub fn nrf_subscription(body: &Value) {
    if let Some(judge) = &*JUDGE {
        judge.nrf_subscription.assert(body);
    }
}
