use bytes::Bytes;
use http::{Method, StatusCode};
use proptest::prelude::*;
use sbi_proto::{Fields, Value as FieldValue};
use serde_json::{Value, json};

use super::*;

fn engine(rules: Value) -> Engine {
    Engine::compile(&serde_json::from_value(rules).unwrap()).unwrap()
}

fn faults(rules: Value) -> Vec<RuleFault> {
    Engine::compile(&serde_json::from_value(rules).unwrap()).unwrap_err()
}

/// A POST to the SM policy service with a JSON body.
struct Sample {
    headers: Fields,
    document: Document,
}

impl Sample {
    fn new(body: &Value) -> Self {
        let mut headers = Fields::new();
        headers.set("content-type", FieldValue::from_static("application/json"));
        headers.set("3gpp-sbi-message-priority", FieldValue::from_static("10"));
        headers.set("x-old", FieldValue::from_static("v"));
        Self {
            headers,
            document: Document::new(Bytes::from(body.to_string())),
        }
    }

    fn run(&mut self, engine: &Engine, point: TriggerPoint, service: &str) -> Outcome {
        let mut message = Mediated {
            method: &Method::POST,
            path: "/npcf-smpolicycontrol/v1/sm-policies",
            query: None,
            status: point.is_response().then_some(StatusCode::CREATED),
            headers: &mut self.headers,
            document: &mut self.document,
        };
        engine.run(point, service, &mut message)
    }

    fn body(self) -> Value {
        serde_json::from_slice(&self.document.into_bytes()).unwrap()
    }
}

fn one_rule(when: Value, then: Value) -> Engine {
    engine(json!({"groups": [{
        "name": "g", "triggerPoints": ["requestIngress"], "rules": [{"name": "r", "when": when, "then": then}]
    }]}))
}

#[test]
fn headers_are_added_set_replaced_removed_and_renamed() {
    let engine = one_rule(
        json!([]),
        json!([
            {"addHeader": {"name": "x-old", "value": "w"}},
            {"renameHeader": {"name": "x-old", "to": "x-new"}},
            {"setHeader": {"name": "x-supi", "from": "json:/supi"}},
            {"replaceHeader": {"name": "x-none", "value": "never"}},
            {"removeHeader": {"name": "3gpp-Sbi-Message-Priority"}}
        ]),
    );
    let mut sample = Sample::new(&json!({"supi": "imsi-1"}));
    let outcome = sample.run(&engine, TriggerPoint::RequestIngress, "npcf-smpolicycontrol");
    assert_eq!((outcome.applied, outcome.body_changed), (1, false));
    let new: Vec<_> = sample.headers.get_all("x-new").collect();
    assert_eq!(new, ["v", "w"]);
    assert_eq!(sample.headers.get("x-supi").unwrap(), "imsi-1");
    assert!(!sample.headers.contains("x-old") && !sample.headers.contains("x-none"));
    assert!(!sample.headers.contains("3gpp-sbi-message-priority"));
}

#[test]
fn json_is_set_moved_and_removed_and_only_then_serialised() {
    let engine = one_rule(
        json!([{"json": "/pduSessionId", "above": 4}]),
        json!([
            {"setJson": {"pointer": "/sliceInfo/sd", "value": "0000ff"}},
            {"moveJson": {"from": "/dnn", "to": "/selected/dnn"}},
            {"removeJson": {"pointer": "/gpsi"}}
        ]),
    );
    let mut sample = Sample::new(&json!({"pduSessionId": 5, "dnn": "ims", "gpsi": "msisdn-1", "other": [1]}));
    assert!(
        sample
            .run(&engine, TriggerPoint::RequestIngress, "x")
            .body_changed
    );
    assert_eq!(
        sample.body(),
        json!({"pduSessionId": 5, "other": [1], "sliceInfo": {"sd": "0000ff"}, "selected": {"dnn": "ims"}})
    );

    let untouched = json!({"pduSessionId": 4, "dnn": "ims"});
    let mut sample = Sample::new(&untouched);
    assert_eq!(sample.run(&engine, TriggerPoint::RequestIngress, "x").applied, 0);
    assert_eq!(sample.body(), untouched);
}

