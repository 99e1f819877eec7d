//! State variables that all associations of a subscriber share: AM, SM and Gx, at all workers and PCFs of a store.

use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use pcf::{Config, Event};
use sbi::client::Origin;
use serde_json::{Value, json};
use testpeer::page;

use crate::databases::Servers;
use crate::diameter::{CCR_I, ask, peer};
use crate::pages::admin;
use crate::policies::{AM, association};
use crate::process::Process;
use crate::support::{Pcf, SM_POLICIES, client, config, context, judged, local, path_of, request, start};

const SUPI: &str = "imsi-001010000000001";

/// The example project of a service.
fn example(service: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policy/roaming");
    examples.join(service)
}

/// A project for PDU sessions of these blocks.
fn project(folder: &Path, blocks: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("name: test\nservice: sm\nblocks:\n{blocks}");
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

/// Blocks that count updates in a variable of the subscriber, and show the number that they have found.
const COUNTER: &str = "  \
  - set: {n: {$first: [$subscriberState.n, 0]}}
  - sessionRule: {sessRuleId: {$concat: [seen-, $n]}}
  - if: {$eq: [$event, update]}
    then:
      - rememberSubscriber: {n: {$add: [$n, 1]}}
";

/// A PCF with a project for PDU sessions of these blocks.
fn with(folder: &Path, blocks: &str, change: impl FnOnce(&mut Config)) -> Pcf {
    project(folder, blocks);
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        change(config);
    })
}

/// The variables of the subscriber; null where there are none.
async fn variables(pcf: &Pcf) -> Value {
    let routes = pcf.running().handle().routes();
    match page(routes, &format!("/pcf/variables/{SUPI}")).await {
        (200, text) => serde_json::from_str(&text).unwrap(),
        (status, text) => {
            assert_eq!(status, 404, "{text}");
            Value::Null
        }
    }
}

#[test]
fn sessions_decide_by_what_the_am_association_has_left() {
    local(async {
        let pcf = start(|config| {
            config.policy.am = Some(example("am"));
            config.policy.sm = Some(example("sm"));
        });
        let ambr = |json: &Value| json["sessRules"]["default"]["authSessAmbr"]["uplink"].clone();
        let abroad = association(&json!({"servingPlmn": {"mcc": "262", "mnc": "01"}}));
        let registered = path_of(&pcf.post(AM, &abroad).await);
        assert_eq!(variables(&pcf).await, json!({"visited": "26201"}));

        // The first session shows the welcome page, also after its next update; the second one does not.
        let first = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(ambr(&first.json), "10 Mbps");
        assert!(first.json["pccRules"]["welcome"].is_object(), "{}", first.json);
        let first = path_of(&first);
        let second =
            json!({"pduSessionId": 6, "ipv4Address": "10.0.0.2", "ipv6AddressPrefix": "2001:db8:1:3::/64"});
        let second = pcf.post(SM_POLICIES, &context(&second)).await;
        assert_eq!(
            (ambr(&second.json), second.json.get("pccRules")),
            (json!("10 Mbps"), None)
        );
        let updated = pcf
            .post(&format!("{first}/update"), &json!({"ratType": "EUTRA"}))
            .await;
        assert_eq!(updated.json.get("pccRules"), None, "{}", updated.json);

        // A PCEF has them too, and another subscriber has none.
        let gateway = peer("pgw.example.org", &pcf).await;
        let begun = ask(&gateway, "pgw.example.org", "pgw;1;1", CCR_I).await;
        assert!(
            begun.contains("APN-Aggregate-Max-Bitrate-UL = 10000000"),
            "{begun}"
        );
        let other = json!({"supi": "imsi-001010000000002", "gpsi": "msisdn-2", "ipv4Address": "10.0.0.3"});
        let other = pcf.post(SM_POLICIES, &context(&other)).await;
        assert_eq!(ambr(&other.json), "500 Mbps");

        // An operator sees what was read.
        let routes = pcf.running().handle().routes();
        let (_, lines) = page(routes, &format!("/pcf/explain/{SUPI}")).await;
        assert!(
            lines.contains(r#"$subscriberState.visited = \"26201\""#),
            "{lines}"
        );

        // Back home, where the UE registers again (an update has no PLMN): at the next request of the session.
        pcf.ask(Method::DELETE, &registered, "", "").await;
        let home = association(&json!({"servingPlmn": {"mcc": "001", "mnc": "01"}}));
        pcf.post(AM, &home).await;
        assert_eq!(variables(&pcf).await, Value::Null);
        let updated = pcf
            .post(&format!("{first}/update"), &json!({"ratType": "NR"}))
            .await;
        assert_eq!(ambr(&updated.json), "500 Mbps");
        assert_eq!(updated.json["pccRules"], json!({"welcome": null}));
    });
}

#[test]
fn a_project_without_them_reads_and_writes_none() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        pcf.post(&format!("{path}/update"), &json!({"ratType": "EUTRA"}))
            .await;
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (
                count(Event::SubscriberStateRead),
                count(Event::SubscriberStateWritten)
            ),
            (0, 0)
        );

        // One that sets some reads them where it does, and writes a change.
        let folder = tempfile::tempdir().unwrap();
        let blocks =
            "  - if: {$eq: [$event, update]}\n    then: [{rememberSubscriber: {rat: $request.ratType}}]\n";
        let pcf = with(folder.path(), blocks, |_| {});
        let path = pcf.session(&json!({})).await;
        let count = |event| pcf.running().count(event);
        assert_eq!(count(Event::SubscriberStateRead), 0);
        for (rat, written) in [("NR", 1), ("EUTRA", 2), ("EUTRA", 2)] {
            pcf.post(&format!("{path}/update"), &json!({"ratType": rat}))
                .await;
            assert_eq!(count(Event::SubscriberStateWritten), written, "{rat}");
        }
        assert_eq!(count(Event::SubscriberStateRead), 3);
        assert_eq!(variables(&pcf).await, json!({"rat": "EUTRA"}));
    });
}

