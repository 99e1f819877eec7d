//! Decisions: composed, compared, applied.

use pcc::decision::{apply, compose, difference};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn parts_come_together_and_removals_count() {
    let project = json!({
        "sessRules": {"default": {"sessRuleId": "default"}},
        "pccRules": {"default": {"pccRuleId": "default"}, "af-s-1-1": null},
        "policyCtrlReqTriggers": ["PLMN_CH", "SUCC_RES_ALLO"], "online": false,
    });
    let af = json!({
        "pccRules": {"af-s-1-1": {"pccRuleId": "af-s-1-1"}, "af-s-1-2": {"pccRuleId": "af-s-1-2"}},
        "policyCtrlReqTriggers": ["SUCC_RES_ALLO", "US_RE"], "online": true,
    });
    let whole = compose([&project, &af]);
    assert_eq!(
        whole["pccRules"],
        json!({"default": {"pccRuleId": "default"}, "af-s-1-2": {"pccRuleId": "af-s-1-2"}})
    );
    assert_eq!(
        whole["policyCtrlReqTriggers"],
        json!(["PLMN_CH", "SUCC_RES_ALLO", "US_RE"])
    );
    assert_eq!(whole["online"], false);
    assert_eq!(compose([&json!({"pccRules": {"a": null}})]), json!({}));
}

#[test]
fn a_change_has_what_changed_and_null_for_what_goes() {
    let has = json!({
        "pccRules": {"a": {"pccRuleId": "a", "precedence": 1, "refUmData": ["u"]}, "b": {"pccRuleId": "b"}},
        "umDecs": {"u": {"umId": "u", "volumeThreshold": 5}},
        "qosDecs": {"q": {"qosId": "q", "5qi": 9}},
        "policyCtrlReqTriggers": ["PLMN_CH"],
    });
    let shall = json!({
        "pccRules": {"a": {"pccRuleId": "a", "precedence": 1}, "c": {"pccRuleId": "c"}},
        "qosDecs": {"q": {"qosId": "q", "5qi": 9}},
        "revalidationTime": "2030-01-01T00:00:00Z",
    });
    let change = difference(&has, &shall).unwrap();
    assert_eq!(
        change,
        json!({
            "pccRules": {"a": {"pccRuleId": "a", "precedence": 1, "refUmData": null}, "c": {"pccRuleId": "c"}, "b": null},
            "umDecs": {"u": null},
            "revalidationTime": "2030-01-01T00:00:00Z",
            "policyCtrlReqTriggers": null,
        })
    );
    assert_eq!(apply(&has, &change), shall);
    assert_eq!(difference(&shall, &shall), None);
}

/// A decision of a few identifiers and members, so that two of them overlap.
fn decisions() -> impl Strategy<Value = Value> {
    let entry = |section: &'static str, members: &'static [&'static str]| {
        let values = proptest::collection::btree_map(0..members.len(), 0..3u8, 0..=members.len());
        let entries = proptest::collection::btree_map("[a-d]", values, 0..4);
        entries.prop_map(move |entries| {
            let entries: Map<String, Value> = entries
                .into_iter()
                .map(|(id, values)| {
                    let mut entry = json!({"id": id});
                    for (member, value) in values {
                        entry[members[member]] = json!(value);
                    }
                    (id, entry)
                })
                .collect();
            (section, Value::Object(entries))
        })
    };
    let sections = (
        entry("pccRules", &["refUmData", "refChgData", "refCondData"]),
        entry("qosDecs", &["maxbrUl", "gbrUl", "priorityLevel"]),
        entry("umDecs", &["volumeThreshold", "timeThreshold"]),
        entry("conds", &["activationTime"]),
        proptest::option::of(proptest::collection::vec("[A-C]_CH", 1..3)),
    );
    sections.prop_map(|(rules, qos, usage, conditions, triggers)| {
        let mut decision = json!({});
        for (section, entries) in [rules, qos, usage, conditions] {
            if entries.as_object().is_some_and(|entries| !entries.is_empty()) {
                decision[section] = entries;
            }
        }
        if let Some(triggers) = triggers {
            decision["policyCtrlReqTriggers"] = json!(triggers);
        }
        decision
    })
}

proptest! {
    #[test]
    fn an_smf_that_applies_a_change_has_what_it_shall(has in decisions(), shall in decisions()) {
        match difference(&has, &shall) {
            Some(change) => prop_assert_eq!(apply(&has, &change), shall),
            None => prop_assert_eq!(has, shall),
        }
    }
}
