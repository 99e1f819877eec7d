//! Mediation on the way, and its replacement while requests come.

use http::{Method, StatusCode};
use sbi::Body;
use scp::mediation::RuleSet;
use serde_json::{Value, json};

use crate::support::{PATH, Producer, config, knowing, local};

fn rules(value: Value) -> RuleSet {
    serde_json::from_value(value).unwrap()
}

fn group(point: &str, rules: Value) -> Value {
    json!({"name": format!("at-{point}"), "triggerPoints": [point], "services": ["nudm-sdm"], "rules": rules})
}

#[test]
fn rules_act_at_all_four_points() {
    local(async {
        let producer = Producer::start(1);
        producer.answers(|seen| {
            let got: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            sbi::json::response(StatusCode::OK, &json!({"got": got, "secret": 1}))
        });
        let set = rules(json!({"groups": [
            group("requestIngress", json!([
                {"name": "add", "when": [{"json": "/a", "equals": 1}], "then": [{"setJson": {"pointer": "/b", "value": 2}}]},
                {"name": "deny", "when": [{"header": "x-deny", "exists": true}],
                 "then": [{"reject": {"status": 403, "cause": "MODIFICATION_NOT_ALLOWED", "detail": "by rule"}}]}
            ])),
            group("requestEgress", json!([{"name": "mark", "when": [], "then": [{"addHeader": {"name": "x-mark", "value": "1"}}]}])),
            group("responseIngress", json!([{"name": "hide", "when": [], "then": [{"removeJson": {"pointer": "/secret"}}]}])),
            group("responseEgress", json!([{"name": "mark", "when": [{"on": "status", "equals": 200}],
                 "then": [{"setHeader": {"name": "x-marked", "value": "yes"}}]}])),
        ]}));
        let scp = knowing(&[&producer], |config| config.mediation = set);
        let request = |deny: bool| {
            let mut request = http::Request::post(PATH)
                .header("3gpp-sbi-target-apiroot", producer.root())
                .header("content-type", "application/json");
            if deny {
                request = request.header("x-deny", "1");
            }
            request.body(Body::from(r#"{"a": 1}"#)).unwrap()
        };
        let got = scp.send(request(false)).await;
        assert_eq!(got.json, json!({"got": {"a": 1, "b": 2}}));
        assert_eq!(got.header("x-marked"), "yes");
        assert_eq!(producer.seen()[0].headers["x-mark"], "1");
        let denied = scp.send(request(true)).await;
        assert_eq!(
            (denied.status, denied.cause()),
            (StatusCode::FORBIDDEN, "MODIFICATION_NOT_ALLOWED")
        );
        assert_eq!(producer.count(), 1);
    });
}

#[test]
fn a_rule_steers() {
    local(async {
        let (named, chosen) = (Producer::start(1), Producer::start(2));
        let set = rules(json!({"groups": [group("requestIngress", json!([
            {"name": "elsewhere", "when": [{"header": "x-vip", "equals": "1"}], "then": [{"route": {"apiRoot": chosen.root()}}]}
        ]))]}));
        let scp = knowing(&[&named, &chosen], |config| config.mediation = set);
        let root = named.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        assert_eq!(scp.ask(Method::GET, PATH, &[target]).await.by(), named.id);
        assert_eq!(
            scp.ask(Method::GET, PATH, &[target, ("x-vip", "1")]).await.by(),
            chosen.id
        );
    });
}

#[test]
fn rules_are_replaced_without_losing_a_request() {
    local(async {
        let producer = Producer::start(1);
        producer.answers(|seen| {
            let mark = seen
                .headers
                .get("x-mark")
                .map_or("", |value| value.to_str().unwrap());
            sbi::json::response(StatusCode::OK, &json!({"mark": mark}))
        });
        let marking = |mark: &str| {
            rules(json!({"groups": [group("requestEgress", json!([
                {"name": "mark", "when": [], "then": [{"setHeader": {"name": "x-mark", "value": mark}}]}
            ]))]}))
        };
        let profile = producer.profile(&json!({}));
        let scp = knowing(&[&producer], |config| config.mediation = marking("old"));
        let running = scp.running.as_ref().unwrap();
        let traffic = async {
            let mut marks = Vec::new();
            for _ in 0..200 {
                let got = scp.get(&producer).await;
                assert_eq!(got.status, StatusCode::OK);
                marks.push(got.json["mark"].as_str().unwrap().to_owned());
            }
            marks
        };
        let change = async {
            while producer.count() < 10 {
                tokio::task::yield_now().await;
            }
            let mut wanted = config();
            wanted.producers = vec![profile];
            wanted.mediation = marking("new");
            running.reload(&wanted).unwrap();
            wanted.mediation = rules(json!({"groups": [{"name": "bad", "triggerPoints": [], "rules": []}]}));
            assert!(running.reload(&wanted).is_err());
        };
        let (marks, ()) = tokio::join!(traffic, change);
        assert_eq!((marks[0].as_str(), marks[199].as_str()), ("old", "new"));
    });
}