#[test]
fn variables_are_bounded_and_a_refused_one_is_counted() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let blocks = "  - rememberSubscriber: {a: $request.vendorA, b: $request.vendorB}\n";
        let pcf = with(folder.path(), blocks, |config| {
            config.subscriber_state.max_variables = 1;
            config.subscriber_state.max_size = settings::ByteSize(16);
        });
        let path = pcf.session(&json!({})).await;
        let update = async |members: Value| {
            let got = pcf.post(&format!("{path}/update"), &members).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
            (
                variables(&pcf).await,
                pcf.running().count(Event::SubscriberStateRefused),
            )
        };
        // The decision holds without the variable that has no room.
        let found = update(json!({"vendorA": 1, "vendorB": 2})).await;
        assert_eq!(found, (json!({"a": 1}), 1));
        let found = update(json!({"vendorA": "longer than that", "vendorB": null})).await;
        assert_eq!(found.0, json!({"a": 1}));
        let refused = found.1;
        assert!(refused > 1);
        // A null makes room.
        let found = update(json!({"vendorA": null, "vendorB": 3})).await;
        assert_eq!(found, (json!({"b": 3}), refused));
    });
}

#[test]
fn variables_expire_and_are_set_again() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), COUNTER, |config| {
            config.subscriber_state.retention = settings::Period::from_millis(300);
        });
        let path = pcf.session(&json!({})).await;
        let update = format!("{path}/update");
        for _ in 0..2 {
            pcf.post(&update, &json!({})).await;
            while variables(&pcf).await != Value::Null {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
        // The record is there until it is swept; the variables begin again before.
        let got = pcf.post(&update, &json!({})).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        assert_eq!(pcf.running().count(Event::SubscriberStateWritten), 3);
    });
}

#[test]
fn an_operator_removes_them_and_a_refused_request_sets_none() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let blocks = "  - rememberSubscriber: {dnn: $request.dnn}\n  - if: {$eq: [$request.dnn, barred]}\n    \
                      then: [{reject: {cause: USER_UNKNOWN}}]\n";
        let pcf = with(folder.path(), blocks, |_| {});
        let refused = pcf.post(SM_POLICIES, &context(&json!({"dnn": "barred"}))).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(variables(&pcf).await, Value::Null);
        pcf.session(&json!({})).await;
        assert_eq!(variables(&pcf).await, json!({"dnn": "internet"}));
        let path = format!("/pcf/variables/{SUPI}");
        assert_eq!(admin(&pcf, "DELETE", &path, "").await, 200);
        assert_eq!(variables(&pcf).await, Value::Null);
        assert_eq!(admin(&pcf, "DELETE", &path, "").await, 404);
    });
}