#[test]
fn a_group_runs_only_at_its_points_for_its_services_and_methods() {
    let engine = engine(json!({"groups": [
        {"name": "pcf", "triggerPoints": ["requestEgress"], "services": ["npcf-smpolicycontrol"],
         "rules": [{"name": "r", "then": [{"addHeader": {"name": "x-seen", "value": "pcf"}}]}]},
        {"name": "get", "triggerPoints": ["requestEgress"], "methods": ["GET"],
         "rules": [{"name": "r", "then": [{"addHeader": {"name": "x-seen", "value": "get"}}]}]},
        {"name": "all", "triggerPoints": ["requestEgress"],
         "rules": [{"name": "r", "then": [{"addHeader": {"name": "x-seen", "value": "all"}}]}]}
    ]}));
    let seen = |point, service| {
        let mut sample = Sample::new(&json!({}));
        sample.run(&engine, point, service);
        sample
            .headers
            .get_all("x-seen")
            .map(|v| v.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        seen(TriggerPoint::RequestEgress, "npcf-smpolicycontrol"),
        ["pcf", "all"]
    );
    assert_eq!(seen(TriggerPoint::RequestEgress, "nudm-sdm"), ["all"]);
    assert!(seen(TriggerPoint::RequestIngress, "npcf-smpolicycontrol").is_empty());
    assert!(!engine.watches(TriggerPoint::ResponseEgress, "nudm-sdm"));
    assert_eq!(engine.applied().map(|(_, _, n)| n).collect::<Vec<_>>(), [1, 0, 2]);
}

#[test]
fn conditions_combine() {
    let when = json!([
        {"any": [
            {"header": "3gpp-sbi-message-priority", "below": 5},
            {"all": [{"on": "path", "matches": "^/npcf-"}, {"not": {"json": "/supi", "startsWith": "imsi-9"}}]}
        ]},
        {"on": "method", "in": ["POST", "PUT"]},
        {"on": "query", "exists": false}
    ]);
    let engine = one_rule(when, json!([{"setHeader": {"name": "x-hit", "value": "1"}}]));
    for (supi, applied) in [("imsi-1", 1), ("imsi-901", 0)] {
        let mut sample = Sample::new(&json!({"supi": supi}));
        assert_eq!(
            sample.run(&engine, TriggerPoint::RequestIngress, "x").applied,
            applied,
            "{supi}"
        );
    }
}

#[test]
fn a_rejection_ends_the_run_and_steering_adds_up() {
    let engine = engine(
        json!({"groups": [{"name": "g", "triggerPoints": ["requestIngress"], "rules": [
            {"name": "site", "then": [{"route": {"locality": "east"}}]},
            {"name": "set", "then": [{"route": {"nfSetId": "set1", "priority": 3}}]},
            {"name": "no", "when": [{"json": "/bad", "exists": true}],
             "then": [{"reject": {"status": 403, "cause": "MODIFICATION_NOT_ALLOWED"}}]},
            {"name": "late", "then": [{"setHeader": {"name": "x-late", "value": "1"}}]}
        ]}]}),
    );
    let mut good = Sample::new(&json!({}));
    let outcome = good.run(&engine, TriggerPoint::RequestIngress, "x");
    assert_eq!(
        outcome.steering,
        Steering {
            locality: Some("east".into()),
            nf_set_id: Some("set1".into()),
            priority: Some(3),
            ..Default::default()
        }
    );
    assert!(good.headers.contains("x-late"));
    let mut bad = Sample::new(&json!({"bad": 1}));
    let outcome = bad.run(&engine, TriggerPoint::RequestIngress, "x");
    assert_eq!(outcome.reject.unwrap().status, 403);
    assert!(!bad.headers.contains("x-late"));
}

#[test]
fn stop_skips_the_rest_of_the_group_only() {
    let rule = |name: &str, stop: bool| json!({"name": name, "stop": stop, "then": [{"addHeader": {"name": "x-seen", "value": name}}]});
    let engine = engine(json!({"groups": [
        {"name": "a", "triggerPoints": ["requestIngress"], "rules": [rule("a1", true), rule("a2", false)]},
        {"name": "b", "triggerPoints": ["requestIngress"], "rules": [rule("b1", false)]}
    ]}));
    let mut sample = Sample::new(&json!({}));
    sample.run(&engine, TriggerPoint::RequestIngress, "x");
    let seen: Vec<_> = sample.headers.get_all("x-seen").collect();
    assert_eq!(seen, ["a1", "b1"]);
}

#[test]
fn a_body_that_is_not_json_is_left_alone() {
    let engine = one_rule(json!([]), json!([{"setJson": {"pointer": "/a", "value": 1}}]));
    for (content_type, body) in [
        ("application/json", "{broken"),
        ("text/plain", "{}"),
        ("multipart/related", "{}"),
    ] {
        let mut sample = Sample::new(&json!({}));
        sample
            .headers
            .set("content-type", FieldValue::from_static(content_type));
        sample.document = Document::new(Bytes::from(body));
        assert!(
            !sample
                .run(&engine, TriggerPoint::RequestIngress, "x")
                .body_changed
        );
        assert_eq!(sample.document.into_bytes(), body);
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let found = faults(json!({"groups": [
        {"name": "g", "triggerPoints": ["responseEgress"], "methods": ["GE T"], "rules": [
            {"name": "r", "when": [{"header": "a b", "exists": true}, {"json": "supi", "equals": 1}, {},
                                   {"on": "path"}, {"on": "path", "matches": "("}],
             "then": [{"reject": {"status": 200}}, {"setHeader": {"name": "x"}},
                      {"setHeader": {"name": "content-length", "value": "1"}},
                      {"moveJson": {"from": "/a", "to": "/a/b"}}, {"route": {"priority": 40}}]},
            {"name": "r", "then": []}
        ]},
        {"name": "g", "triggerPoints": []}
    ]}));
    let places: Vec<&str> = found.iter().map(|fault| fault.path.as_str()).collect();
    for place in [
        "groups[0].methods[0]",
        "groups[0].rules[0].when[0].header",
        "groups[0].rules[0].when[1].json",
        "groups[0].rules[0].when[2]",
        "groups[0].rules[0].when[3]",
        "groups[0].rules[0].when[4].matches",
        "groups[0].rules[0].then[0].reject.status",
        "groups[0].rules[0].then[0]",
        "groups[0].rules[0].then[1]",
        "groups[0].rules[0].then[2]",
        "groups[0].rules[0].then[3]",
        "groups[0].rules[0].then[4].route.priority",
        "groups[0].rules[1].name",
        "groups[0].rules[1].then",
        "groups[1].name",
        "groups[1].triggerPoints",
    ] {
        assert!(places.contains(&place), "no fault at {place}: {places:#?}");
    }
}

proptest! {
    #[test]
    fn any_body_passes_unharmed_through_rules_that_do_not_apply(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let engine = one_rule(json!([{"json": "/no/such", "equals": "x"}]), json!([{"removeJson": {"pointer": "/a"}}]));
        let mut sample = Sample::new(&json!({}));
        sample.document = Document::new(Bytes::from(body.clone()));
        sample.run(&engine, TriggerPoint::RequestIngress, "x");
        prop_assert_eq!(sample.document.into_bytes(), body);
    }
}
