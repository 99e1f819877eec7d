//! Nnrf_Bootstrapping (TS 29.510 §6.4): where the services of this NRF are.

use function::sbi::Call;
use http::StatusCode;
use sbi::name::CONTENT_TYPE;
use sbi::{Response, Value};
use serde_json::json;

use crate::discovery::supported_features;
use crate::worker::Worker;

/// `/bootstrapping`.
pub(crate) fn bootstrapping(call: &Call<Worker>) -> Response {
    let worker = &call.worker;
    let root = worker.root();
    let link = |path: &str| json!({"href": format!("{root}{path}")});
    let protected = worker.protects_itself();
    let body = json!({
        "status": "OPERATIVE",
        "_links": {
            "self": link("/bootstrapping"),
            "manage": link("/nnrf-nfm/v1/nf-instances"),
            "subscribe": link("/nnrf-nfm/v1/subscriptions"),
            "discover": link("/nnrf-disc/v1/nf-instances"),
            "authorize": link("/oauth2/token"),
        },
        "nrfFeatures": {"nnrf-nfm": "0", "nnrf-disc": supported_features().to_string()},
        "oauth2Required": {"nnrf-nfm": protected, "nnrf-disc": protected},
        "nrfInstanceId": worker.instance(),
    });
    let hal = Value::from_static("application/3gppHal+json");
    sbi::json::response(StatusCode::OK, &body).with(CONTENT_TYPE, hal)
}
