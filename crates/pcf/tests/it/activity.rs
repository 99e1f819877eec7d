//! The activity of traced subscribers, and records of policy events.

use std::path::Path;
use std::time::Duration;

use http::{Method, StatusCode};
use pcf::Config;
use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::{Server, no_content};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::diameter::{AAR, CCR_I, CCR_T, ask, peer};
use crate::pages::admin;
use crate::support::{Pcf, SM_POLICIES, config, context, local, path_of, start};

const SUPI: &str = "imsi-001010000000001";

/// A UDR, CHF and BSF in one: it creates what is posted, and knows every subscriber.
fn functions() -> Server {
    let server = Server::start(|_| no_content());
    let root = server.root();
    server.answers(move |seen| {
        let created = |path: &str, body: &Value| {
            let mut response = sbi::json::response(StatusCode::CREATED, body);
            let location = format!("{root}{path}");
            response.headers_mut().set_printed(sbi::name::LOCATION, location);
            response
        };
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", _) => sbi::json::response(StatusCode::OK, &json!({"category": "gold"})),
            ("POST", path) if path.contains("subs-to-notify") => {
                created("/nudr-dr/v2/policy-data/subs-to-notify/1", &json!({}))
            }
            ("POST", path) if path.contains("nchf") => created(
                "/nchf-spendinglimitcontrol/v1/subscriptions/1",
                &json!({"statusInfos": {}}),
            ),
            ("POST", _) => created("/nbsf-management/v1/pcfBindings/1", &json!({})),
            _ => no_content(),
        }
    });
    server
}

fn with_functions(config: &mut Config, server: &Server, directory: &Path) {
    config.pds.udr.enabled = true;
    config.pds.udr.api_roots = vec![server.root()];
    config.pds.chf.enabled = true;
    config.pds.chf.api_roots = vec![server.root()];
    config.bsf.api_roots = vec![server.root()];
    config.pds.deadline = settings::Period::from_secs(20);
    config.activity_log.files.directory = directory.to_owned();
    config.policy_events.files.directory = directory.to_owned();
}

async fn entries(pcf: &Pcf, wanted: &str) -> Vec<Value> {
    let (_, text) = page(
        pcf.running().handle().routes(),
        &format!("/pcf/activity/{wanted}"),
    )
    .await;
    serde_json::from_str(&text).unwrap_or_default()
}

/// Waits until the activity of a subscriber has this many entries of an interface and direction.
async fn until(pcf: &Pcf, interface: &str, what: &str, count: usize) -> Vec<Value> {
    for _ in 0..2_000 {
        let found = entries(pcf, SUPI).await;
        let fits = |one: &&Value| one["interface"] == interface && one["what"] == what;
        if found.iter().filter(fits).count() >= count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{interface} {what}: {:#?}", entries(pcf, SUPI).await);
}

/// Direction, interface and text of entries.
fn steps(entries: &[Value]) -> Vec<String> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let step = |one: &Value| {
        let status = one["status"].as_u64().map(|status| status.to_string());
        [
            text(one, "what"),
            text(one, "interface"),
            text(one, "text"),
            status.unwrap_or_default(),
        ]
        .join(" ")
        .trim()
        .to_owned()
    };
    entries.iter().map(step).collect()
}

#[test]
fn a_traced_subscriber_has_a_timeline_of_messages_decisions_and_writes() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (server, smf) = (functions(), listener());
        let mut pcf = start(|config| {
            with_functions(config, &server, folder.path());
            config.activity_log.subscribers = vec!["imsi-00101000000000*".to_owned()];
        });
        let uri = format!("{}/smf", smf.root());
        let created = pcf
            .post(SM_POLICIES, &context(&json!({"notificationUri": uri})))
            .await;
        let path = path_of(&created);
        let found = until(&pcf, "BSF", "in", 1).await;
        let listed = steps(&found).join("\n");
        for expected in [
            "in N7 POST /npcf-smpolicycontrol/v1/sm-policies\n",
            "out UDR POST /nudr-dr/v2/policy-data/subs-to-notify\n",
            "in UDR  201\n",
            "out UDR GET /nudr-dr/v2/policy-data/ues/imsi-001010000000001/sm-data\n",
            "out CHF POST /nchf-spendinglimitcontrol/v1/subscriptions\n",
            "in CHF  201\n",
            "decision  create: project built-in",
            "write  sm association created\n",
            "out N7  201\n",
            "out BSF POST /nbsf-management/v1/pcfBindings\n",
            "in BSF  201",
        ] {
            assert!(listed.contains(expected), "{expected:?} in\n{listed}");
        }
        // What came first is first, and what belongs to a request has its number.
        assert_eq!(found[0]["what"], "in");
        assert_eq!(found[0]["body"]["dnn"], "internet");
        let answer = found
            .iter()
            .find(|one| one["what"] == "out" && one["interface"] == "N7");
        assert_eq!(answer.unwrap()["request"], found[0]["request"]);
        assert_eq!(answer.unwrap()["body"], created.json);
        let decision = found.iter().find(|one| one["what"] == "decision").unwrap();
        assert!(
            decision["detail"].as_str().unwrap().contains("sessRules.default"),
            "{decision}"
        );

        // An AF session: N5, the notification of the SMF, and its answer.
        let af = pcf.post(APP_SESSIONS, &call(&smf.root(), &json!({}))).await;
        assert_eq!(af.status, StatusCode::CREATED);
        notification(&smf, 1).await;
        let found = until(&pcf, "notification", "in", 1).await;
        let listed = steps(&found).join("\n");
        for expected in [
            "in N5 POST /npcf-policyauthorization/v1/app-sessions",
            "write  sm association updated",
            "out N7 POST /smf/update",
            "out N5  201",
            "in notification Delivered",
        ] {
            assert!(listed.contains(expected), "{expected:?} in\n{listed}");
        }
        let ended = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        // The ends of the subscriptions and of the binding follow in the background.
        until(&pcf, "BSF", "in", 2).await;
        until(&pcf, "UDR", "in", 3).await;
        let found = until(&pcf, "CHF", "in", 2).await;
        assert!(
            steps(&found)
                .iter()
                .any(|step| step == "write  sm association deleted")
        );

        // Another subscriber leaves nothing.
        pcf.session(
            &json!({"supi": "imsi-001020000000001", "gpsi": null, "ipv4Address": "10.0.0.2",
            "ipv6AddressPrefix": null, "notificationUri": uri}),
        )
        .await;
        assert!(entries(&pcf, "imsi-001020000000001").await.is_empty());
        pcf.stop();
        let text = std::fs::read_to_string(folder.path().join("activity.jsonl")).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(lines.len() >= found.len());
        assert!(
            lines
                .iter()
                .all(|line| line["supi"] == SUPI && line["time"].is_string())
        );
    });
}

