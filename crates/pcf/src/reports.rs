//! What SMFs report in their answers to `UpdateNotify` (TS 29.512 §4.2.3.2, table 5.5.2.2-2): rules that they could not
//! install (`ErrorReport`, `PartialSuccessReport`), failed decisions, and where the UE is (`UeCampingRep`). They arrive at the
//! control thread, and a worker treats them as it treats the same members of an update.

use http::StatusCode;
use parking_lot::Mutex;
use sbi::Body;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::association::AssociationId;
use crate::shape::SM_UPDATE;

/// What came of a notification about an association.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) id: AssociationId,
    pub(crate) content: Content,
}

/// What an answer says, or that there is none.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Members of `SmPolicyUpdateContextData`.
    Members(Map<String, Value>),
    /// The SMF does not have the session.
    Unknown,
    /// No attempt was accepted: the SMF lacks these rules.
    Undelivered(Vec<String>),
}

/// The rules that a notification provides (`SmPolicyNotification`).
pub(crate) fn rules_of(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let decision = body.get("smPolicyDecision");
    let rules = decision.and_then(|decision| decision.get("pccRules")?.as_object());
    let provided = rules.into_iter().flatten().filter(|(_, rule)| !rule.is_null());
    provided.map(|(id, _)| id.clone()).collect()
}

pub(crate) type Sender = mpsc::Sender<Report>;

/// Where reports arrive, until the first worker takes it.
#[derive(Debug)]
pub(crate) struct Inbox(Mutex<Option<mpsc::Receiver<Report>>>);

/// A channel with room for `most` reports.
pub(crate) fn channel(most: usize) -> (Sender, Inbox) {
    let (sender, receiver) = mpsc::channel(most.max(1));
    (sender, Inbox(Mutex::new(Some(receiver))))
}

impl Inbox {
    /// The receiver, once.
    pub(crate) fn take(&self) -> Option<mpsc::Receiver<Report>> {
        self.0.lock().take()
    }
}

/// Members of `UeCampingRep` that an update has too.
const CAMPING: [&str; 7] = [
    "accessType",
    "ratType",
    "servNfId",
    "servingNetwork",
    "userLocationInfo",
    "ueTimeZone",
    "satBackhaulCategory",
];
/// Lists of `ErrorReport` and `PartialSuccessReport`, and their names in an update.
const FAILURES: [(&str, &str); 5] = [
    ("ruleReports", "ruleReports"),
    ("sessRuleReports", "sessRuleReports"),
    ("policyDecFailureReports", "policyDecFailureReports"),
    ("polDecFailureReports", "policyDecFailureReports"),
    ("invalidPolicyDecs", "invalidPolicyDecs"),
];

/// What an answer reports; `None`: nothing, or nothing that an update could have.
pub(crate) fn read(status: StatusCode, body: &Body, limit: usize) -> Option<Map<String, Value>> {
    let reports = matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST);
    if !reports || body.is_empty() || body.len() > limit {
        return None;
    }
    let mut members = Map::new();
    match sbi::json::parse(body).ok()? {
        Value::Array(items) => {
            let (codes, objects): (Vec<Value>, Vec<Value>) = items.into_iter().partition(Value::is_string);
            for object in &objects {
                add(&mut members, object);
            }
            extend(&mut members, "policyDecFailureReports", &codes);
        }
        object => add(&mut members, &object),
    }
    let is_update = SM_UPDATE.check(&Value::Object(members.clone())).is_empty();
    (is_update && !members.is_empty()).then_some(members)
}

fn add(members: &mut Map<String, Value>, report: &Value) {
    let camping = report.get("ueCampingRep").unwrap_or(report);
    for name in CAMPING {
        if let Some(value) = camping.get(name) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    for (from, to) in FAILURES {
        if let Some(Value::Array(items)) = report.get(from) {
            extend(members, to, items);
        }
    }
}

fn extend(members: &mut Map<String, Value>, name: &str, items: &[Value]) {
    if items.is_empty() {
        return;
    }
    let list = members.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend_from_slice(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read_as_members_of_an_update() {
        let read = |status, body: &Value| {
            let status = StatusCode::from_u16(status).unwrap();
            read(status, &Body::from(body.to_string()), 1_000).map(Value::Object)
        };
        let rules = json!([{"pccRuleIds": ["r"], "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"}]);
        for (status, body, expected) in [
            (
                400,
                json!({"error": {"status": 400}, "ruleReports": rules, "polDecFailureReports": ["QOS_DECS_ERR"]}),
                json!({"ruleReports": rules, "policyDecFailureReports": ["QOS_DECS_ERR"]}),
            ),
            (
                200,
                json!([{"failureCause": "PCC_RULE_EVENT", "ruleReports": rules, "ueCampingRep": {"ratType": "NR"}}]),
                json!({"ratType": "NR", "ruleReports": rules}),
            ),
            (
                200,
                json!(["PRA_INFO_ERR"]),
                json!({"policyDecFailureReports": ["PRA_INFO_ERR"]}),
            ),
            (
                200,
                json!({"accessType": "3GPP_ACCESS"}),
                json!({"accessType": "3GPP_ACCESS"}),
            ),
        ] {
            assert_eq!(read(status, &body), Some(expected), "{body}");
        }
        for (status, body) in [
            (204, json!({"ratType": "NR"})),
            (400, json!({"cause": "INVALID_MSG_FORMAT"})),
            (200, json!({"ruleReports": [{"pccRuleIds": 7}]})),
            (200, json!(7)),
            (200, json!({"ratType": "x".repeat(1_000)})),
        ] {
            assert_eq!(read(status, &body), None, "{body}");
        }
    }
}
