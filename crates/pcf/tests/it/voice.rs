//! What ends a voice call, and what does not.

use sbi::problem::Problem;
use serde_json::json;
use testpeer::sbi::Server;

use crate::diameter::{AAR, CCR_I, CCR_T, Peer, STR, ask, peer, received};
use crate::support::{Pcf, local, start};
use diameter::endpoint::Endpoint;

const ACTIONS: &str = "Specific-Action = INDICATION_OF_LOSS_OF_BEARER\nSpecific-Action = INDICATION_OF_RECOVERY_OF_BEARER\n\
    Specific-Action = INDICATION_OF_FAILED_RESOURCES_ALLOCATION\nSpecific-Action = INDICATION_OF_OUT_OF_CREDIT";

/// A call over Gx and Rx: PCEF, AF, the names of its rules.
async fn call(pcf: &Pcf) -> (Endpoint<Peer>, Endpoint<Peer>, Vec<String>) {
    let (pgw, cscf) = (
        peer("pgw.example.org", pcf).await,
        peer("cscf.example.org", pcf).await,
    );
    ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
    let begun = ask(
        &cscf,
        "cscf.example.org",
        "cscf;1;1",
        &format!("{AAR}\n{ACTIONS}"),
    )
    .await;
    assert!(begun.contains("Result-Code = DIAMETER_SUCCESS"), "{begun}");
    let installed = received(&pgw, 1).await;
    let names = installed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Charging-Rule-Name = "));
    let rules: Vec<String> = names.map(str::to_owned).collect();
    assert_eq!(rules.len(), 2, "{installed}");
    (pgw, cscf, rules)
}

/// A CCR-U that reports all rules of a call.
async fn report(pgw: &Endpoint<Peer>, number: u32, rules: &[String], event: &str, more: &str) -> String {
    let names: Vec<String> = rules
        .iter()
        .map(|rule| format!("Charging-Rule-Name = {rule}"))
        .collect();
    let text = format!(
        "CCR\nCC-Request-Type = UPDATE_REQUEST\nCC-Request-Number = {number}\nEvent-Trigger = {event}\n\
         Charging-Rule-Report = {{ {} {more} }}",
        names.join(" ")
    );
    let answer = ask(pgw, "pgw.example.org", "pgw;1;1", &text).await;
    assert!(answer.contains("Result-Code = DIAMETER_SUCCESS"), "{answer}");
    answer
}

#[test]
fn a_radio_gap_ends_no_call() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf, rules) = call(&pcf).await;
        let answer = report(
            &pgw,
            1,
            &rules,
            "LOSS_OF_BEARER",
            "PCC-Rule-Status = TEMPORARILY_INACTIVE",
        )
        .await;
        assert!(!answer.contains("Charging-Rule"), "the rules stay\n{answer}");
        let lost = received(&cscf, 1).await;
        let actions = |text: &str| text.matches("Specific-Action = ").count();
        assert!(
            lost.starts_with("Re-Auth-Request")
                && lost.contains("INDICATION_OF_LOSS_OF_BEARER")
                && actions(&lost) == 1,
            "{lost}"
        );
        let answer = report(&pgw, 2, &rules, "RECOVERY_OF_BEARER", "PCC-Rule-Status = ACTIVE").await;
        assert!(!answer.contains("Charging-Rule"), "{answer}");
        let back = received(&cscf, 2).await;
        assert!(
            back.starts_with("Re-Auth-Request")
                && back.contains("INDICATION_OF_RECOVERY_OF_BEARER")
                && actions(&back) == 1,
            "{back}"
        );
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 0);
    });
}

#[test]
fn a_handover_to_the_circuit_switched_domain_has_its_cause() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf, rules) = call(&pcf).await;
        let failed = "PCC-Rule-Status = INACTIVE Rule-Failure-Code = PS_TO_CS_HANDOVER";
        report(&pgw, 1, &rules, "LOSS_OF_BEARER", failed).await;
        received(&cscf, 1).await;
        let aborted = received(&cscf, 2).await;
        assert!(
            aborted.starts_with("Abort-Session-Request")
                && aborted.contains("Abort-Cause = PS_TO_CS_HANDOVER"),
            "{aborted}"
        );
        // The AF has not answered by an STR yet: it is not asked again, and its STR succeeds.
        let ended = ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
        assert!(ended.contains("Result-Code = DIAMETER_SUCCESS"), "{ended}");
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 1);
        let ended = ask(&cscf, "cscf.example.org", "cscf;1;1", STR).await;
        assert!(ended.contains("Result-Code = DIAMETER_SUCCESS"), "{ended}");
    });
}