#[test]
fn a_refused_request_of_a_traced_subscriber_shows_its_cause() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let server =
            Server::start(|_| sbi::problem::Problem::of_status(StatusCode::NOT_FOUND).into_response());
        let pcf = start(|config| {
            with_functions(config, &server, folder.path());
            config.pds.chf.enabled = false;
            config.activity_log.subscribers = vec!["msisdn-15551234567".to_owned()];
        });
        let refused = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(refused.json["cause"], "USER_UNKNOWN");
        let found = entries(&pcf, "msisdn-15551234567").await;
        let listed = steps(&found);
        assert!(
            listed.contains(&"decision  create: refused, USER_UNKNOWN".to_owned()),
            "{listed:#?}"
        );
        assert!(listed.contains(&"out N7  400".to_owned()), "{listed:#?}");
    });
}

#[test]
fn a_session_over_gx_and_a_call_over_rx_are_traced() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = start(|config| {
            config.activity_log.files.directory = folder.path().to_owned();
            config.activity_log.subscribers = vec![format!("{SUPI}..imsi-001010000000009")];
        });
        let pcef = peer("pcef.example", &pcf).await;
        let af = peer("pcscf.example", &pcf).await;
        ask(&pcef, "pcef.example", "pcef;1", CCR_I).await;
        ask(&af, "pcscf.example", "af;1", AAR).await;
        until(&pcf, "Gx", "in", 2).await;
        ask(&pcef, "pcef.example", "pcef;1", CCR_T).await;
        // The answers to RAR and ASR.
        until(&pcf, "Rx", "in", 2).await;
        let found = until(&pcf, "Gx", "in", 3).await;
        let listed = steps(&found).join("\n");
        for expected in [
            "in Gx Credit-Control-Request\n",
            "decision  create: project built-in",
            "write  gx association created\n",
            "out Gx Credit-Control-Answer 2001\n",
            "in Rx AA-Request\n",
            "out Gx Re-Auth-Request\n",
            "in Gx Re-Auth-Answer 2001\n",
            "out Rx AA-Answer 2001\n",
            "write  gx association deleted\n",
            "out Rx Abort-Session-Request\n",
        ] {
            assert!(listed.contains(expected), "{expected:?} in\n{listed}");
        }
        let rar = found.iter().find(|one| one["text"] == "Re-Auth-Request").unwrap();
        assert!(
            rar["body"].as_str().unwrap().contains("Charging-Rule-Install"),
            "{rar}"
        );
    });
}

