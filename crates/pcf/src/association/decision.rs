//! The whole decision of an association, and what its consumer gets of a change (TS 29.512 §4.2.6; crate `pcc`).

use serde_json::{Map, Value};

/// Members of `PolicyAssociation` that a null removes (TS 29.507 §5.6.2.5, TS 29.525 §5.6.2.5).
pub const REMOVABLE: [&str; 3] = ["triggers", "pras", "matchPdus"];

/// The decision of a policy project with further parts. Removed entries are left out.
#[must_use]
pub fn whole<'p>(
    policy: &'p Map<String, Value>,
    parts: impl IntoIterator<Item = &'p Value>,
) -> Map<String, Value> {
    let parts = parts.into_iter().filter_map(Value::as_object);
    pcc::decision::compose_objects([policy].into_iter().chain(parts))
}

/// What a consumer that has `before` needs to have `after`: changed entries, null for removed ones.
#[must_use]
pub fn difference(before: Map<String, Value>, after: Map<String, Value>) -> Map<String, Value> {
    let (before, after) = (Value::Object(before), Value::Object(after));
    let change = pcc::decision::difference(&before, &after);
    let mut change = change.map(object).unwrap_or_default();
    for name in REMOVABLE {
        if before.get(name).is_some() && after.get(name).is_none() {
            change.insert(name.to_owned(), Value::Null);
        }
    }
    change
}

/// What an update with usage reports changes: the thresholds of what is reported are used up at the SMF, so that it gets
/// them again even where they are the same (TS 29.512 §4.2.6.5.3.1).
#[must_use]
pub fn after_report(
    before: Map<String, Value>,
    after: Map<String, Value>,
    update: &Map<String, Value>,
) -> Map<String, Value> {
    if !update.contains_key("accuUsageReports") {
        return difference(before, after);
    }
    let mut has = Value::Object(before);
    pcc::usage::forget_reported(&mut has, &Value::Object(update.clone()));
    difference(object(has), after)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reported_threshold_is_provided_again() {
        let decision = object(
            json!({"umDecs": {"quota": {"umId": "quota", "volumeThreshold": 1000},
            "other": {"umId": "other", "volumeThreshold": 7}}}),
        );
        let update = object(json!({"accuUsageReports": [{"refUmIds": "quota", "volUsage": 1000}]}));
        let change = after_report(decision.clone(), decision.clone(), &update);
        let expected = json!({"umDecs": {"quota": {"umId": "quota", "volumeThreshold": 1000}}});
        assert_eq!(Value::Object(change), expected);
        assert!(after_report(decision.clone(), decision, &Map::new()).is_empty());
    }

    #[test]
    fn members_of_am_policies_are_removed_by_null_where_they_may() {
        let before = object(json!({"triggers": ["LOC_CH"], "pras": {"1": {}}, "rfsp": 7}));
        let change = difference(before, object(json!({"rfsp": 9})));
        assert_eq!(
            Value::Object(change),
            json!({"rfsp": 9, "triggers": null, "pras": null})
        );
    }
}