#[test]
fn an_af_that_goes_on_after_a_failure_is_asked_again_at_the_end() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf, rules) = call(&pcf).await;
        let failed = "PCC-Rule-Status = INACTIVE Rule-Failure-Code = RESOURCE_ALLOCATION_FAILURE";
        report(&pgw, 1, &rules, "LOSS_OF_BEARER", failed).await;
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 1);
        let again = ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        assert!(again.contains("Result-Code = DIAMETER_SUCCESS"), "{again}");
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_T).await;
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 2);
    });
}

#[test]
fn a_handover_that_ends_the_pdu_session_has_its_cause() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({"dnn": "ims"})).await;
        let cscf = peer("cscf.example.org", &pcf).await;
        ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        let end = json!({"pduSessRelCause": "PS_TO_CS_HO"});
        pcf.post(&format!("{path}/delete"), &end).await;
        let aborted = received(&cscf, 1).await;
        assert!(
            aborted.starts_with("Abort-Session-Request")
                && aborted.contains("Abort-Cause = PS_TO_CS_HANDOVER"),
            "{aborted}"
        );
    });
}

#[test]
fn a_call_that_waits_for_credit_stands() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf, rules) = call(&pcf).await;
        let units = "PCC-Rule-Status = INACTIVE Final-Unit-Indication = { Final-Unit-Action = TERMINATE }";
        let answer = report(&pgw, 1, &rules, "OUT_OF_CREDIT", units).await;
        assert!(!answer.contains("Charging-Rule-Remove"), "{answer}");
        let notified = received(&cscf, 1).await;
        assert!(
            notified.starts_with("Re-Auth-Request")
                && notified.contains("INDICATION_OF_OUT_OF_CREDIT")
                && !notified.contains("FAILED_RESOURCES"),
            "{notified}"
        );
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 0);
    });
}

#[test]
fn an_af_learns_that_its_rules_are_not_in_effect() {
    local(async {
        let pcf = start(|config| {
            config.diameter.retry_pause = settings::Period::from_millis(1);
            config.diameter.attempts = 2;
            config.notifications.attempts = 2;
            config.notifications.retry_pause = settings::Period::from_millis(1);
        });
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let aar = format!("{AAR}\n{ACTIONS}");
        // The PCEF refuses each RAR, and the SMF has no server.
        pgw.service().result.set(5012);
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        pcf.session(&json!({"dnn": "ims", "ipv4Address": "10.0.0.2"}))
            .await;
        for (number, address) in [(1, "0x0a000001"), (2, "0x0a000002")] {
            let session = format!("cscf;1;{number}");
            let aar = aar.replace("0x0a000001", address);
            let begun = ask(&cscf, "cscf.example.org", &session, &aar).await;
            assert!(begun.contains("Result-Code = DIAMETER_SUCCESS"), "{begun}");
            let failed = received(&cscf, number).await;
            assert!(
                failed.contains(&session) && failed.contains("INDICATION_OF_FAILED_RESOURCES_ALLOCATION"),
                "{failed}"
            );
        }
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 0);
    });
}

#[test]
fn a_session_ends_that_its_smf_does_not_know() {
    local(async {
        let pcf = start(|_| {});
        let smf = Server::start(|_| Problem::of_status(http::StatusCode::NOT_FOUND).into_response());
        let path = pcf
            .session(&json!({"dnn": "ims", "notificationUri": smf.root()}))
            .await;
        let cscf = peer("cscf.example.org", &pcf).await;
        ask(&cscf, "cscf.example.org", "cscf;1;1", AAR).await;
        let aborted = received(&cscf, 1).await;
        assert!(aborted.starts_with("Abort-Session-Request"), "{aborted}");
        assert_eq!(pcf.get(&path).await.status, 404);
        assert_eq!(pcf.running().count(pcf::Event::SmLost), 1);
    });
}
