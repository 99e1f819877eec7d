//! Sd: ADC rules at a TDF, what it reports, how its sessions begin, fail, outlive a restart and end.

use std::path::Path;
use std::time::Duration;

use diameter::endpoint::Endpoint;
use diameter::proto::known::application;
use pcf::config::{Sd, SdSessions, Tdf, UsageLevel};
use pcf::{Config, Event};
use serde_json::{Value, json};
use testpeer::page;

use crate::diameter::{CCR_I, CCR_T, Peer, ask, ask_over, peer, peer_of, received};
use crate::support::{Pcf, config, local, start, until};

const TDF: &str = "tdf.example.org";
const PGW: &str = "pgw.example.org";
const FULL: &str = "APN-Aggregate-Max-Bitrate-UL = 50000000";
const SLOW: &str = "APN-Aggregate-Max-Bitrate-UL = 1000000";

/// `video` at the TDF, throttled once it was seen; a rule that the TDF has; the PCEF alone where no TDF is there.
pub const PROJECT: &str = "name: test
service: sm
blocks:
  - triggers: [APP_STA, APP_STO]
  - adcRule: {adcRuleId: video, appId: video, precedence: 10, refTcData: [gate], refQosData: [tdf]}
  - adcRule: {adcRuleId: predefined}
  - trafficControlData: {tcId: gate, flowStatus: ENABLED}
  - qosData: {qosId: tdf, maxbrUl: 5 Mbps, maxbrDl: 6 Mbps}
  - if: {$any: [$session.applications.video.started, {$eq: [$session.tdf, failed]}]}
    then:
      - sessionRule: {sessRuleId: slow, authSessAmbr: {uplink: 1 Mbps, downlink: 1 Mbps}}
      - adcRule: {adcRuleId: games, appId: games}
    else:
      - sessionRule: {sessRuleId: full, authSessAmbr: {uplink: 50 Mbps, downlink: 50 Mbps}}
";

fn settings(config: &mut Config, folder: &Path) {
    config.policy.sm = Some(folder.to_owned());
    config.sd = Sd {
        enabled: true,
        tdf: Some(Tdf {
            host: TDF.to_owned(),
            realm: String::new(),
        }),
        retry_pause: settings::Period::from_millis(20),
        ..Sd::default()
    };
}

fn with(folder: &Path, project: &str, change: impl FnOnce(&mut Config)) -> Pcf {
    std::fs::write(folder.join("project.yaml"), project).unwrap();
    start(|config| {
        settings(config, folder);
        change(config);
    })
}

async fn tdf(host: &str, pcf: &Pcf) -> Endpoint<Peer> {
    peer_of(host, pcf, &[application::SD]).await
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
}

/// The Session-Id of a request of the PCF.
async fn session_of(tdf: &Endpoint<Peer>, number: usize) -> String {
    let text = received(tdf, number).await;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Session-Id = \""));
    line.unwrap().trim_end_matches('"').to_owned()
}

fn report(number: u32, event: &str) -> String {
    format!(
        "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\nEvent-Trigger = {event}\n\
         Application-Detection-Information = {{ TDF-Application-Identifier = \"video\" \
         TDF-Application-Instance-Identifier = 0x31 \
         Flow-Information = {{ Flow-Description = \"permit out 6 from 192.0.2.7 443 to 10.0.0.1 40000\" }} }}"
    )
}

