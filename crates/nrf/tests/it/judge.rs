//! Validates every answer that a test gets by the OpenAPI files of 3GPP, where they are present.

use http::{Method, StatusCode};
use serde_json::Value;
use testpeer::openapi::Judge;

static JUDGE: Judge = Judge::new(env!("CARGO_MANIFEST_DIR"));

const MANAGEMENT: &str = "TS29510_Nnrf_NFManagement.yaml";
const DISCOVERY: &str = "TS29510_Nnrf_NFDiscovery.yaml";
const TOKENS: &str = "TS29510_Nnrf_AccessToken.yaml";

/// Validates an answer of the NRF.
///
/// # Panics
/// When the body is not of the data type that the standard requires.
pub fn answer(method: &Method, path: &str, status: StatusCode, content_type: &str, body: &Value) {
    let path = path.split('?').next().unwrap_or(path);
    let data_type = if content_type == "application/problem+json" {
        Some(("TS29571_CommonData.yaml", "ProblemDetails"))
    } else if path == "/oauth2/token" && status == StatusCode::BAD_REQUEST {
        Some((TOKENS, "AccessTokenErr"))
    } else if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        None
    } else {
        of_resource(method, path)
    };
    if let Some((file, name)) = data_type {
        JUDGE.assert(file, name, body);
    }
}

fn of_resource(method: &Method, path: &str) -> Option<(&'static str, &'static str)> {
    let mut segments = path.trim_start_matches('/').split('/');
    Some(match (segments.next()?, segments.nth(1), segments.next()) {
        _ if method == Method::OPTIONS => return None,
        ("oauth2", None, None) if path == "/oauth2/token" => (TOKENS, "AccessTokenRsp"),
        ("bootstrapping", ..) => ("TS29510_Nnrf_Bootstrapping.yaml", "BootstrappingInfo"),
        ("nnrf-disc", Some("nf-instances"), None) => (DISCOVERY, "SearchResult"),
        ("nnrf-disc", Some("searches"), Some(_)) => (DISCOVERY, "StoredSearchResult"),
        ("nnrf-nfm", Some("nf-instances"), None) => (MANAGEMENT, "UriList"),
        ("nnrf-nfm", Some("nf-instances"), Some(_)) => (MANAGEMENT, "NFProfile"),
        ("nnrf-nfm", Some("subscriptions"), _) => (MANAGEMENT, "SubscriptionData"),
        _ => return None,
    })
}

/// Validates a notification to a subscriber.
///
/// # Panics
/// When the body is not of the data type that the standard requires.
pub fn notification(body: &Value) {
    JUDGE.assert(MANAGEMENT, "NotificationData", body);
}
