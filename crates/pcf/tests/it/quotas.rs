//! Several limits of one session, and portions of quotas that a session gets without an event of its own.

use std::path::Path;
use std::rc::Rc;

use http::{Method, StatusCode};
use pcf::Config;
use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::{Server, no_content};

use crate::diameter::{CCR_I, ask, peer};
use crate::pages::admin;
use crate::support::{Pcf, SM_POLICIES, context, local, path_of, start};

const SUPI: &str = "imsi-001010000000001";

fn limit(config: &mut Config, id: &str, limit: Value) {
    let limit = serde_json::from_value(limit).unwrap();
    config.usage.limits.insert(id.to_owned(), limit);
}

/// A day of 1,000 octets and a month of 10,000.
fn day_and_month(config: &mut Config) {
    limit(config, "day", json!({"totalVolume": "1000", "reset": "daily"}));
    limit(
        config,
        "month",
        json!({"totalVolume": "10000", "reset": "monthly"}),
    );
}

async fn used(pcf: &Pcf) -> Value {
    let (status, text) = page(pcf.running().handle().routes(), &format!("/pcf/usage/{SUPI}")).await;
    assert_eq!(status, 200, "{text}");
    let quotas: Value = serde_json::from_str(&text).unwrap();
    let used = quotas.as_object().unwrap().iter();
    used.map(|(id, quota)| (id.clone(), quota["used"]["totalVolume"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn report(key: &str, volume: u64) -> Value {
    json!({"repPolicyCtrlReqTriggers": ["US_RE"], "accuUsageReports": [{"refUmIds": key, "volUsage": volume}]})
}

#[test]
fn a_day_and_a_month_are_both_measured_over_n7() {
    local(async {
        let pcf = start(day_and_month);
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let keys: Vec<&String> = made.json["umDecs"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["day"], "one key measures the session");
        assert_eq!(made.json["umDecs"]["day"]["volumeThreshold"], 1_000);
        let rules = made.json["sessRules"].as_object().unwrap();
        assert!(rules.values().all(|rule| rule["refUmData"] == "day"), "{rules:?}");
        let path = path_of(&made);
        let changed = pcf.post(&format!("{path}/update"), &report("day", 600)).await;
        assert_eq!(changed.json["umDecs"]["day"]["volumeThreshold"], 400);
        assert_eq!(used(&pcf).await, json!({"day": 600, "month": 600}));
        // With the day used up the month is measured on.
        let changed = pcf.post(&format!("{path}/update"), &report("day", 400)).await;
        assert_eq!(changed.json["umDecs"]["day"]["volumeThreshold"], 9_000);
        pcf.post(&format!("{path}/delete"), &report("day", 50)).await;
        assert_eq!(used(&pcf).await, json!({"day": 1_050, "month": 1_050}));
    });
}

#[test]
fn a_day_and_a_month_are_both_measured_over_gx() {
    local(async {
        let pcf = start(day_and_month);
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        let begun = gx(CCR_I).await;
        assert_eq!(
            begun.matches("Usage-Monitoring-Information = {").count(),
            1,
            "{begun}"
        );
        assert!(
            begun.contains("Usage-Monitoring-Level = SESSION_LEVEL"),
            "{begun}"
        );
        assert!(begun.contains("CC-Total-Octets = 1000"), "{begun}");
        let key = begun
            .lines()
            .find(|line| line.contains("Monitoring-Key"))
            .unwrap()
            .trim()
            .to_owned();
        let report = format!(
            "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = USAGE_REPORT\n\
             Usage-Monitoring-Information = {{\n{key}\nUsed-Service-Unit = {{ CC-Total-Octets = 700 }}\n\
             Usage-Monitoring-Level = SESSION_LEVEL\n}}"
        );
        let updated = gx(&report).await;
        assert!(updated.contains("CC-Total-Octets = 300"), "{updated}");
        assert_eq!(used(&pcf).await, json!({"day": 700, "month": 700}));
    });
}

#[test]
fn the_first_portion_of_a_limit_that_the_udr_adds_counts() {
    local(async {
        let udr = Server::start(|_| no_content());
        let document = Rc::new(std::cell::RefCell::new(json!({})));
        let (root, now) = (udr.root(), document.clone());
        udr.answers(move |seen| match seen.method {
            Method::GET => sbi::json::response(StatusCode::OK, &*now.borrow()),
            Method::POST => {
                let mut made = sbi::json::response(StatusCode::CREATED, &seen.json());
                let location = format!("{root}/nudr-dr/v2/policy-data/subs-to-notify/1");
                made.headers_mut().set_printed(sbi::name::LOCATION, location);
                made
            }
            _ => no_content(),
        });
        let smf = Server::start(|_| no_content());
        let pcf = start(|config| {
            config.pds.udr.enabled = true;
            config.pds.udr.api_roots = vec![udr.root()];
            config.pds.deadline = settings::Period::from_secs(20);
            config.usage.portion = settings::ByteSize(4_000);
        });
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n", smf.root())}))
            .await;
        let subscribed = udr
            .take()
            .into_iter()
            .find(|seen| seen.method == Method::POST)
            .unwrap();
        let callback = subscribed.json()["notificationUri"].as_str().unwrap().to_owned();
        let callback = callback.parse::<http::Uri>().unwrap().path().to_owned();
        let month = json!({"limitId": "month", "umLevel": "SESSION_LEVEL", "usageLimit": {"totalVolume": 10_000},
            "scopes": {"1-00000a": {"snssai": {"sst": 1, "sd": "00000a"}}}, "resetPeriod": {"period": "MONTHLY"}});
        *document.borrow_mut() = json!({"umDataLimits": {"month": month}});
        let change = json!([{"ueId": SUPI, "reportedFragments": []}]);
        assert_eq!(pcf.post(&callback, &change).await.status, StatusCode::NO_CONTENT);
        while smf.count() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let notified = smf.take()[0].json();
        assert_eq!(
            notified["smPolicyDecision"]["umDecs"]["month"]["volumeThreshold"],
            4_000
        );
        pcf.post(&format!("{path}/update"), &report("month", 4_000)).await;
        assert_eq!(used(&pcf).await, json!({"month": 4_000}));
    });
}

#[test]
fn portions_in_use_count_when_an_operator_opens_the_quotas_again() {
    local(async {
        let pcf = start(day_and_month);
        let path = pcf.session(&json!({})).await;
        let other = json!({"pduSessionId": 6, "ipv4Address": "10.0.0.2", "ipv6AddressPrefix": null});
        let second = pcf.session(&other).await;
        pcf.post(&format!("{path}/update"), &report("day", 600)).await;
        let page = format!("/pcf/usage/{SUPI}");
        assert_eq!(admin(&pcf, "DELETE", &page, "").await, 200);
        assert_eq!(used(&pcf).await, json!({"day": null, "month": null}));
        // One reports with its end, the other with an update.
        pcf.post(&format!("{second}/delete"), &report("day", 70)).await;
        assert_eq!(used(&pcf).await, json!({"day": 70, "month": 70}));
        let changed = pcf.post(&format!("{path}/update"), &report("day", 30)).await;
        assert_eq!(changed.json["umDecs"]["day"]["volumeThreshold"], 900);
        assert_eq!(used(&pcf).await, json!({"day": 100, "month": 100}));
        assert_eq!(admin(&pcf, "DELETE", "/pcf/usage/imsi-7", "").await, 404);
    });
}

#[test]
fn a_dnn_with_operator_identifier_has_the_limits_and_the_data_of_its_network() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "name: test\nservice: sm\nblocks:\n  - set:\n      tier: ",
            "$subscriber.smPolicySnssaiData[\"1-00000a\"].smPolicyDnnData[$request.dnn].tier\n",
            "  - sessionRule: {sessRuleId: {$concat: [of-, {$first: [$tier, none]}]}}\n",
        );
        std::fs::write(Path::new(folder.path()).join("project.yaml"), text).unwrap();
        let udr = Server::start(|_| no_content());
        let document = json!({"smPolicySnssaiData": {"1-00000a": {"snssai": {"sst": 1, "sd": "00000a"},
            "smPolicyDnnData": {"internet": {"dnn": "internet", "tier": "gold"}}}}});
        udr.answers(move |_| sbi::json::response(StatusCode::OK, &document));
        let pcf = start(|config| {
            config.policy.sm = Some(folder.path().to_owned());
            config.pds.udr.enabled = true;
            config.pds.udr.api_roots = vec![udr.root()];
            config.pds.deadline = settings::Period::from_secs(20);
            limit(
                config,
                "month",
                json!({"totalVolume": "10000", "dnns": ["internet"]}),
            );
        });
        for dnn in [
            "internet",
            "internet.mnc001.mcc001.gprs",
            "Internet.MNC001.mcc001.GPRS",
        ] {
            let made = pcf.post(SM_POLICIES, &context(&json!({"dnn": dnn}))).await;
            assert!(
                made.json["sessRules"].get("of-gold").is_some(),
                "{dnn}: {}",
                made.json
            );
            assert_eq!(made.json["umDecs"]["month"]["volumeThreshold"], 10_000, "{dnn}");
        }
    });
}

#[test]
fn a_rule_may_name_the_key_of_a_limit_of_service_level() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "name: test\nservice: sm\nblocks:\n",
            "  - pccRule: {pccRuleId: video, precedence: 10, appId: video, refUmData: [stream]}\n",
        );
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let pcf = start(|config| {
            config.policy.sm = Some(folder.path().to_owned());
            let stream = json!({"totalVolume": "500", "level": "service", "keys": ["stream"]});
            limit(config, "tv", stream);
        });
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(
            made.json["umDecs"]["stream"]["volumeThreshold"], 500,
            "{}",
            made.json
        );
        assert_eq!(made.json["pccRules"]["video"]["refUmData"], json!(["stream"]));
        // An SMF that does not measure gets no reference to what it does not get.
        let made = pcf.post(SM_POLICIES, &context(&json!({"suppFeat": "0"}))).await;
        assert!(
            made.json["pccRules"]["video"].get("refUmData").is_none(),
            "{}",
            made.json
        );
    });
}