#[test]
fn a_tdf_gets_adc_rules_and_what_it_detects_decides_over_the_session() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), PROJECT, |_| {});
        let (tdf, pgw) = (tdf(TDF, &pcf).await, peer(PGW, &pcf).await);
        let gx = async |text: &str| ask(&pgw, PGW, "pgw;1;1", text).await;
        let begun = gx(CCR_I).await;
        has(&begun, &[FULL]);
        // What the TDF detects is not for the PCEF.
        assert!(
            !begun.contains("APPLICATION_START") && !begun.contains("Charging-Rule"),
            "{begun}"
        );
        let opened = received(&tdf, 1).await;
        has(
            &opened,
            &[
                "TDF-Session-Request ",
                "Destination-Host = \"tdf.example.org\"",
                "Subscription-Id-Data = \"001010000000001\"",
                "Framed-IP-Address = 0x0a000001",
                "Called-Station-Id = \"ims\"",
                "ADC-Rule-Install = {",
                "ADC-Rule-Definition = {",
                "Flow-Status = ENABLED",
                "Max-Requested-Bandwidth-UL = 5000000",
                "Precedence = 10",
                "Event-Trigger = APPLICATION_START",
                "Event-Trigger = APPLICATION_STOP",
            ],
        );
        assert_eq!(opened.matches("ADC-Rule-Name = ").count(), 2, "{opened}");
        let session = session_of(&tdf, 1).await;
        let sd = async |text: &str| ask_over(&tdf, application::SD, (TDF, &session), text).await;

        // A start reaches the policy: more rules in the answer, less bandwidth at the PCEF.
        let answer = sd(&report(1, "APPLICATION_START")).await;
        has(&answer, &["DIAMETER_SUCCESS", "ADC-Rule-Install = {"]);
        assert_eq!(answer.matches("ADC-Rule-Name = ").count(), 1, "{answer}");
        has(&received(&pgw, 1).await, &[SLOW]);
        // Sent again: all of the rules, and nothing new at the PCEF.
        let again = sd(&report(1, "APPLICATION_START")).await;
        assert_eq!(again.matches("ADC-Rule-Name = ").count(), 3, "{again}");
        let stopped = sd(&report(2, "APPLICATION_STOP")).await;
        has(&stopped, &["ADC-Rule-Remove = {"]);
        has(&received(&pgw, 2).await, &[FULL]);

        // The end of the session at the PCEF is that at the TDF.
        gx(CCR_T).await;
        let released = received(&tdf, 2).await;
        has(
            &released,
            &["Re-Auth-Request ", "Session-Release-Cause = UNSPECIFIED_REASON"],
        );
        has(&sd(CCR_T).await, &["DIAMETER_SUCCESS", "TERMINATION_REQUEST"]);
        has(&sd(CCR_T).await, &["DIAMETER_UNKNOWN_SESSION_ID"]);
        // Unsolicited reporting is refused.
        let begins = "CCR\nCC-Request-Type = INITIAL_REQUEST\nCC-Request-Number = 0";
        let begins = ask_over(&tdf, application::SD, (TDF, "tdf;1;1"), begins).await;
        has(&begins, &["DIAMETER_UNABLE_TO_COMPLY"]);
        assert_eq!(
            (
                tdf.service().seen.borrow().len(),
                pgw.service().seen.borrow().len()
            ),
            (2, 2)
        );
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (
                count(Event::SdOpened),
                count(Event::SdReported),
                count(Event::SdEnded),
                count(Event::SdFailed)
            ),
            (1, 3, 1, 0)
        );
    });
}

/// A change that the PCEF causes reaches the TDF by a RAR; one that is not taken comes again with all rules.
#[test]
fn a_decision_that_changes_reaches_the_tdf_and_is_sent_again_until_it_is_taken() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let project = "name: test\nservice: sm\nblocks:\n  - adcRule: {adcRuleId: video, appId: video}\n  \
                       - if: {$eq: [$request.ratType, UTRA]}\n    then:\n      - adcRule: {adcRuleId: games, appId: games}\n";
        let pcf = with(folder.path(), project, |config| config.sd.attempts = 1_000);
        let (tdf, pgw) = (tdf(TDF, &pcf).await, peer(PGW, &pcf).await);
        ask(&pgw, PGW, "pgw;1;1", CCR_I).await;
        has(&received(&tdf, 1).await, &["TDF-Session-Request "]);
        tdf.service().result.set(5012);
        let update = |number: u32, rat: &str| {
            format!(
                "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\nEvent-Trigger = RAT_CHANGE\nRAT-Type = {rat}"
            )
        };
        ask(&pgw, PGW, "pgw;1;1", &update(1, "UTRAN")).await;
        let changed = received(&tdf, 2).await;
        has(&changed, &["Re-Auth-Request ", "ADC-Rule-Install = {"]);
        assert_eq!(changed.matches("ADC-Rule-Name = ").count(), 1, "{changed}");
        let again = received(&tdf, 3).await;
        assert_eq!(again.matches("ADC-Rule-Name = ").count(), 2, "{again}");
        tdf.service().result.set(2001);
        let seen = || tdf.service().seen.borrow().len();
        let settled = async || loop {
            let room = stored(&pcf).await;
            if room.get("inFlight").is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        settled().await;
        let before = seen();
        ask(&pgw, PGW, "pgw;1;1", &update(2, "EUTRAN")).await;
        let removed = received(&tdf, before + 1).await;
        has(&removed, &["ADC-Rule-Remove = {"]);
        assert!(!removed.contains("ADC-Rule-Install"), "{removed}");

        // A TDF that has lost the session gets another one at the next change.
        settled().await;
        tdf.service().result.set(5002);
        ask(&pgw, PGW, "pgw;1;1", &update(3, "UTRAN")).await;
        until(|| pcf.running().count(Event::SdLost) == 1).await;
        tdf.service().result.set(2001);
        // The loss is counted before the next session begins.
        let first = session_of(&tdf, 1).await;
        while stored(&pcf).await["state"] != "open" || session_of(&tdf, seen()).await == first {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

/// The session of a TDF of the only session of a PCF, as it is stored.
async fn stored(pcf: &Pcf) -> Value {
    let show = async |path: &str| {
        let (_, text) = page(pcf.running().handle().routes(), path).await;
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let all = show("/pcf/sessions").await;
    let id = all[0]["id"].as_str().unwrap();
    show(&format!("/pcf/sessions/{id}")).await["rooms"]["sd"].clone()
}

#[test]
fn a_tdf_that_refuses_leaves_the_policy_to_decide_without_it() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), PROJECT, |config| config.sd.attempts = 2);
        let (tdf, pgw) = (tdf(TDF, &pcf).await, peer(PGW, &pcf).await);
        tdf.service().result.set(5012);
        has(&ask(&pgw, PGW, "pgw;1;1", CCR_I).await, &[FULL]);
        has(&received(&pgw, 1).await, &[SLOW]);
        assert_eq!(tdf.service().seen.borrow().len(), 2);
        let count = |event| pcf.running().count(event);
        assert_eq!((count(Event::SdFailed), count(Event::SdRetried)), (1, 1));
        // There is nothing to end at the TDF.
        ask(&pgw, PGW, "pgw;1;1", CCR_T).await;
        assert_eq!(tdf.service().seen.borrow().len(), 2);
    });
}

