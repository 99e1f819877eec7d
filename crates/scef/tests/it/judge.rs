//! Validates answers and notifications by the OpenAPI files of TS 29.122, where they are present.

use serde_json::Value;
use testpeer::openapi::Judge;

static JUDGE: Judge = Judge::new(env!("CARGO_MANIFEST_DIR"));

/// Validates a body by a data type of the MonitoringEvent API.
pub fn monitoring(name: &'static str, body: &Value) {
    JUDGE.assert("TS29122_MonitoringEvent.yaml", name, body);
}

/// Validates a body by a data type of the NIDD API.
pub fn nidd(name: &'static str, body: &Value) {
    JUDGE.assert("TS29122_NIDD.yaml", name, body);
}

/// Validates a body by a data type of the DeviceTriggering API.
pub fn triggering(name: &'static str, body: &Value) {
    JUDGE.assert("TS29122_DeviceTriggering.yaml", name, body);
}

/// Validates a body by a data type of several APIs.
pub fn common(name: &'static str, body: &Value) {
    JUDGE.assert("TS29122_CommonData.yaml", name, body);
}

/// Validates problem details.
pub fn problem(body: &Value) {
    common("ProblemDetails", body);
}
