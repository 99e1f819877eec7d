//! Call models of the PCF in small doses: our own PCF, with a real NRF and BSF beside it and simulated UDR and CHF.

use lab::run::{Options, Rate};

use crate::bsf::{options, run};
use crate::program;

#[test]
fn our_pcf_serves_sessions_with_the_data_of_their_subscribers() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        sessions: Some(200),
        rate: Rate::Tps(60.0),
        ..options(&folder)
    };
    let (report, failed) = run("policy/pcf-30k-binding", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    for name in ["smCreate", "smUpdate", "smDelete"] {
        let one = report.operations.iter().find(|one| one.name == name);
        assert!(
            one.is_some_and(|one| one.count > 3 && one.errors == 0),
            "{name}: {one:?}"
        );
    }
}

/// The transactions of the guide are those in and those out: both are counted, each at its receiver.
#[test]
fn our_pcf_serves_amfs_with_projects_of_high_complexity() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        sessions: Some(100),
        rate: Rate::Tps(40.0),
        ..options(&folder)
    };
    let (report, failed) = run("policy/am-ue-75k", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    for name in ["amCreate", "amDelete", "ueCreate", "ueDelete"] {
        let one = report.operations.iter().find(|one| one.name == name);
        assert!(
            one.is_some_and(|one| one.count > 3 && one.errors == 0),
            "{name}: {one:?}"
        );
    }
    let egress = report.egress.unwrap();
    let out = |name: &str| {
        egress
            .receivers
            .iter()
            .find(|(one, _)| one == name)
            .map(|(_, rate)| *rate)
    };
    assert!(out("UDR").is_some_and(|rate| rate > 1.0), "{egress:?}");
    assert!(out("AMF and SMF").is_some() && out("NRF").is_some(), "{egress:?}");
    assert!(
        egress.cpu_us_per_transaction > 0.0
            && egress.cpu_us_per_transaction < report.functions[0].cpu_us_per_transaction,
        "{egress:?}"
    );
}

#[test]
fn associations_survive_a_kill_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        sessions: Some(200),
        rate: Rate::Tps(80.0),
        duration: std::time::Duration::from_secs(12),
        ..options(&folder)
    };
    let (report, failed) = run("policy/kill-pcf", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    let checked = |name: &str| report.checks.iter().any(|check| check.name == name && check.pass);
    assert!(
        checked("associations of before the kill") && checked("requests after"),
        "{:#?}",
        report.checks
    );
}

/// Sessions of PCEFs over Gx, with calls of P-CSCFs over Rx: every answer is right, and the rules of each call reach the PCEF.
#[test]
fn our_pcrf_serves_sessions_and_calls() {
    let voice = [
        "ccrInitial",
        "ccrUpdate",
        "ccrTermination",
        "rxAarInitial",
        "rxAarUpdate",
        "rxStr",
    ];
    for (model, operations) in [
        ("policy/pcrf-voice-30k", &voice[..]),
        ("policy/voice-7k5", &voice[..]),
        (
            "policy/data-15k",
            &["ccrInitial", "ccrTermination", "rxAarInitial", "rxStr"][..],
        ),
        ("policy/pcrf-data-30k", &voice[..3]),
        ("policy/usage-monitoring-27k", &voice[..3]),
        ("core/voice-pdra", &voice[..]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            program: Some(program()),
            connections: Some(8),
            rate: Rate::Tps(80.0),
            ..options(&folder)
        };
        let (report, failed) = run(model, &options);
        assert!(failed.is_empty(), "{model}: {failed:#?}");
        for name in operations {
            let one = report.operations.iter().find(|one| one.name == *name);
            assert!(
                one.is_some_and(|one| one.count > 3 && one.errors == 0),
                "{model}: {name}: {one:?}"
            );
        }
    }
}