#[test]
fn a_decision_without_a_request_sets_variables_beside_quotas() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let blocks = "  - sessionRule: {sessRuleId: default}\n  - if: $session.usage.month.exhausted\n    then:\n      \
                      - if: {$eq: [$event, usage]}\n        then: [{rememberSubscriber: {others: true}}]\n        \
                      else: [{rememberSubscriber: {own: true}}]\n";
        let pcf = with(folder.path(), blocks, |config| {
            let limit = json!({"totalVolume": "1000", "reset": "monthly"});
            let limit = serde_json::from_value(limit).unwrap();
            config.usage.limits.insert("month".to_owned(), limit);
        });
        let first = pcf.session(&json!({})).await;
        pcf.session(&json!({"pduSessionId": 6, "ipv4Address": "10.0.0.2"}))
            .await;
        let report = json!({"accuUsageReports": [{"refUmIds": "month", "volUsage": 1_000}]});
        let got = pcf.post(&format!("{first}/update"), &report).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        // The quota and the variable of the session that has used it up, then that of the other session.
        while variables(&pcf).await != json!({"own": true, "others": true}) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
}

/// Sessions that are updated at once, and updates of each.
const LANES: u64 = 6;
const UPDATES: u64 = 10;

async fn post(origin: &Origin, path: &str, body: &Value) -> testpeer::sbi::Got {
    let request = request(Method::POST, path, "application/json", body.to_string());
    judged(&client(), origin, request).await
}

/// A session of the subscriber whose updates count in its variable: how many were acknowledged.
async fn lane(origin: Origin, number: u64) -> u64 {
    let made = post(&origin, SM_POLICIES, &own(number)).await;
    let path = path_of(&made);
    let mut acknowledged = 0;
    for _ in 0..UPDATES {
        let got = post(&origin, &format!("{path}/update"), &json!({})).await;
        assert!(
            matches!(got.status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE),
            "{}",
            got.json
        );
        acknowledged += u64::from(got.status == StatusCode::OK);
    }
    acknowledged
}

/// The context of a session with an identity and addresses of its own.
fn own(number: u64) -> Value {
    context(
        &json!({"pduSessionId": number + 1, "ipv4Address": format!("10.0.1.{number}"), "ipv6AddressPrefix": null}),
    )
}

/// Runs all lanes at these PCFs in turn, and compares what was acknowledged with what a new session reads.
async fn none_is_lost(origins: &[&Origin], before: u64) -> u64 {
    let lanes: Vec<_> = (0..LANES)
        .zip(origins.iter().cycle())
        .map(|(number, origin)| tokio::task::spawn_local(lane((*origin).clone(), number)))
        .collect();
    let mut acknowledged = 0;
    for lane in lanes {
        acknowledged += lane.await.unwrap();
    }
    assert!(acknowledged > LANES * UPDATES * 3 / 4, "{acknowledged} updates");
    count_is(origins[0], before + acknowledged).await;
    before + acknowledged
}

/// A new session reads this count.
async fn count_is(origin: &Origin, count: u64) {
    let made = post(origin, SM_POLICIES, &own(99)).await;
    let rules = made.json["sessRules"].as_object().unwrap();
    let rules: Vec<&String> = rules.keys().collect();
    assert_eq!(rules, [&format!("seen-{count}")]);
}

#[test]
fn updates_at_all_workers_are_all_kept_and_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("project");
    project(&folder, COUNTER);
    let mut settings = config(directory.path());
    settings.policy.sm = Some(folder);
    settings.workers = 2;
    let mut count = 0;
    for _ in 0..2 {
        let process = Process::start(&settings);
        local(async {
            if count > 0 {
                count_is(&process.origin, count).await;
            }
            count = none_is_lost(&[&process.origin], count).await;
        });
    }
}

#[test]
fn updates_of_sessions_at_two_pcfs_are_all_kept() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("project");
    project(&folder, COUNTER);
    let settings = |instance: &str| {
        let mut config = config(&directory.path().join(instance));
        config.store = servers.config("site-1", &[1]);
        config.store.embedded.directory = directory.path().join(instance);
        config.policy.sm = Some(folder.clone());
        config
    };
    let (one, other) = (
        Process::start(&settings("one")),
        Process::start(&settings("other")),
    );
    local(async {
        none_is_lost(&[&one.origin, &other.origin], 0).await;
    });
}
