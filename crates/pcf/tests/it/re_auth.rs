//! RARs to PCEFs: sent again when they are not answered, through whatever connection there is, and to end sessions.

use std::time::Duration;

use diameter::PeerConfig;
use diameter::proto::known::application;
use serde_json::{Value, json};
use testpeer::freediameter::{FreeDiameter, Setup};
use testpeer::page;

use crate::databases::Servers;
use crate::diameter::{AAR, CCR_I, CCR_T, STR, ask, peer, peer_at, received};
use crate::pages::admin;
use crate::process::Process;
use crate::support::{Pcf, config, local, start, until};

/// The only session of a PCF, as it is stored.
async fn stored(pcf: &Pcf) -> Value {
    let show = async |path: &str| {
        let (status, text) = page(pcf.running().handle().routes(), path).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let all = show("/pcf/sessions").await;
    show(&format!("/pcf/sessions/{}", all[0]["id"].as_str().unwrap())).await
}

/// Waits until a RAR with the whole decision was taken.
async fn settled(pcf: &Pcf) {
    until(|| pcf.running().count(pcf::Event::GxReAuthRetried) >= 1).await;
    while stored(pcf).await["rooms"]["gx"].get("doubt").is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_rar_that_is_not_taken_is_sent_again_with_the_whole_decision() {
    local(async {
        let pcf = start(|config| {
            config.diameter.retry_pause = settings::Period::from_millis(20);
            config.diameter.attempts = 1_000;
        });
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;

        // UNABLE_TO_COMPLY once: the rules come again, with all else that the PCEF shall have.
        let (took, lost) = ("QoS-Class-Identifier = QCI_1", "Charging-Rule-Remove");
        let whole = "APN-Aggregate-Max-Bitrate-DL = 100000000";
        pgw.service().result.set(5012);
        rx(AAR).await;
        let first = received(&pgw, 1).await;
        assert!(first.contains(took) && !first.contains(whole), "{first}");
        pgw.service().result.set(2001);
        settled(&pcf).await;
        let number = pgw.service().seen.borrow().len();
        let again = received(&pgw, number).await;
        assert!(again.contains(took) && again.contains(whole), "{again}");

        // A removal that was lost is made again too: the PCEF keeps no rule of a call that is over.
        let names = |text: &str| {
            let lines = text.lines().filter(|line| line.contains("Charging-Rule-Name"));
            lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let before = pgw.service().seen.borrow().len();
        pgw.service().result.set(5012);
        rx(STR).await;
        let removal = received(&pgw, before + 1).await;
        assert!(removal.contains(lost), "{removal}");
        let removal_again = received(&pgw, before + 2).await;
        assert!(
            removal_again.contains(lost) && removal_again.contains(whole),
            "{removal_again}"
        );
        for name in names(&removal) {
            assert!(
                names(&removal_again).contains(&name),
                "{name} in\n{removal_again}"
            );
        }
    });
}

#[test]
fn a_pcef_that_takes_no_rar_gets_the_decision_with_its_next_answer() {
    local(async {
        let pcf = start(|config| {
            config.diameter.retry_pause = settings::Period::from_millis(1);
            config.diameter.attempts = 3;
        });
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        pgw.service().result.set(5012);
        ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        received(&pgw, 3).await;
        until(|| pcf.running().count(pcf::Event::GxReAuthGivenUp) == 1).await;
        assert_eq!(pcf.running().count(pcf::Event::GxReAuthRetried), 2);
        let update = "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = 1\nEvent-Trigger = RAT_CHANGE\nRAT-Type = UTRAN";
        let updated = ask(&pgw, "pgw.example.org", "pgw;1;1", update).await;
        assert!(updated.contains("QoS-Class-Identifier = QCI_1"), "{updated}");
    });
}

/// The process is killed while the PCEF has not answered: the next one has the whole decision sent.
#[test]
fn a_rar_that_was_in_flight_when_its_process_was_killed_is_sent_again_by_the_next() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = config(folder.path());
        let address = free_ports::address().unwrap();
        settings.diameter.listen = settings::Listen(vec![address]);
        // Attempts of the first process last longer than it lives.
        settings.diameter.attempts = 2;
        let first = Process::start(&settings);
        let gx = [application::GX];
        let pgw = peer_at("pgw.example.org", address, &gx).await;
        let cscf = peer_at("cscf.example.org", address, &[application::RX]).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        pgw.service().silent.set(true);
        let authorized = ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        assert!(authorized.contains("DIAMETER_SUCCESS"), "{authorized}");
        received(&pgw, 1).await;
        drop((first, pgw, cscf));

        let _second = Process::start(&settings);
        let pgw = peer_at("pgw.example.org", address, &gx).await;
        let again = received(&pgw, 1).await;
        for line in [
            "Re-Auth-Request ",
            "QoS-Class-Identifier = QCI_1",
            "APN-Aggregate-Max-Bitrate-DL = 100000000",
        ] {
            assert!(again.contains(line), "no {line} in\n{again}");
        }
    });
}

