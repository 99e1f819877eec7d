//! Decisions in the form of `SmPolicyDecision`: the whole one, and what a change of it is (TS 29.512 §4.2.6).

use serde_json::{Map, Value};

/// Members that are maps of entries by their identifier, of which a null removes one.
const SECTIONS: [&str; 8] = [
    "sessRules",
    "pccRules",
    "qosDecs",
    "chgDecs",
    "traffContDecs",
    "umDecs",
    "conds",
    "qosMonDecs",
];

/// Lists whose items are those of all parts.
const LISTS: [&str; 2] = ["policyCtrlReqTriggers", "lastReqRuleData"];

/// Members that a null removes (TS 29.512 §5.6.2.4, TS 29.507 §5.6.2.4).
const REMOVABLE: [&str; 4] = ["policyCtrlReqTriggers", "triggers", "pras", "matchPdus"];

fn is_section(name: &str) -> bool {
    SECTIONS.contains(&name)
}

/// The decision of a policy project with further parts. Removed entries are left out.
#[must_use]
pub fn whole<'p>(
    policy: &Map<String, Value>,
    parts: impl IntoIterator<Item = &'p Value>,
) -> Map<String, Value> {
    let mut all = policy.clone();
    for part in parts {
        for (name, value) in part.as_object().into_iter().flatten() {
            add(&mut all, name, value);
        }
    }
    for name in SECTIONS {
        if let Some(entries) = all.get_mut(name).and_then(Value::as_object_mut) {
            entries.retain(|_, entry| !entry.is_null());
        }
    }
    all.retain(|name, value| {
        let is_empty = is_section(name) && value.as_object().is_none_or(Map::is_empty);
        !value.is_null() && !is_empty
    });
    all
}

/// Adds a member of a part: entries and items to those that are there, other members where there is none.
fn add(all: &mut Map<String, Value>, name: &str, value: &Value) {
    let Some(held) = all.get_mut(name) else {
        all.insert(name.to_owned(), value.clone());
        return;
    };
    match (held, value) {
        (Value::Object(held), Value::Object(more)) if is_section(name) => {
            held.extend(more.iter().map(|(id, entry)| (id.clone(), entry.clone())));
        }
        (Value::Array(held), Value::Array(more)) if LISTS.contains(&name) => {
            for item in more {
                if !held.contains(item) {
                    held.push(item.clone());
                }
            }
        }
        _ => {}
    }
}

/// What a consumer that has `before` needs to have `after`: changed entries, null for removed ones.
#[must_use]
pub fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut change = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(held) if held == value => {}
            Some(Value::Object(held)) if is_section(name) => {
                let entries = section(held, value);
                if !entries.is_empty() {
                    change.insert(name.clone(), Value::Object(entries));
                }
            }
            _ => drop(change.insert(name.clone(), value.clone())),
        }
    }
    for (name, held) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        if let Some(held) = held.as_object().filter(|_| is_section(name)) {
            let entries = held.keys().map(|id| (id.clone(), Value::Null)).collect();
            change.insert(name.clone(), Value::Object(entries));
        } else if REMOVABLE.contains(&name.as_str()) {
            change.insert(name.clone(), Value::Null);
        }
    }
    change
}

fn section(before: &Map<String, Value>, after: &Value) -> Map<String, Value> {
    let after = after.as_object();
    let changed = after.into_iter().flatten();
    let changed = changed
        .filter(|(id, entry)| before.get(*id) != Some(*entry))
        .map(|(id, entry)| (id.clone(), entry.clone()));
    let removed = before
        .keys()
        .filter(|id| after.is_none_or(|after| !after.contains_key(*id)))
        .map(|id| (id.clone(), Value::Null));
    changed.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn parts_are_added_to_what_the_project_decides() {
        let policy = map(
            json!({"pccRules": {"default": {"pccRuleId": "default"}, "old": null}, "conds": {"c": null},
            "policyCtrlReqTriggers": ["PLMN_CH"], "online": true}),
        );
        let parts = [
            json!({"pccRules": {"af-1": {"pccRuleId": "af-1"}}, "qosDecs": {"q": {"qosId": "q"}}}),
            json!({"policyCtrlReqTriggers": ["PLMN_CH", "US_RE"], "online": false}),
        ];
        let expected = json!({"pccRules": {"default": {"pccRuleId": "default"}, "af-1": {"pccRuleId": "af-1"}},
            "qosDecs": {"q": {"qosId": "q"}}, "policyCtrlReqTriggers": ["PLMN_CH", "US_RE"], "online": true});
        assert_eq!(Value::Object(whole(&policy, &parts)), expected);
    }

    #[test]
    fn a_change_has_what_differs_and_nulls_for_what_is_removed() {
        let before = map(
            json!({"pccRules": {"a": {"precedence": 1}, "b": {}, "c": {}}, "qosDecs": {"q": {}},
            "policyCtrlReqTriggers": ["PLMN_CH"], "online": true, "offline": true}),
        );
        let after = map(
            json!({"pccRules": {"a": {"precedence": 2}, "b": {}}, "umDecs": {"u": {}}, "online": false,
            "offline": true}),
        );
        let expected = json!({"pccRules": {"a": {"precedence": 2}, "c": null}, "umDecs": {"u": {}}, "online": false,
            "qosDecs": {"q": null}, "policyCtrlReqTriggers": null});
        assert_eq!(Value::Object(difference(&before, &after)), expected);
        assert!(difference(&after, &after).is_empty());
        // A consumer that applies the change has the whole decision.
        let mut applied = before.clone();
        for (name, value) in difference(&before, &after) {
            match (applied.get_mut(&name), value) {
                (Some(Value::Object(held)), Value::Object(entries)) => held.extend(entries),
                (_, value) => drop(applied.insert(name, value)),
            }
        }
        assert_eq!(whole(&applied, &[]), after);
    }
}
