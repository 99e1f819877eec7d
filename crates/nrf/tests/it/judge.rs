//! Judges every answer that a test gets by the OpenAPI files of 3GPP, where they are present.

use std::sync::LazyLock;

use http::{Method, StatusCode};
use serde_json::Value;
use testpeer::openapi::{DataType, OpenApi};

struct Judge {
    profile: DataType,
    list: DataType,
    subscription: DataType,
    notification: DataType,
    result: DataType,
    stored: DataType,
    token: DataType,
    token_refused: DataType,
    bootstrapping: DataType,
    problem: DataType,
}

static JUDGE: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let Some(files) = OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
        eprintln!("answers are not judged: no OpenAPI files (SIGNALBOX_SPECS)");
        return None;
    };
    let management = |name| files.data_type("TS29510_Nnrf_NFManagement.yaml", name);
    let discovery = |name| files.data_type("TS29510_Nnrf_NFDiscovery.yaml", name);
    let tokens = |name| files.data_type("TS29510_Nnrf_AccessToken.yaml", name);
    Some(Judge {
        profile: management("NFProfile"),
        list: management("UriList"),
        subscription: management("SubscriptionData"),
        notification: management("NotificationData"),
        result: discovery("SearchResult"),
        stored: discovery("StoredSearchResult"),
        token: tokens("AccessTokenRsp"),
        token_refused: tokens("AccessTokenErr"),
        bootstrapping: files.data_type("TS29510_Nnrf_Bootstrapping.yaml", "BootstrappingInfo"),
        problem: files.data_type("TS29571_CommonData.yaml", "ProblemDetails"),
    })
});

/// Judges an answer of the NRF.
///
/// # Panics
/// When it is not of the data type that the standard wants.
pub fn answer(method: &Method, path: &str, status: StatusCode, content_type: &str, body: &Value) {
    let Some(judge) = &*JUDGE else { return };
    let path = path.split('?').next().unwrap_or(path);
    let data_type = if content_type == "application/problem+json" {
        Some(&judge.problem)
    } else if path == "/oauth2/token" && status == StatusCode::BAD_REQUEST {
        Some(&judge.token_refused)
    } else if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        None
    } else {
        of_resource(judge, method, path)
    };
    if let Some(data_type) = data_type {
        data_type.assert(body);
    }
}

fn of_resource<'j>(judge: &'j Judge, method: &Method, path: &str) -> Option<&'j DataType> {
    let mut segments = path.trim_start_matches('/').split('/');
    match (segments.next()?, segments.nth(1), segments.next()) {
        _ if method == Method::OPTIONS => None,
        ("oauth2", None, None) if path == "/oauth2/token" => Some(&judge.token),
        ("bootstrapping", ..) => Some(&judge.bootstrapping),
        ("nnrf-disc", Some("nf-instances"), None) => Some(&judge.result),
        ("nnrf-disc", Some("searches"), Some(_)) => Some(&judge.stored),
        ("nnrf-nfm", Some("nf-instances"), None) => Some(&judge.list),
        ("nnrf-nfm", Some("nf-instances"), Some(_)) => Some(&judge.profile),
        ("nnrf-nfm", Some("subscriptions"), _) => Some(&judge.subscription),
        _ => None,
    }
}

/// Judges what a subscriber is told.
pub fn notification(body: &Value) {
    if let Some(judge) = &*JUDGE {
        judge.notification.assert(body);
    }
}