#[test]
fn an_operator_has_a_session_ended_by_its_pcef() {
    local(async {
        let pcf = start(|_| {});
        let pgw = peer("pgw.example.org", &pcf).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        let path = format!("/pcf/sessions/{}", stored(&pcf).await["id"].as_str().unwrap());
        assert_eq!(admin(&pcf, "DELETE", &path, "").await, 200);
        let release = received(&pgw, 1).await;
        assert!(
            release.starts_with("Re-Auth-Request ")
                && release.contains("Session-Release-Cause = UNSPECIFIED_REASON"),
            "{release}"
        );
        assert!(
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T)
                .await
                .contains("Result-Code = DIAMETER_SUCCESS")
        );
    });
}

/// The PCEF is connected to one PCF, the AF to another one of the same database: its RAR goes through a relay.
#[test]
fn a_rar_of_another_pcf_of_the_database_goes_through_a_relay() {
    let Some(servers) = Servers::sites(1) else { return };
    local(async {
        let setup = Setup {
            identity: "relay.example",
            realm: "relay.example",
            port: free_ports::port().unwrap(),
            peers: &[],
        };
        let Some(relay) = FreeDiameter::start(setup).await else {
            return;
        };
        let directory = tempfile::tempdir().unwrap();
        let store = |instance: &str| {
            let own = config(&directory.path().join(instance));
            let mut store = servers.config("site-1", &[1]);
            store.embedded = own.store.embedded;
            store
        };
        let one = start(|config| config.store = store("one"));
        let other = start(|config| {
            config.store = store("other");
            config.diameter.timeout = settings::Period::from_secs(20);
            config.diameter.retry_pause = settings::Period::from_millis(50);
            config.diameter.attempts = 100;
            config.diameter.max_retry_pause = settings::Period::from_millis(200);
            config.diameter.host = "pcf2.example".to_owned();
            let peer = json!({"host": "relay.example", "addresses": [relay.address().to_string()]});
            config.diameter.peers = vec![serde_json::from_value(peer).unwrap()];
        });
        let pgw = peer("pgw.example", &one).await;
        pgw.node()
            .add_peer(PeerConfig::connect("relay.example", [relay.address()]))
            .unwrap();
        pgw.available("relay.example").await;
        ask(&pgw, "pgw.example", "pgw;1;1", CCR_I).await;
        let made = other
            .post(
                crate::authorization::APP_SESSIONS,
                &crate::authorization::call("http://127.0.0.1:9", &json!({"dnn": "ims"})),
            )
            .await;
        crate::support::path_of(&made);
        let pushed = received(&pgw, 1).await;
        assert!(
            pushed.contains("QoS-Class-Identifier = QCI_1")
                && pushed.contains("Origin-Host = \"pcf2.example\"")
                && pushed.contains("Route-Record = \"pcf2.example\""),
            "{pushed}"
        );
    });
}

#[test]
fn requests_that_begin_sessions_are_discarded_by_priority_under_load() {
    local(async {
        let pcf = start(|config| {
            config.overload.enabled = true;
            let levels = json!([{"level": {"name": "any", "set": "1%", "clear": "0%", "abatement": "1h"}, "discard": "100%"}]);
            config.overload.levels = serde_json::from_value(levels).unwrap();
        });
        let pgw = peer("pgw.example.org", &pcf).await;
        let create = async |number: u64, priority: &str| {
            let session = format!("pgw;1;{number}");
            let request = CCR_I.replacen('\n', &format!("\nDRMP = {priority}\n"), 1);
            ask(&pgw, "pgw.example.org", &session, &request).await
        };
        let mut number = 0;
        let refused = loop {
            number += 1;
            let answer = create(number, "PRIORITY_12").await;
            if !answer.contains("Result-Code = DIAMETER_SUCCESS") {
                break answer;
            }
        };
        assert!(refused.contains("Result-Code = DIAMETER_TOO_BUSY"), "{refused}");
        // The most important ones are served, and so is a session that has begun.
        assert!(
            create(number, "PRIORITY_0")
                .await
                .contains("Result-Code = DIAMETER_SUCCESS")
        );
        assert!(
            ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T)
                .await
                .contains("Result-Code = DIAMETER_SUCCESS")
        );
        assert!(pcf.running().count(pcf::Event::Discarded) >= 1);
    });
}