#[test]
fn a_request_to_a_tdf_that_was_in_flight_is_taken_up_after_a_restart() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut pcf = with(folder.path(), PROJECT, |config| config.sd.attempts = 1_000);
        let pgw = peer(PGW, &pcf).await;
        // No TDF is connected.
        ask(&pgw, PGW, "pgw;1;1", CCR_I).await;
        pcf.stop();
        drop(pgw);
        let mut again = config(pcf.directory.path());
        settings(&mut again, folder.path());
        again.sd.attempts = 1_000;
        pcf.running = Some(pcf::start(again).unwrap());
        let tdf = tdf(TDF, &pcf).await;
        has(
            &received(&tdf, 1).await,
            &["TDF-Session-Request ", "ADC-Rule-Install = {"],
        );
        while stored(&pcf).await["state"] != "open" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn usage_at_a_tdf_draws_a_quota_down_and_a_pcef_may_name_its_tdf() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let project = "name: test\nservice: sm\nblocks:\n  - adcRule: {adcRuleId: video, appId: video, refUmData: [month]}\n  \
                       - usageMonitoringData: {umId: month}\n";
        let other = "tdf2.example.org";
        let pcf = with(folder.path(), project, |config| {
            config.sd.sessions = vec![SdSessions::Gx, SdSessions::N7];
            config.usage.portion = settings::ByteSize(4_000);
            let limit = json!({"totalVolume": "10000", "reset": "monthly", "keys": ["month"]});
            let mut limit: pcf::config::UsageLimit = serde_json::from_value(limit).unwrap();
            limit.level = UsageLevel::Service;
            config.usage.limits.insert("month".to_owned(), limit);
            let apn = Tdf {
                host: TDF.to_owned(),
                realm: String::new(),
            };
            config.sd.apns.insert("internet".to_owned(), apn);
        });
        let (ours, named) = (tdf(TDF, &pcf).await, tdf(other, &pcf).await);
        let pgw = peer(PGW, &pcf).await;
        let initial = format!(
            "{CCR_I}\nTDF-Information = {{ TDF-Destination-Realm = \"example.org\" TDF-Destination-Host = \"{other}\" }}"
        );
        ask(&pgw, PGW, "pgw;1;1", &initial).await;
        let opened = received(&named, 1).await;
        has(
            &opened,
            &[
                "Usage-Monitoring-Level = ADC_RULE_LEVEL",
                "CC-Total-Octets = 4000",
                "Event-Trigger = USAGE_REPORT",
            ],
        );
        let session = session_of(&named, 1).await;
        let used = |kind: &str, number: u32, octets: u32| {
            let cause = match kind {
                "TERMINATION_REQUEST" => "",
                _ => "Event-Trigger = USAGE_REPORT\n",
            };
            format!(
                "CCR\nCC-Request-Type = {kind}\nCC-Request-Number = {number}\n{cause}Usage-Monitoring-Information = {{\n\
                 Monitoring-Key = \"month\"\nUsed-Service-Unit = {{ CC-Total-Octets = {octets} }}\n}}"
            )
        };
        let sd = async |text: &str| ask_over(&named, application::SD, (other, &session), text).await;
        has(
            &sd(&used("UPDATE_REQUEST", 1, 4_000)).await,
            &["CC-Total-Octets = 4000"],
        );
        sd(&used("UPDATE_REQUEST", 1, 4_000)).await;
        ask(&pgw, PGW, "pgw;1;1", CCR_T).await;
        has(&received(&named, 2).await, &["Session-Release-Cause"]);
        // The last usage comes after the session has ended.
        sd(&used("TERMINATION_REQUEST", 2, 500)).await;
        let (_, text) = page(pcf.running().handle().routes(), "/pcf/usage/imsi-001010000000001").await;
        let quotas: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(quotas["month"]["used"]["totalVolume"], 4_500, "{quotas}");

        // A session of an SMF has the TDF of its DNN.
        let path = pcf.session(&json!({})).await;
        has(&received(&ours, 1).await, &["TDF-Session-Request "]);
        let policy = pcf.get(&path).await.json;
        assert!(policy["policy"].get("adcRules").is_none(), "{policy}");
    });
}