#[test]
fn an_operator_adds_and_removes_traced_subscribers_and_they_hold_after_a_restart() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let settings = || {
            let mut settings = config(directory.path());
            settings.nf_instance_id = "7d7e4a53-9f36-4f1f-8a8d-80300c6a2e4f".to_owned();
            settings.activity_log.files.directory = directory.path().join("log");
            settings.activity_log.subscribers = vec!["imsi-9".to_owned()];
            settings.activity_log.max_subscribers = 2;
            settings
        };
        let open = || {
            let running = pcf::start(settings()).unwrap();
            let origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
            Pcf {
                running: Some(running),
                origin,
                client: crate::support::client(),
                directory: tempfile::tempdir().unwrap(),
            }
        };
        let mut pcf = open();
        pcf.session(&json!({})).await;
        assert!(entries(&pcf, SUPI).await.is_empty());
        let change = async |pcf: &Pcf, method: &str, subscriber: &str| {
            admin(pcf, method, &format!("/pcf/trace/{subscriber}"), "").await
        };
        assert_eq!(change(&pcf, "PUT", "a%20b").await, 409);
        assert_eq!(change(&pcf, "PUT", SUPI).await, 200);
        // Once more changes nothing, a third one has no room, and the settings are not the operator's.
        assert_eq!(change(&pcf, "PUT", SUPI).await, 200);
        assert_eq!(change(&pcf, "PUT", "imsi-8").await, 409);
        assert_eq!(change(&pcf, "DELETE", "imsi-9").await, 409);
        assert_eq!(change(&pcf, "DELETE", "imsi-8").await, 404);
        pcf.stop();

        let mut pcf = open();
        let (_, list) = page(pcf.running().handle().routes(), "/pcf/trace").await;
        let list: Value = serde_json::from_str(&list).unwrap();
        let expected =
            json!([{"subscriber": "imsi-9", "by": "settings"}, {"subscriber": SUPI, "by": "operator"}]);
        assert_eq!(list, expected);
        pcf.session(&json!({})).await;
        let count = entries(&pcf, SUPI).await.len();
        assert!(count > 0);
        assert_eq!(change(&pcf, "DELETE", SUPI).await, 200);
        pcf.session(&json!({"pduSessionId": 6})).await;
        assert_eq!(entries(&pcf, SUPI).await.len(), count);
        pcf.stop();
    });
}

#[test]
fn a_disk_that_takes_nothing_raises_an_alarm_and_costs_no_session() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        // A file where the directory should be.
        let obstacle = folder.path().join("log");
        std::fs::write(&obstacle, "in the way").unwrap();
        let pcf = start(|config| {
            config.activity_log.files.directory = obstacle.clone();
            config.activity_log.subscribers = vec![SUPI.to_owned()];
        });
        pcf.session(&json!({})).await;
        while pcf.running().handle().alarms().active().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(pcf.running().handle().alarms().active()[0].number, 10561);
        assert!(
            !entries(&pcf, SUPI).await.is_empty(),
            "memory has them all the same"
        );
        assert_eq!(std::fs::read_to_string(&obstacle).unwrap(), "in the way");
    });
}

#[test]
fn policy_events_are_recorded_where_they_are_enabled() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let smf = listener();
        let run = async |enabled: bool| {
            let mut pcf = start(|config| {
                config.policy_events.enabled = enabled;
                config.policy_events.files.directory = folder.path().to_owned();
                config.usage.limits = [("day".to_owned(), limit())].into();
            });
            let uri = format!("{}/smf", smf.root());
            let path = pcf.session(&json!({"notificationUri": uri})).await;
            let af = pcf.post(APP_SESSIONS, &call(&smf.root(), &json!({}))).await;
            let af = path_of(&af);
            let ended = pcf.ask(Method::POST, &format!("{af}/delete"), "", "").await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
            let report = json!({"repPolicyCtrlReqTriggers": ["US_RE"],
                "accuUsageReports": [{"refUmIds": "day", "volUsage": 5_000}]});
            let got = pcf.post(&format!("{path}/update"), &report).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
            let got = pcf
                .ask(Method::POST, &format!("{path}/delete"), "application/json", "{}")
                .await;
            assert_eq!(got.status, StatusCode::NO_CONTENT);
            pcf.stop();
        };
        run(false).await;
        assert!(!folder.path().join("policy-events.jsonl").exists());
        run(true).await;
        let text = std::fs::read_to_string(folder.path().join("policy-events.jsonl")).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(events.first(), Some(&"sessionCreated"));
        assert_eq!(events.last(), Some(&"ruleRemoved"));
        for expected in [
            "ruleInstalled",
            "ruleRemoved",
            "sessionModified",
            "quotaExhausted",
            "sessionEnded",
        ] {
            assert!(events.contains(&expected), "{expected} in {events:?}");
        }
        assert!(
            lines
                .iter()
                .all(|line| line["supi"] == SUPI && line["dnn"] == "internet" && line["kind"] == "sm")
        );
        let quota = lines.iter().find(|line| line["event"] == "quotaExhausted");
        assert_eq!(quota.unwrap()["limit"], "day");
    });
}

fn limit() -> pcf::config::UsageLimit {
    pcf::config::UsageLimit {
        total_volume: Some(settings::ByteSize(1_000)),
        ..pcf::config::UsageLimit::default()
    }
}
