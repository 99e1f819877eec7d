//! The audit: associations that their consumers have lost, or whose consumers are lost.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use pcf::Event;
use sbi::problem::Problem;
use serde_json::{Value, json};
use settings::{Percent, Period};
use testpeer::page;
use testpeer::sbi::{Seen, Server, no_content};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::diameter::{CCR_I, CCR_T, ask, peer, received};
use crate::pages::admin;
use crate::policies::{AM, UE, association};
use crate::support::{Pcf, local, path_of, start};

const SMF: &str = "6f1c7a52-0000-4000-8000-000000000007";

fn audited(config: &mut pcf::Config) {
    config.audit.walk = store::AuditConfig {
        enabled: true,
        older_than: Period::from_millis(1),
        rate: 10_000,
        pause: Period::from_millis(10),
    };
    config.audit.remember = Period::from_millis(1);
    config.audit.timeout = Period::from_secs(60);
}

async fn until(pcf: &Pcf, event: Event, count: u64) {
    while pcf.running().count(event) < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for as many walks as see this many associations.
async fn audits(pcf: &Pcf, count: u64) {
    until(pcf, Event::Audited, pcf.running().count(Event::Audited) + count).await;
}

fn not_found(_: &Seen) -> sbi::Response {
    Problem::with_cause(StatusCode::NOT_FOUND, "CONTEXT_NOT_FOUND").into_response()
}

async fn exists(pcf: &Pcf, path: &str) -> bool {
    pcf.get(path).await.status == StatusCode::OK
}

#[test]
fn an_association_that_its_consumer_does_not_know_is_removed_with_all_that_belongs_to_it() {
    local(async {
        let (here, gone, af) = (listener(), listener(), listener());
        let pcf = start(audited);
        let at = |server: &Server| json!({"notificationUri": format!("{}/n", server.root())});
        let kept = pcf
            .session(&json!({"notificationUri": at(&here)["notificationUri"], "ipv4Address": "10.0.0.2", "pduSessionId": 6}))
            .await;
        let lost = [
            pcf.session(&at(&gone)).await,
            path_of(&pcf.post(AM, &association(&at(&gone))).await),
            path_of(&pcf.post(UE, &association(&at(&gone))).await),
        ];
        pcf.post(APP_SESSIONS, &call(&af.root(), &json!({}))).await;
        audits(&pcf, 10).await;
        assert!(exists(&pcf, &lost[0]).await);
        assert_eq!(pcf.running().count(Event::AuditUnknown), 0);

        gone.answers(not_found);
        until(&pcf, Event::AuditUnknown, 3).await;
        for path in &lost {
            assert!(!exists(&pcf, path).await, "{path}");
        }
        // The AF session has ended with that of the UE.
        let (path, body) = notification(&af, 1).await;
        assert_eq!(
            (path.as_str(), &body["termCause"]),
            ("/af/terminate", &json!("PDU_SESSION_TERMINATION"))
        );
        audits(&pcf, 2).await;
        assert!(exists(&pcf, &kept).await);
        assert!(pcf.running().count(Event::AuditConfirmed) > 0);

        // The question is a notification that changes nothing.
        let asked = here.seen();
        assert_eq!(
            (&asked[0].method, asked[0].uri().path()),
            (&Method::POST, "/n/update")
        );
        assert_eq!(
            asked[0].header("3gpp-sbi-callback"),
            "Npcf_SMPolicyControl_SmPolicyUpdateNotification"
        );
        let body = asked[0].json();
        crate::judge::is(crate::judge::SM, "SmPolicyNotification", &body);
        assert_eq!(body["smPolicyDecision"], json!({}));
        assert!(body["resourceUri"].as_str().unwrap().ends_with(&kept));
        // Those of AMFs have the resource alone.
        let others = gone.seen();
        let is_of = |seen: &&Seen, path: &str| seen.json()["resourceUri"].as_str().unwrap().ends_with(path);
        for path in &lost[1..] {
            let asked = others.iter().rfind(|seen| is_of(seen, path)).unwrap();
            assert_eq!(asked.json().as_object().unwrap().len(), 1, "{}", asked.json());
        }
    });
}

/// An NRF that knows these NF instances.
fn nrf(known: &Rc<Cell<bool>>) -> Server {
    let known = known.clone();
    Server::start(move |seen| match (seen.method.as_str(), seen.uri().path()) {
        ("GET", path) if path.ends_with(SMF) => match known.get() {
            true => sbi::json::response(StatusCode::OK, &json!({"nfInstanceId": SMF, "nfType": "SMF"})),
            false => not_found(seen),
        },
        ("PUT", _) => sbi::json::response(StatusCode::CREATED, &seen.json()),
        _ => no_content(),
    })
}

#[test]
fn a_consumer_that_does_not_answer_loses_its_association_when_the_nrf_does_not_know_it() {
    local(async {
        let registered = Rc::new(Cell::new(true));
        let nrf = nrf(&registered);
        let root = nrf.root();
        let pcf = start(|config| {
            audited(config);
            config.nrf.api_roots = vec![root];
        });
        // No server is at port 9.
        let named = pcf.session(&json!({"smfId": SMF})).await;
        let unnamed = pcf
            .session(&json!({"pduSessionId": 6, "ipv4Address": "10.0.0.2"}))
            .await;
        until(&pcf, Event::AuditUnanswered, 20).await;
        assert_eq!(pcf.running().count(Event::AuditLost), 0);
        assert!(exists(&pcf, &named).await);

        registered.set(false);
        until(&pcf, Event::AuditLost, 1).await;
        assert!(!exists(&pcf, &named).await);
        audits(&pcf, 10).await;
        assert!(exists(&pcf, &unnamed).await);
        assert_eq!(pcf.running().count(Event::AuditExpired), 0);
    });
}

#[test]
fn a_consumer_that_never_answers_loses_its_association_after_the_lifetime() {
    local(async {
        let here = listener();
        let pcf = start(|config| {
            audited(config);
            config.audit.lifetime = Period::from_millis(200);
        });
        let silent = pcf.session(&json!({})).await;
        let uri = format!("{}/n", here.root());
        let answers = pcf
            .session(&json!({"notificationUri": uri, "pduSessionId": 6, "ipv4Address": "10.0.0.2"}))
            .await;
        until(&pcf, Event::AuditExpired, 1).await;
        assert!(!exists(&pcf, &silent).await);
        audits(&pcf, 10).await;
        assert!(exists(&pcf, &answers).await);
    });
}

#[test]
fn no_more_than_a_share_goes_without_the_word_of_an_operator() {
    const SESSIONS: u64 = 20;
    local(async {
        let smf = listener();
        let pcf = start(|config| {
            audited(config);
            config.audit.removal_rate = 10_000;
            config.audit.most_removed = Percent::new(25.0);
            config.audit.free_removals = 2;
        });
        let uri = format!("{}/n", smf.root());
        let mut paths = BTreeSet::new();
        for number in 0..SESSIONS {
            let more = json!({"notificationUri": uri, "ipv4Address": format!("10.0.1.{number}"), "supi": format!("imsi-00101{number:010}")});
            paths.insert(pcf.session(&more).await);
        }
        audits(&pcf, SESSIONS).await;
        smf.answers(not_found);
        until(&pcf, Event::AuditBraked, 50).await;
        // The last removal may still be at work when others meet the brake, and one of what has changed meanwhile is none.
        let shown = loop {
            let shown = page(pcf.running().handle().routes(), "/pcf/audit").await.1;
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let removed = pcf.running().count(Event::AuditUnknown);
            if shown[0]["removed"] == removed {
                assert!((1..=SESSIONS / 4).contains(&removed), "{removed}");
                break shown;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(
            (&shown[0]["table"], &shown[0]["braked"]),
            (&json!("pcf_association"), &json!(true))
        );
        let alarms = pcf.running().handle().alarms();
        assert!(format!("{:?}", alarms.active()).contains("PCF Audit Braked"));
        assert_eq!(admin(&pcf, "PUT", "/pcf/audit", "\"RELEASED\"").await, 200);
        until(&pcf, Event::AuditUnknown, SESSIONS).await;
        for path in &paths {
            assert!(!exists(&pcf, path).await, "{path}");
        }
        assert!(alarms.active().is_empty());
    });
}

#[test]
fn a_request_of_the_consumer_begins_the_count_again() {
    local(async {
        let registered = Rc::new(Cell::new(false));
        let nrf = nrf(&registered);
        let root = nrf.root();
        let pcf = start(|config| {
            audited(config);
            config.nrf.api_roots = vec![root];
            config.audit.attempts = u32::MAX;
        });
        let path = pcf.session(&json!({"smfId": SMF})).await;
        // The count and since when; none: the audit has noted nothing.
        let shown = || async {
            let id = path.rsplit('/').next().unwrap();
            let text = page(pcf.running().handle().routes(), &format!("/pcf/sessions/{id}"))
                .await
                .1;
            let value: Value = serde_json::from_str(&text).unwrap();
            let noted = &value["rooms"]["audit"];
            (
                noted["lost"].as_u64().unwrap_or_default(),
                noted["since"].as_u64().unwrap_or_default(),
            )
        };
        while shown().await.0 < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (_, since) = shown().await;
        let update = json!({"ratType": "EUTRA"});
        assert_eq!(
            pcf.post(&format!("{path}/update"), &update).await.status,
            StatusCode::OK
        );
        while shown().await.1 <= since {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_session_that_its_pcef_does_not_know_is_removed() {
    local(async {
        let pcf = start(audited);
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |session: &str, text: &str| ask(&pgw, "pgw.example.org", session, text).await;
        gx("pgw;1;1", CCR_I).await;
        until(&pcf, Event::AuditConfirmed, 3).await;
        let asked = received(&pgw, 1).await;
        assert!(
            asked.starts_with("Re-Auth-Request") && asked.contains("pgw;1;1"),
            "{asked}"
        );
        assert!(
            !asked.contains("Charging-Rule") && !asked.contains("Event-Trigger"),
            "{asked}"
        );
        // Another error says nothing of the session.
        pgw.service().result.set(5012);
        let confirmed = pcf.running().count(Event::AuditConfirmed);
        until(&pcf, Event::AuditConfirmed, confirmed + 3).await;
        pgw.service().result.set(5002);
        until(&pcf, Event::AuditUnknown, 1).await;
        let ended = gx("pgw;1;1", CCR_T).await;
        assert!(ended.contains("DIAMETER_UNKNOWN_SESSION_ID"), "{ended}");
    });
}
